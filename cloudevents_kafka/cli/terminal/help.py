"""Help text whose lines are broken only between words; click also breaks lines at hyphens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

_WHOLE: Final = str.maketrans("-", "\u2011")  # a hyphen at which no line is broken
_AS_WRITTEN: Final = str.maketrans("\u2011", "-")


class HelpContext(click.Context):
    """The context of a command, with a formatter that does not break words."""

    class formatter_class(click.HelpFormatter):  # noqa: N801  # click's name
        """Writes the help of a command; a word with hyphens stays on one line."""

        def write_text(self, text: str) -> None:
            """Write a text."""
            super().write_text(text.translate(_WHOLE))

        def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
            """Write names and their descriptions in two columns."""
            whole = [(name, text.translate(_WHOLE)) for name, text in rows]
            super().write_dl(whole, col_max, col_spacing)

        def getvalue(self) -> str:
            """Return the help."""
            return super().getvalue().translate(_AS_WRITTEN)
