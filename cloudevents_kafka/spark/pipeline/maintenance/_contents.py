"""`read_contents` counts the rows in tables of events and of other records, with Spark.

Spark groups the rows by a label, such as the type of the event, and by time, and returns the sizes of the
largest groups. As samples, Spark also returns a few rows with all of their columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudevents_kafka import counting
from cloudevents_kafka.primitives.bounded import OTHERS
from cloudevents_kafka.record import Record
from cloudevents_kafka.spark._sql import literal, name_parts, quote
from cloudevents_kafka.spark.pipeline._errors import WrongTable, failures_in_words
from cloudevents_kafka.spark.pipeline.notes import DELETED, OUTCOMES
from cloudevents_kafka.spark.pipeline.session import local_session
from cloudevents_kafka.spark.pipeline.stores import open_store, without_patterns
from cloudevents_kafka.spark.pipeline.tables import find_tables, table_in_folder
from cloudevents_kafka.spark.table_formats import TableFormat
from cloudevents_kafka.spark.typed.shape import VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BINS: Final = 150
_TYPES: Final = 8  # the number of event types that are counted by time
_PARTITIONS: Final = 1000
_KEPT: Final = counting.SAMPLE_BYTES + 1
_HEADERS: Final = "array<struct<key: string, value: binary>>"
# For each counted value: its SQL type, the column that the table must have for it, and its SQL expression.
_COLUMNS: Final = {
    "type": ("string", "type", "substring(`type`, 1, 256)"),
    "source": ("string", "source", "substring(source, 1, 256)"),
    "mode": ("string", "mode", "substring(mode, 1, 256)"),
    "error": ("string", "error", "substring(concat_ws(' ', error.verdict, error.clause), 1, 256)"),
    "reason": ("string", "error", f"substring(error.reason, 1, {_KEPT})"),
    "size": ("int", "data", "coalesce(octet_length(string(data)), 0)"),
    "value_size": ("int", "value", "coalesce(octet_length(value), 0)"),
    "key": ("binary", "key", "key"),
    "time": ("bigint", "timestamp", "unix_millis(`timestamp`)"),
    **{name: ("bigint", name, f"`{name}`") for name in ("partition", "offset")},
    "topic": ("string", "topic", "topic"),
    "value": ("binary", "value", f"substring(value, 1, {_KEPT})"),
    "headers": (_HEADERS, "headers", f"slice(headers, 1, {counting.MOST_HEADERS})"),
}
_TYPED_SIZE: Final = f"coalesce(octet_length(string(data)), octet_length(to_json(`{VALUE}`)), 0)"
_SIZE: Final = "coalesce(value_size, size, 0)"
_LABELS: Final = {
    "types": "`type`",
    "sources": "source",
    "modes": "mode",
    "errors": "error",
    "sizes": f"string(if({_SIZE} = 0, 0, length(bin({_SIZE}))))",
    "keys": "substring(if(is_valid_utf8(string(key)), string(key), '0x' || lower(hex(key))), 1, 256)",
}


class TableContents(NamedTuple):
    """The names of the tables, the counts of their rows, and the next offset of each partition.

    ``positions`` maps the name of a topic and the number of a partition to the offset after the partition's
    last row in the tables.
    """

    tables: Sequence[str]
    counts: counting.RecordCounts
    positions: Mapping[tuple[str, int], int]


def read_contents(
    *,
    folder: str | None = None,
    names: Sequence[str] = (),
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    formats: Collection[TableFormat] = (),
) -> TableContents:
    """Return the contents of the tables in ``folder``, and of the tables in catalogs that ``names`` lists.

    The folder may be a table itself. Tables in the folder must be in Parquet or in one of ``formats``. A
    table that has neither the column ``type`` nor the column ``error`` is ignored. Raises `WrongTable` if no
    table has the column ``type`` or ``error``, `PipelineFailed` if Spark fails, and the errors of
    `local_session`.
    """
    with (
        local_session(master=master, conf=conf, formats=formats, kafka=False) as spark,
        failures_in_words(str),
    ):
        return contents_of(spark, folder, names)


def contents_of(spark: SparkSession, folder: str | None, names: Sequence[str]) -> TableContents:
    """Return the contents of tables, read with the session ``spark``; see `read_contents`."""
    tables = {
        name: rows for name, rows in _tables(spark, folder, names) if {"type", "error"} & {*rows.columns}
    }
    if not tables:
        where = " and ".join(filter(None, (folder, *names)))
        raise WrongTable(f"{where} must have a table with the column type or error; name a pipeline's table")
    rows = reduce(lambda one, other: one.union(other), map(_select, tables.values()))
    found = rows.where("topic IS NOT NULL").groupBy("topic", "partition").agg({"offset": "max"})
    positions = {(topic, number): last + 1 for topic, number, last in found.limit(_PARTITIONS).collect()}
    return TableContents(tuple(tables), _count(rows), positions)


def _tables(spark: SparkSession, folder: str | None, names: Sequence[str]) -> Iterator[tuple[str, DataFrame]]:
    if folder is not None:
        store = open_store(folder, spark)
        found = find_tables(store)
        found.pop(OUTCOMES, None)  # other tables also contain these records
        for name, format_ in found.items():
            url = store.url(name).rstrip("/")
            yield url, table_in_folder(spark, format_, url).read()
        for name in () if found else ("", *store.list_names("")):
            hidden = name == OUTCOMES or name.startswith(("_", "."))
            if not hidden and any("_date=" in part for part in store.list_names(name)):
                url = store.url(name).rstrip("/")
                yield url, spark.read.parquet(without_patterns(url))
    for name in names:
        if not spark.catalog.tableExists(quote(*name_parts(name))):
            raise WrongTable(
                f"the table {name} is not in its catalog; check its name, and the settings of the catalog "
                "(spark.sql.catalog.…)"
            )
        yield name, spark.table(quote(*name_parts(name)))


def _select(table: DataFrame) -> DataFrame:
    """Return the rows that are not marked as deleted, with the columns that `read_contents` counts."""
    columns, has = dict(_COLUMNS), set(table.columns)
    if {"type", VALUE} <= has:  # the column has typed data of events, not the values of records
        has.remove(VALUE)
        columns["size"] = ("int", "data", _TYPED_SIZE)
    rows = table.where(f"NOT `{DELETED}`") if DELETED in has else table
    found = ((name, type_, sql if of in has else "NULL") for name, (type_, of, sql) in columns.items())
    return rows.selectExpr(*(f"CAST({sql} AS {type_}) AS `{name}`" for name, type_, sql in found))


def _count(rows: DataFrame) -> counting.RecordCounts:
    bins = (f"approx_count_distinct({_start(width)})" for width in counting.WIDTHS)
    sums = rows.selectExpr("count(1)", "count(error)", f"sum({_SIZE})", "count(key)", *bins).collect()[0]
    number, others, size, keys, *numbers = sums
    counts = counting.RecordCounts(number - others, others, size=size or 0, without_key=number - keys)
    _count_labels(rows, counts)
    fits = (width for width, needed in zip(counting.WIDTHS, numbers, strict=True) if needed <= _BINS)
    counts.times = counting.TimeHistogram(next(fits, counting.WIDTHS[-1]))
    _count_times(rows.where("time IS NOT NULL"), counts)
    _add_samples(rows.where("error IS NOT NULL"), counts)
    return counts


def _start(width: int) -> str:
    return f"time - pmod(time, {width})"


def _count_labels(rows: DataFrame, counts: counting.RecordCounts) -> None:
    pairs = ", ".join(f"struct('{kind}' AS kind, {label} AS label)" for kind, label in _LABELS.items())
    groups = rows.selectExpr(f"inline(array({pairs}))").where("label IS NOT NULL").groupBy("kind", "label")
    rank = "row_number() OVER (PARTITION BY kind ORDER BY count DESC) AS rank"
    ranked = groups.count().selectExpr("*", rank, "sum(count) OVER (PARTITION BY kind)")
    for kind, label, count, _, total in ranked.where(f"rank <= {counting.MAX_LABELS}").collect():
        if kind == "sizes":
            counts.sizes[int(label)] = count
        else:
            getattr(counts, kind).add(label, count)
            getattr(counts, kind).total = total


def _count_times(rows: DataFrame, counts: counting.RecordCounts) -> None:
    """Count events by type and by time; the times are the intervals of the histogram.

    Each of the most frequent types of events has its own count. All less frequent types of events have one
    common count.
    """
    types = ", ".join(literal(name) for name, _ in counts.types.most_common(_TYPES)[0]) or "NULL"
    event = f"if(`type` IN ({types}), `type`, {literal(OTHERS)})"
    label = f"if(error IS NULL, {event}, {literal(counting.NOT_EVENTS)}) AS label"
    bins = rows.selectExpr(f"{_start(counts.times.width)} AS start", label).groupBy("start", "label")
    for start, name, count in bins.count().collect():
        counts.times.add(start, name, count)


def _add_samples(rows: DataFrame, counts: counting.RecordCounts) -> None:
    rank = "row_number() OVER (PARTITION BY error ORDER BY time DESC) AS rank"
    found = rows.selectExpr("*", rank).where(f"rank <= {counting.SAMPLES}")
    for row in found.limit(counting.SAMPLES * counting.MOST_SAMPLED).collect():
        place = {name: row[name] for name in ("key", "value", "headers", "topic", "partition", "offset")}
        counts.add_sample(row["error"], row["reason"] or "", Record.of(place), row["value_size"])
