"""A batch is written in one pass: its counts and rows are exact, however its records are read."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.primitives.bounded import OTHERS
from cloudevents_kafka.spark._java import java_frame
from cloudevents_kafka.spark._sql import settings
from cloudevents_kafka.spark.java.reader import foreign_sql, reader_sql
from cloudevents_kafka.spark.pipeline.batches import BatchWriter, _batch, _batch_rows
from cloudevents_kafka.spark.pipeline.batches._observed import label_counts
from cloudevents_kafka.spark.pipeline.landing._parquet_target import ParquetFiles
from cloudevents_kafka.spark.pipeline.notes import (
    BatchCounts,
    CountMismatch,
    OffsetRange,
    OffsetRanges,
)
from cloudevents_kafka.spark.pipeline.tables._columns import _foreign
from cloudevents_kafka.spark.schema import FROM_JSON
from tests.spark.pipeline.sample_batches import batch_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)
NOW = dt.datetime(2026, 5, 1, 23, 59, tzinfo=dt.UTC)
JSON = [("content-type", b"application/cloudevents+json")]
BAD = Record(value=b"{", headers=[("ce_id", b"1"), ("ce_id", b"2"), ("x", None)])


def events(count: int, types: int = 3) -> list[Record]:
    """Return events, of which half are structured."""
    made = [Event(id=str(n), source="/s", type=f"t{n % types}", data={"n": n}) for n in range(count)]
    return [to_record(event, mode=("binary", "structured")[n % 2]) for n, event in enumerate(made)]


def avro(count: int) -> list[Record]:
    """Return events that Java leaves to Python."""
    made = [Event(id=str(n), source="/s", type="avro", data=b"x") for n in range(count)]
    return [to_record(event, mode="structured", format="avro") for event in made]


def frame(spark: SparkSession, records: list[Record], parts: int = 3) -> tuple[DataFrame, OffsetRanges]:
    """Return records of two topics, and their offsets."""
    rows, ends = [], Counter[tuple[str, int]]()
    for number, record in enumerate(records):
        place = (f"topic{number % 2}", number % parts)
        offset = 10 + ends[place]
        ends[place] += 1
        rows.append((record.key, record.value, *place, offset, NOW, 0, record.headers))
    offsets: dict[str, dict[str, OffsetRange]] = {}
    for (topic, partition), count in ends.items():
        offsets.setdefault(topic, {})[str(partition)] = OffsetRange(10, 10 + count)
    return spark.createDataFrame(rows, SCHEMA).repartition(4), offsets


def written(folder: Path, table: str) -> list[dict[str, Any]]:
    if not (folder / table).exists():
        return []
    rows: list[dict[str, Any]] = ds.dataset(folder / table, partitioning="hive").to_table().to_pylist()
    return rows


def write(
    spark: SparkSession, records: list[Record], folder: Path, writer: BatchWriter | None = None
) -> BatchCounts:
    """Write records, and compare the tables with the counts, and both with the records."""
    rows, offsets = frame(spark, records)
    files = ParquetFiles(spark, f"file://{folder}")
    writer = writer or BatchWriter(tasks=2)
    counts = writer.write(rows, batch_of(offsets, in_java=writer.starts_in_java(rows)), files.append)
    files.check(counts)
    counts.check()
    landed, refused = written(folder, "events"), written(folder, "quarantine")
    assert counts.read == len(records) == len(landed) + len(refused)
    assert counts.events == len(landed)
    by_type = Counter((row["type"], row["mode"]) for row in landed)
    assert {(t, m): n for t, modes in counts.by_type.items() for m, n in modes.items()} == by_type
    verdicts = Counter(row["error"]["verdict"] for row in refused)
    assert {verdict: sum(rules.values()) for verdict, rules in counts.by_reason.items()} == verdicts
    places = Counter((row["topic"], row["partition"]) for row in landed + refused)
    assert {
        (topic, int(partition)): part.records
        for topic, partitions in counts.offsets.items()
        for partition, part in partitions.items()
    } == places
    assert len({(row["topic"], row["partition"], row["offset"]) for row in landed + refused}) == len(records)
    assert {row["record_date"] for row in landed + refused} == {"2026-05-01"}
    for row in refused:
        assert (row["value"], row["timestamp"]) == (BAD.value, NOW)
        assert [(header["key"], header["value"]) for header in row["headers"]] == BAD.headers
    return counts


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(events(50), marks=pytest.mark.release),
        [*events(40), BAD, *avro(3)],
        pytest.param([BAD] * 5, marks=pytest.mark.release),
        pytest.param(avro(10), marks=pytest.mark.release),
        pytest.param(events(1), marks=pytest.mark.release),
    ],
    ids=["events", "mixture", "bad", "avro", "one"],
)
def test_rows_and_counts(session: SparkSession, tmp_path: Path, records: list[Record]) -> None:
    """Each record lands once, as an event or unchanged with its error, and is counted once."""
    write(session, records, tmp_path)


def test_counts_of_a_session_that_writes_null_fields(session: SparkSession, tmp_path: Path) -> None:
    """The counts are exact if the JSON of the session has null fields, and nothing but nulls is counted."""
    rows, offsets = frame(session, [BAD])
    rows = rows.drop("timestamp").selectExpr("*", "CAST(NULL AS timestamp) AS timestamp")
    writer, files = BatchWriter(tasks=2), ParquetFiles(session, f"file://{tmp_path}")
    with settings(session, {"spark.sql.jsonGenerator.ignoreNullFields": "false"}):
        counts = writer.write(rows, batch_of(offsets, in_java=writer.starts_in_java(rows)), files.append)
    counts.check()
    assert (counts.read, counts.events, counts.quarantined, counts.newest) == (1, 0, 1, None)


def test_many_rows_for_python(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows for Python that are too many for the driver are read again; then Python decodes all rows."""
    monkeypatch.setattr(_batch_rows, "_MOST_BYTES", 50)
    monkeypatch.setattr(_batch, "_MOST_IN_DRIVER", 0)
    monkeypatch.setattr(_batch, "_MOST_ERRORS", 0)
    writer = BatchWriter(tasks=2)
    records = [*events(20), *avro(20), BAD]
    first = write(session, records, tmp_path / "first", writer)
    monkeypatch.setattr(_batch, "Reading", lambda *_: pytest.fail("Java reads"))
    assert write(session, records, tmp_path / "read-again", writer) == first
    assert writer._has_many_errors
    writer._share = 1
    assert write(session, records, tmp_path / "kept", writer) == first


