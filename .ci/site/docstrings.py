"""An extension of Griffe: blocks after ``::`` in docstrings become Markdown's blocks of code."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_LITERAL = re.compile(r"^(?P<lead>[^\n]*?)::\n\n(?P<code>(?:[ ]{4,}[^\n]*\n?|\n)+)", re.MULTILINE)


class LiteralBlocks(griffe.Extension):
    """Rewrite the docstrings of all objects."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    """Return a docstring with fenced blocks in place of literal ones."""
    return _LITERAL.sub(_fenced, text + "\n").rstrip("\n")


def _fenced(match: re.Match[str]) -> str:
    code = textwrap.dedent(match["code"]).strip("\n")
    lead = f"{match['lead']}:\n\n" if match["lead"] else ""
    language = "pycon" if code.startswith(">>>") else "text"
    return f"{lead}```{language}\n{code}\n```\n\n"
