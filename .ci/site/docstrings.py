"""Extensions of Griffe: what the reference shows in another form than the sources have it.

* Blocks after ``::`` in docstrings become Markdown's blocks of code.
* A class that states its arguments for type checkers in ``__new__`` is shown with these.
"""

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


class CheckedArguments(griffe.Extension):
    """Show the arguments of ``__new__``, of which some are required, in place of those of ``__init__``."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Copy annotations and defaults from one to the other."""
        stated, run = cls.members.get("__new__"), cls.members.get("__init__")
        if isinstance(stated, griffe.Function) and isinstance(run, griffe.Function):
            for parameter in run.parameters:
                if parameter.name in stated.parameters:
                    same = stated.parameters[parameter.name]
                    parameter.annotation, parameter.default = same.annotation, same.default


def to_markdown(text: str) -> str:
    """Return a docstring with fenced blocks in place of literal ones."""
    return _LITERAL.sub(_fenced, text + "\n").rstrip("\n")


def _fenced(match: re.Match[str]) -> str:
    code = textwrap.dedent(match["code"]).strip("\n")
    lead = f"{match['lead']}:\n\n" if match["lead"] else ""
    language = "pycon" if code.startswith(">>>") else "text"
    return f"{lead}```{language}\n{code}\n```\n\n"
