"""Names in SQL and JSON. This module does not import PySpark, because the command line loads the module."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__ce_"
"""The prefix in the names of intermediate columns."""

MAX_NAME: Final = 50_000
"""The number of characters that the name of a JSON member may have; Spark's parser rejects longer names."""


def quote_name(name: str) -> str:
    """Return the name of a column, quoted for SQL."""
    return f"`{name.replace('`', '``')}`"