def test_results_that_spark_does_not_read(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record whose result Spark cannot read lands in the quarantine with an error."""
    monkeypatch.setitem(FROM_JSON, "maxStringLen", "100")
    monkeypatch.setattr(_batch_rows, "_MOST_BYTES", 0)
    long = to_record(Event(id="1" * 200, source="/s", type="t"), mode="structured", format="avro")
    rows, offsets = frame(session, [*events(3), long])
    files = ParquetFiles(session, f"file://{tmp_path}")
    counts = BatchWriter(tasks=2).write(rows, batch_of(offsets, in_java=False), files.append)
    files.check(counts.check())
    (row,) = written(tmp_path, "quarantine")
    assert (row["value"], row["error"]["verdict"]) == (long.value, "broken-event")


def test_records_for_the_driver_are_bounded(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that come to the driver have a bound for the batch, even if tasks share a Kafka partition."""
    monkeypatch.setattr(_batch_rows, "_MOST_BYTES", 4_000)
    readings: list[_batch_rows.Reading] = []

    def read(records: DataFrame, rows: _batch_rows.Rows) -> _batch_rows.Reading:
        readings.append(_batch_rows.Reading(records, rows))
        return readings[-1]

    monkeypatch.setattr(_batch, "Reading", read)
    rows, offsets = frame(session, avro(40), parts=1)
    assert rows.rdd.getNumPartitions() > len(offsets) == 2
    files = ParquetFiles(session, f"file://{tmp_path}")
    BatchWriter(tasks=3).write(rows, batch_of(offsets), files.append)
    assert 0 < sum(map(len, readings[0].packed())) <= 4_000


# Each is for Python: deviations, an event with one, texts longer than what is counted, several tables, a name
# longer than what Spark reads.
FOR_PYTHON = [
    BAD,
    Record(value=b'{"specversion":"1.0","id":"1","source":"","type":"t"}', headers=JSON),
    Record(value=b"1", headers=[("ce_specversion", b"1.0"), ("ce_type", b"t" * 300)]),
    Record(value=b"1", headers=[("x", b"1")]),
    Record(value=json.dumps({"specversion": "1.0", "id": "1", "source": "/s", "type": "ü" * 300}).encode()),
    Record(value=b'\xef\xbb\xbf{"specversion":"1.0","id":"1","source":"/s","type":"shop.b"}', headers=JSON),
    *avro(2),
    to_record(Event(id="1", source="/s", type="t", **{"x" * 50_001: "1"}), mode="structured", format="avro"),
]


@pytest.mark.parametrize(
    "lenient", [pytest.param(False, marks=pytest.mark.release), True], ids=["strictly", "leniently"]
)
def test_counts_in_the_driver(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lenient: bool
) -> None:
    """Rows that are decoded in the driver land and are counted as those that Spark decodes."""
    results = []
    for most in (5_000, 0):
        monkeypatch.setattr(_batch, "_MOST_IN_DRIVER", most)
        rows, offsets = frame(session, [*events(3), *FOR_PYTHON])
        files = ParquetFiles(session, f"file://{tmp_path}/{most}")
        writer = BatchWriter(tasks=2)
        routes = {"a*o": "avro", "shop.*": "shop"}
        counts = writer.write(rows, batch_of(offsets, lenient=lenient, routes=routes), files.append)
        files.check(counts.check())
        tables = [path.name for path in (tmp_path / str(most)).iterdir()]
        found = {table: written(tmp_path / str(most), table) for table in tables}
        results.append((counts, {table: sorted(map(repr, rows)) for table, rows in found.items()}))
    assert results[0] == results[1]
    assert results[0][0].routed["avro"] == 2


@pytest.mark.release  # test_counts_in_the_driver is its sample
def test_rows_are_read_in_java_again(session: SparkSession, tmp_path: Path) -> None:
    """Some batches after one that needed Python, Java reads again."""
    writer = BatchWriter(tasks=2)
    write(session, avro(4), tmp_path / "avro", writer)
    assert writer._share == 1
    for number in range(4):
        write(session, events(4), tmp_path / str(number), writer)
    assert writer._share == 0


def test_counts_of_thousands_of_types(session: SparkSession, tmp_path: Path) -> None:
    """The counts of many types are exact, though each task has a histogram of its own."""
    counts = write_many(session, tmp_path, 900)
    assert len(counts.by_type) == 900
    assert set(map(sum, (modes.values() for modes in counts.by_type.values()))) == {2}


def write_many(spark: SparkSession, folder: Path, types: int) -> BatchCounts:
    made = [to_record(Event(id=str(n), source="/s", type=f"t{n % types}")) for n in range(2 * types)]
    return write(spark, made, folder)


def test_types_beyond_the_bound() -> None:
    """If the types are too many, their number is that of all events."""
    names = [{"code": n, "outer": "t", "inner": "binary"} for n in range(10_001)]
    found = {"event_counts": [{"x": 1.0, "y": 7.0}, {"x": 1.0, "y": 2.0}], "event_names": names}
    assert label_counts(found, "event") == {OTHERS: {OTHERS: 9}}


def test_labels_of_one_code() -> None:
    """If two labels have the same hash, the first label counts the rows of both, and no row counts twice."""
    names = [{"code": 1, "outer": outer, "inner": "binary"} for outer in ("b", "a")]
    found = {"event_counts": [{"x": 1.0, "y": 7.0}], "event_names": names}
    assert label_counts(found, "event") == {"a": {"binary": 7}}


@pytest.mark.parametrize("change", [-1, 1], ids=["fewer", "others"])
def test_records_that_were_not_planned(session: SparkSession, tmp_path: Path, change: int) -> None:
    """A batch whose records have other offsets than those that were planned is refused."""
    rows, offsets = frame(session, events(12))
    first = offsets["topic0"]["0"]
    offsets["topic0"]["0"] = OffsetRange(first.start + max(change, 0), first.end + min(change, 0))  # type: ignore[index]  # a dict here
    writer = BatchWriter(tasks=2)
    with pytest.raises(CountMismatch, match=r"but 1 other records were read: the checkpoint was changed"):
        writer.write(rows, batch_of(offsets), ParquetFiles(session, f"file://{tmp_path}").append)


def test_records_that_are_read_twice(session: SparkSession, tmp_path: Path) -> None:
    """A batch that has a record twice is refused."""
    rows, offsets = frame(session, events(12))
    writer = BatchWriter(tasks=2)
    with pytest.raises(CountMismatch, match=r"at most \d records, got \d+: some records were read twice"):
        writer.write(
            rows.unionAll(rows), batch_of(offsets), ParquetFiles(session, f"file://{tmp_path}").append
        )


@pytest.mark.parametrize("loses_executors", [False, True])
def test_kept_rows(session: SparkSession, monkeypatch: pytest.MonkeyPatch, *, loses_executors: bool) -> None:
    """They are computed once, and their plan has no expression that Spark would check again."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    monkeypatch.setattr(_batch, "_loses_no_executor", lambda _: not loses_executors)
    chance = F.udf(lambda: uuid.uuid4().hex).asNondeterministic()
    with _batch.kept_rows(session.range(3).select("id", chance().alias("chance"))) as kept:
        assert java_frame(kept).queryExecution().analyzed().deterministic()
        assert sorted(kept.collect()) == sorted(kept.collect())


HEADERS_OF_ROWS = (
    "null",
    "array()",
    "array(struct('ce_id', x'31'), struct('content-type', x'31'))",
    "array(struct('a', x'00'), struct('ce_id', x'31'), struct('Content-Type', null), struct('ce', x''))",
    "array(null, struct(null, x'31'), struct('CE_id', x'31'))",
)


def test_foreign_headers(session: SparkSession) -> None:
    """The Java function returns the headers that the expression of Spark does."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    type_ = "array<struct<key:string,value:binary>>"
    texts = (f"select {n} as n, cast({text} as {type_}) as headers" for n, text in enumerate(HEADERS_OF_ROWS))
    df = session.sql(" union all ".join(texts))
    assert reader_sql(df.selectExpr("headers", "x'' as value")) is not None  # adds the function
    both = df.selectExpr("n", f"{foreign_sql('headers')} as java", "headers")
    rows = both.select("n", "java", F.expr(_foreign("headers")).alias("spark")).collect()
    assert len(rows) == len(HEADERS_OF_ROWS)
    assert [row["java"] for row in rows] == [row["spark"] for row in rows]
    assert sum(row["java"] is not None for row in rows) == 2
