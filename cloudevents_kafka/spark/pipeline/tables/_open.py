"""Opens tables by folder (`table_in_folder`) or by name (`table_by_name`), and lists tables in a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark._sql import name_parts, quote
from cloudevents_kafka.spark.pipeline.notes import Upsert
from cloudevents_kafka.spark.pipeline.stores import Store
from cloudevents_kafka.spark.pipeline.tables._delta import DeltaTable
from cloudevents_kafka.spark.pipeline.tables._iceberg import IcebergTable
from cloudevents_kafka.spark.pipeline.tables._table import Table
from cloudevents_kafka.spark.pipeline.tables._upserts import UpsertDeltaTable, UpsertIcebergTable
from cloudevents_kafka.spark.table_formats import FORMATS, TABLE_FORMATS, TableFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For each format: the class of tables with a row for each record, and the class with a row for each key.
_TABLES: Final[Mapping[TableFormat, tuple[Callable[..., Table], Callable[..., Table]]]] = {
    "delta": (DeltaTable, UpsertDeltaTable),
    "iceberg": (IcebergTable, UpsertIcebergTable),
}


def table_in_folder(
    spark: SparkSession, table_format: TableFormat, url: str, upsert: Upsert | None = None
) -> Table:
    """Return the table in the folder with this URL; with ``upsert``, the table has one row for each key."""
    return _open(spark, table_format, upsert, url=url)


def table_by_name(
    spark: SparkSession, table_format: TableFormat, name: str, upsert: Upsert | None = None
) -> Table:
    """Return the table with a name such as ``catalog.schema.orders``; see also `table_in_folder`."""
    return _open(spark, table_format, upsert, name=name_parts(name))


def _open(spark: SparkSession, table_format: TableFormat, upsert: Upsert | None, **place: Any) -> Table:
    rows, keyed = _TABLES[table_format]
    table = (rows if upsert is None else keyed)(spark, **place)
    table.upsert = upsert
    return table


def sibling_name(name: str, sibling: str = "{}_quarantine") -> str:
    """Return the name of a table in the schema of ``name``: ``a.b.orders_quarantine`` for ``a.b.orders``.

    The last part of the new name is the text ``sibling``, with the last part of ``name`` in the place of
    ``{}``.
    """
    *parents, last = name_parts(name)
    plain = re.compile(r"\w+", re.ASCII)
    parts = (*parents, sibling.replace("{}", last))
    return ".".join(part if plain.fullmatch(part) else quote(part) for part in parts)


def folder_format(store: Store, folder: str = "") -> TableFormat | None:
    """Return the format of the Delta or Iceberg table in a folder of a store, or None without a table."""
    prefix = f"{folder}/" if folder else ""
    return next((name for name in TABLE_FORMATS if store.exists(f"{prefix}{FORMATS[name].mark}")), None)


def find_tables(store: Store) -> dict[str, TableFormat]:
    """Return the names of the tables in a folder, each with its table format.

    The name of a table is the name of its subfolder, or ``""`` if the folder itself is a table.
    """
    names = [""] if folder_format(store) else store.list_names("")
    found = {name: folder_format(store, name) for name in names}
    return {name: format_ for name, format_ in found.items() if format_ is not None}
