"""Column names in SQL. This module does not import PySpark, because the command line loads the module."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__ce_"
"""The prefix in the names of intermediate columns."""


def quote_name(name: str) -> str:
    """Return the name of a column, quoted for SQL."""
    return f"`{name.replace('`', '``')}`"
