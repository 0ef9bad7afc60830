"""Names of columns, as SQL has them. This module imports no PySpark, as the command line loads it."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__ce_"
"""The prefix of the names of intermediate columns."""


def quote_name(name: str) -> str:
    """Return the name of a column, quoted for SQL."""
    return f"`{name.replace('`', '``')}`"
