"""Names of columns as SQL. The command line loads this module, so it does not import PySpark."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__ce_"
"""The prefix in the names of intermediate columns."""


def quote_name(name: str) -> str:
    """Return the name of a column, quoted for SQL."""
    return f"`{name.replace('`', '``')}`"
