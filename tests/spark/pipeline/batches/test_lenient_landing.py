"""What known producers send lands as events with what was tolerated, which is counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Decoded, Record, decode
from cloudevents_kafka.primitives.bounded import OTHERS
from cloudevents_kafka.spark.pipeline import BatchCounts, PipelineFailed
from cloudevents_kafka.spark.pipeline.batches import BatchWriter
from cloudevents_kafka.spark.pipeline.batches._observed import rule_counts
from cloudevents_kafka.spark.pipeline.landing import TablesTarget
from cloudevents_kafka.spark.pipeline.landing._parquet_target import ParquetFiles
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.deviating import producers
from tests.spark.pipeline.batches.test_batch import frame
from tests.spark.pipeline.lake import Lake
from tests.spark.pipeline.sample_batches import batch_of
from tests.spark.records import BASE, structured
from tests.spark.rows import expected, row_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

PRODUCERS = [record for _, record in producers()]
DEBEZIUM = Record(value=structured({**BASE, "txId": "5", "gone": None}).value)
DEVIATING = [*[DEBEZIUM] * 3, structured(BASE), Record(value=b"not ours")]
NO_LABEL = "header is missing: the value was read as a JSON event"


def check_rows(found: list[dict[str, Any]], records: list[Record]) -> None:
    """Check the rows of all tables, which have the number of their record."""
    rows = {fields.pop("number"): fields for fields in found}
    assert len(rows) == len(found) == len(records)
    for number, record in enumerate(records):
        assert rows[number] == expected(record, lenient=True), record


def rows_in(*tables: DataFrame, number: str = "offset") -> list[dict[str, Any]]:
    """Return the rows of tables as `expected` has them, with the number of each record."""
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import event_schema

    rows: list[dict[str, Any]] = []
    for table in tables:
        columns = [name for name in event_schema(lenient=True).names if name in table.columns]
        found = table.select(*columns, F.expr(number).alias("number"))
        if "time" in columns:
            found = found.withColumn("time", F.unix_micros("time"))
        rows += map(row_fields, found.collect())
    return rows


def check_counts(counts: BatchCounts, records: list[Record]) -> None:
    """Check the counts of what was tolerated."""
    decoded = [decode(record, lenient=True) for record in records]
    tolerated = [item.tolerated for item in decoded if isinstance(item, Decoded) and item.tolerated]
    counts.check()
    assert counts.tolerated == len(tolerated)
    clauses = Counter(clause for problems in tolerated for clause in {p.clause for p in problems})
    assert counts.by_tolerated.keys() == clauses.keys()
    for clause, rules in counts.by_tolerated.items():
        assert max(rules.values()) <= clauses[clause] <= sum(rules.values())


@pytest.mark.parametrize(
    "in_java", [pytest.param(True, marks=pytest.mark.release), False], ids=["java", "python"]
)
def test_known_producers(session: SparkSession, tmp_path: Path, *, in_java: bool) -> None:
    """Each record of `spec-conformance/lenient.md` has the row of `decode`, and is counted by its rules."""
    rows, offsets = frame(session, PRODUCERS, parts=1)
    files = ParquetFiles(session, f"file://{tmp_path}")
    writer = BatchWriter(tasks=2)
    counts = writer.write(rows, batch_of(offsets, in_java=in_java, lenient=True), files.append)
    files.check(counts)
    check_counts(counts, PRODUCERS)
    tables = (session.read.parquet(f"{tmp_path}/{table}") for table in ("events", "quarantine"))
    number = "cast((offset - 10) * 2 + substring(topic, 6) AS int)"  # see `frame`
    check_rows(rows_in(*tables, number=number), PRODUCERS)
    assert counts.by_tolerated["K-09"] == {NO_LABEL: 8}
    assert counts.by_tolerated["K-05"] == {"was read as": 5}


def test_many_rules_of_one_event() -> None:
    """Of an event with many deviations some are counted one by one, and the others once."""
    labels = {"A,A,C": {"a\nwas read as b\nc": 2}}
    assert rule_counts(labels, 3) == {"A": {"a": 2, "was read as": 2}, "C": {"c": 2}}
    assert rule_counts(labels, 1) == {"A": {"a": 2}, OTHERS: {OTHERS: 2}}
    assert rule_counts({"A,A": {"a": 2}}, 3) == {"A": {OTHERS: 2}}  # cut
    assert rule_counts({OTHERS: {OTHERS: 5}}, 3) == {OTHERS: {OTHERS: 5}}


def send(lake: Lake, records: list[Record]) -> list[Record]:
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for record in records:
        producer.produce(lake.topic, value=record.value, headers=list(record.headers))
    assert producer.flush(30) == 0
    return records


@pytest.mark.broker
def test_files(lake: Lake) -> None:
    """A topic of known producers lands in Parquet; the summary says how much of it was tolerated."""
    send(lake, PRODUCERS)
    summary = lake.run(lenient=True)
    check_counts(summary.counts, PRODUCERS)
    tables = (lake.spark.read.parquet(f"{lake.out}/{table}") for table in ("events", "quarantine"))
    check_rows(rows_in(*tables), PRODUCERS)
    assert [line.split() for line in summary.to_text().splitlines() if NO_LABEL in line] == [
        [*NO_LABEL.split(), "K-09", "8"]
    ]


def table_rows(lake: Lake, table_format: Any) -> list[dict[str, Any]]:
    """Return the rows of both tables."""
    tables: list[Any] = [
        table_in_folder(lake.spark, table_format, f"file://{lake.out}/{table}")
        for table in ("events", "quarantine")
    ]
    if table_format == "iceberg":
        for table in tables:
            lake.spark.catalog.refreshTable(table._sql_name)
    return rows_in(*(lake.spark.table(table._sql_name) for table in tables))


@pytest.mark.broker
@pytest.mark.release
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_from_strict_to_lenient_and_back(lake: Lake, table_format: Any) -> None:
    """A table that a strict run made gets the column; rows of strict runs have null in it."""
    send(lake, DEVIATING)
    summary = lake.run(to=table_format)
    assert (summary.counts.events, summary.counts.quarantined, summary.counts.tolerated) == (1, 4, 0)
    send(lake, PRODUCERS)
    check_counts(lake.run(to=table_format, lenient=True).counts, PRODUCERS)
    send(lake, DEVIATING[3:])
    total = lake.run(to=table_format).total
    rows = table_rows(lake, table_format)
    assert total.tolerated == sum("tolerated" in row for row in rows)
    strict, first = [expected(record) for record in DEVIATING], len(DEVIATING)
    found = {row["number"]: row for row in rows}
    read_strictly = [*range(first), *range(first + len(PRODUCERS), len(found))]
    assert [found.pop(number) for number in read_strictly] == [
        {**fields, "number": number}
        for number, fields in zip(read_strictly, [*strict, *strict[3:]], strict=True)
    ]
    check_rows([{**row, "number": row["number"] - first} for row in found.values()], PRODUCERS)


@pytest.mark.release
@pytest.mark.broker
def test_begun_leniently_and_finished_strictly(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that a lenient run has begun is finished leniently, so no record is in both tables."""
    commit = TablesTarget._commit

    def die(self: TablesTarget, table: str) -> None:
        commit(self, table)  # of the quarantine, which is the first
        raise RuntimeError

    send(lake, DEVIATING)
    with monkeypatch.context() as patch:
        patch.setattr(TablesTarget, "_commit", die)
        with pytest.raises(PipelineFailed):
            lake.run(to="delta", lenient=True)
    summary = lake.run(to="delta")
    assert summary.recovered == 0
    assert (summary.total.events, summary.total.quarantined, summary.total.tolerated) == (4, 1, 3)
    check_rows(table_rows(lake, "delta"), DEVIATING)
