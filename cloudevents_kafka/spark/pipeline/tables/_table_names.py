"""Tables by folder and by name: `table_in_folder`, `table_by_name`, and the formats found in a folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark.pipeline._sql import quote
from cloudevents_kafka.spark.pipeline.notes import Upsert
from cloudevents_kafka.spark.pipeline.stores import Store
from cloudevents_kafka.spark.pipeline.tables._delta import DeltaTable
from cloudevents_kafka.spark.pipeline.tables._iceberg import IcebergTable
from cloudevents_kafka.spark.pipeline.tables._sink import Table
from cloudevents_kafka.spark.pipeline.tables._upserts import UpsertDeltaTable, UpsertIcebergTable
from cloudevents_kafka.spark.table_formats import TableFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PART: Final = r"(?:`((?:[^`]|``)+)`|([^`.\s]+))"
# What each format has in the folder of a table.
_MARKS: Final[dict[TableFormat, str]] = {"delta": "_delta_log", "iceberg": "metadata/version-hint.text"}


def table_in_folder(
    spark: SparkSession, table_format: TableFormat, url: str, upsert: Upsert | None = None
) -> Table:
    """Return the table in the folder with this URL; with ``upsert`` it has one row for each key."""
    table = _class_of(table_format, upsert)(spark, url=url)
    table.upsert = upsert
    return table


def table_by_name(
    spark: SparkSession, table_format: TableFormat, name: str, upsert: Upsert | None = None
) -> Table:
    """Return the table of a catalog with a name such as ``catalog.schema.orders``; see `table_in_folder`."""
    table = _class_of(table_format, upsert)(spark, name=name_parts(name))
    table.upsert = upsert
    return table


def _class_of(table_format: TableFormat, upsert: Upsert | None) -> type[DeltaTable | IcebergTable]:
    if table_format == "iceberg":
        return IcebergTable if upsert is None else UpsertIcebergTable
    return DeltaTable if upsert is None else UpsertDeltaTable


def name_parts(name: str) -> tuple[str, ...]:
    """Return the parts of a table's name; raise ValueError if it has none.

    A part with a dot or a space is in backticks.
    """
    if not re.fullmatch(rf"{_PART}(?:\.{_PART})*", name):
        raise ValueError(
            f"the name of a table must be catalog.schema.name, got {name!r}; "
            "put a part with a dot or a space in backticks"
        )
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in re.findall(_PART, name))


def sibling_name(name: str, sibling: str = "{}_quarantine") -> str:
    """Return the name of a table next to another: ``a.b.orders_quarantine`` for ``a.b.orders``.

    ``{}`` in the sibling's name stands for the last part of the other name.
    """
    *parents, last = name_parts(name)
    plain = re.compile(r"\w+", re.ASCII)
    parts = (*parents, sibling.replace("{}", last))
    return ".".join(part if plain.fullmatch(part) else quote(part) for part in parts)


def folder_format(store: Store, folder: str = "") -> TableFormat | None:
    """Return the format of the table in a folder of a store, or None if it is neither Delta nor Iceberg."""
    prefix = f"{folder}/" if folder else ""
    return next((name for name, mark in _MARKS.items() if store.exists(prefix + mark)), None)


def find_tables(store: Store) -> dict[str, TableFormat]:
    """Return the tables of a folder: itself (``""``) or its subfolders, with their formats."""
    names = [""] if folder_format(store) else store.list_names("")
    found = {name: folder_format(store, name) for name in names}
    return {name: format_ for name, format_ in found.items() if format_ is not None}
