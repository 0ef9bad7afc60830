"""The patterns of the option ``tables``, which choose the table of an event by the type of the event.

A pattern is a type in which ``*`` stands for any text, including an empty text. The first pattern that
matches the type of an event determines the table of this event. `table_for` chooses the table in Python, and
`tables.table_of` chooses the table in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from cloudevents_kafka.spark._patterns import matches
from cloudevents_kafka.spark.table_formats import TableFormat

Kind = Literal["parquet", TableFormat]
"""The kinds of tables."""

EVENTS: Final = "events"
QUARANTINE: Final = "quarantine"
TABLES: Final = (EVENTS, QUARANTINE)
"""The tables that each pipeline has: the common table of events, and the table of other records."""

OUTCOMES: Final = "quarantine_replays"
"""The name of the table that contains the outcome of each replayed record, next to the quarantine."""

TABLE: Final = "__ce_table"
"""The column that contains the name of an event's table; the column is dropped when the event is written."""

MAX_ROUTES: Final = 50
"""The largest number of patterns. Each table needs a commit for each batch, and each pattern needs a
comparison for each event."""

_FOLDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def check_routes(routes: Mapping[str, str], table: str | None) -> None:
    """Raise `ValueError` if a pattern can never match, or if the name of a table is not allowed.

    ``table`` is the name of the common table of events, if this table is in a catalog.
    """
    if len(routes) > MAX_ROUTES:
        raise ValueError(
            f"tables must have at most {MAX_ROUTES} patterns, got {len(routes):,}; use patterns with *, "
            "and let events of rare types go to the common table"
        )
    if "" in routes:
        raise ValueError("a pattern in tables must be a type such as com.example.order.*, got ''")
    names = list(dict.fromkeys(routes.values()))
    for name in names:
        if not _FOLDER.fullmatch(name):
            raise ValueError(
                "the name of a table must be at most 100 ASCII letters, digits, _ and -, and begin with a "
                f"letter or a digit, got {name!r}"
            )
    last = re.split(r"[.`]", (table or "").rstrip("`"))[-1]  # the last part of the name in a catalog
    taken = (*TABLES, OUTCOMES, last, f"{last}_{QUARANTINE}", f"{last}_{OUTCOMES}")
    seen = {name.casefold(): name for name in taken}  # catalogs and some file systems ignore case
    for name in names:
        if name.casefold() in seen:
            raise ValueError(
                "tables must have names that differ from the names of all other tables, even if case is "
                f"ignored, got {name!r} next to {seen[name.casefold()]!r}: choose another name"
            )
        seen[name.casefold()] = name


def check_topic(name: str) -> None:
    """Raise `ValueError` if a topic cannot have the name ``name``."""
    if not _TOPIC.fullmatch(name) or name in {".", ".."}:
        raise ValueError(
            f"the name of a topic must be 1 to 249 ASCII letters, digits, '.', '_' and '-', got {name!r}"
        )


def table_names(routes: Mapping[str, str]) -> list[str]:
    """Return the names of a pipeline's tables: the common table of events first, the quarantine last."""
    return list(dict.fromkeys((EVENTS, *routes.values(), QUARANTINE)))


def table_for(type_: str, routes: Mapping[str, str]) -> str:
    """Return the table for events of a type: the table of the first pattern that matches the type."""
    return next((table for pattern, table in routes.items() if matches(type_, pattern)), EVENTS)
