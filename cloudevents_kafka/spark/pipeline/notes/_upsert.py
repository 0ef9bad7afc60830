"""`Upsert` says which row a record changes, and whether the record deletes the row, in Python and in SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from cloudevents_kafka.spark._patterns import literal

DELETED: Final = "deleted"
"""The name of the column that says whether the row of a key was deleted."""

# The names that are columns of a table; "key" is the key of the Kafka record. Any other name is the name of
# an extension.
_COLUMNS: Final = frozenset({"key", "id", "source", "type", "subject", "dataschema", "datacontenttype"})
_KEY: Final = "(?!(?:time|specversion)$)[a-z0-9]+"
_RULE: Final = re.compile(f"((?!key=){_KEY.replace('$', '=')})=(.*)", re.DOTALL)


class Upsert(NamedTuple):
    """The keys of the rows of a table, and a rule that says which events delete a row.

    ``keys`` contains the names of columns and extension attributes that form the key of a row. ``rule``
    contains the name and the value of an attribute, or is None if the option ``deleted`` is not set.
    """

    keys: tuple[str, ...]
    rule: tuple[str, str] | None

    @classmethod
    def parse(cls, keys: tuple[str, ...], rule: str | None) -> Self | None:
        """Return the `Upsert` for the options ``upsert`` and ``deleted``, or None if there are no keys.

        Raises `ValueError` if one of the options is invalid.
        """
        if not all(re.fullmatch(_KEY, key) for key in keys) or len(set(keys)) < len(keys):
            raise ValueError(
                "upsert must name key (of the Kafka record), id, source, type, subject, or extensions such "
                f"as partitionkey, each once, got {', '.join(keys)}"
            )
        match = _RULE.fullmatch(rule) if rule is not None else None
        if rule is not None and (match is None or not keys):
            raise ValueError(
                "deleted must be ATTRIBUTE=VALUE, such as iodebeziumop=d, and needs the option upsert, got "
                f"{rule!r}"
            )
        return cls(keys, (match[1], match[2]) if match else None) if keys else None

    def __str__(self) -> str:
        return ",".join(self.keys)

    def deletes_sql(self, event: str = "") -> str:
        """Return SQL that is true for each event that deletes a row.

        An event deletes a row if the Kafka record of the event has no value. An event with the attribute and
        the value of the option ``deleted`` also deletes a row, even if the event has data. ``event`` is the
        prefix of the event's column names in the SQL.
        """
        deletes = f"{event}`data` IS NULL AND {event}`mode` = 'binary'"
        if self.rule is not None:
            name, value = self.rule
            deletes = f"{deletes} OR {attribute_sql(name, event)} = {literal(value)}"
        return f"coalesce({deletes}, false)"

    def deletes(self, fields: Mapping[str, Any]) -> bool:
        """Return whether an event with these fields deletes a row; see `deletes_sql`."""
        if fields.get("data") is None and fields.get("mode") == "binary":
            return True
        if self.rule is None:
            return False
        name, value = self.rule
        found = fields.get(name) if name in _COLUMNS else (fields.get("extensions") or {}).get(name)
        return bool(found == value)

    def key_sql(self, row: str = "") -> list[str]:
        """Return SQL for each part of a row's key; ``row`` is the prefix of the row's column names."""
        return [attribute_sql(name, row) for name in self.keys]


def attribute_sql(name: str, row: str = "") -> str:
    """Return SQL for an attribute of an event, or for the key of the Kafka record if ``name`` is ``key``."""
    return f"{row}`{name}`" if name in _COLUMNS else f"{row}`extensions`['{name}']"
