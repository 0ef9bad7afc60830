"""Data lands by a schema: whole, or in the quarantine with its reason, each record once."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.cli.app import app
from cloudevents_kafka.spark._patterns import patterns_in
from cloudevents_kafka.spark.pipeline import PipelineFailed, PipelineOptions, Summary, WrongTable
from cloudevents_kafka.spark.pipeline.landing import TablesTarget
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from cloudevents_kafka.spark.typed.schemas import has_avro
from tests.spark.pipeline.lake import Lake
from tests.spark.pipeline.landing.test_fan_out import Killed, kill_after
from tests.spark.typed.payloads import AVRO, avro_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

ORDER = {
    "type": "object",
    "properties": {"total": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}},
    "required": ["total"],
}
ROUTES = {"order.placed": "placed", "order.paid": "paid"}
SCHEMAS = {"order.placed": ORDER, "order.paid": AVRO}
PAID = {"text": "ä", "count": 1, "flag": True, "share": 1.0, "maybe": None, "kind": "NEW", "raw": b""}
PAID |= {"four": b"1234", "list": [1], "map": {"a": 1}, "nested": {"name": "b"}}
PLACED = [
    (b'{"total":1,"at":"2024-01-01T00:00:00Z","more":1}', 1),
    (b'{"total":2.0,"at":"2024-01-01t01:00:00+01:00"}', 2),  # as Python writes it again
    (b'{"total":3}', 3),
    (b"{}", "data: /total must be there, got no such member"),
    (b'{"total":1,"total":2}', "data: /total must be there once, got it more than once"),
    (b'{"total":1} x', "data: it must be one JSON text, got Extra data at character 12"),
    (b'{"total":"1"}', "data: /total must be an integer of 64 bits, got a text"),
    (None, "data: it must be one JSON text, got no data"),
]
BEHIND = "data: /nested/name must be of the schema, got wrong data: bytes follow its end"


def send(lake: Lake, times: int = 1) -> int:
    """Send events of three types, and a record without attributes; return the number of all."""
    events = [("order.placed", "application/json", payload) for payload, _ in PLACED]
    events += [("order.paid", "application/avro", avro_of(PAID) + more) for more in (b"", b"x")]
    events += [("order.placed", "application/json;charset=utf-16", '{"total":4}'.encode("utf-16"))]
    events += [("visit", "text/plain", b"hello")]
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    records = [
        to_record(
            Event(id=str(n), source="/s", type=type_, datacontenttype=media, data=payload), mode="binary"
        )
        for n, (type_, media, payload) in enumerate(events)
    ]
    for record in records * times:
        producer.produce(lake.topic, value=record.value, headers=list(record.headers))
    for _ in range(times):
        producer.produce(lake.topic, value=b"{", headers=[("ce_id", b"1")])
    assert producer.flush(30) == 0
    return (len(records) + 1) * times


def rows_of(lake: Lake, to: Any, table: str) -> DataFrame:
    if to == "parquet":
        return lake.spark.read.parquet(f"{lake.out}/{table}")
    opened: Any = table_in_folder(lake.spark, to, f"file://{lake.out}/{table}")
    if to == "iceberg":
        lake.spark.catalog.refreshTable(opened._sql_name)
    return lake.spark.table(opened._sql_name)


def check(lake: Lake, to: str, summary: Summary, records: int, times: int = 1) -> None:
    """Check that each record is there once: read whole, or with its reason, and counted as such."""
    total = summary.total.check()
    assert (total.read, total.events + total.quarantined) == (records, records)
    tables = [*ROUTES.values(), "events", "quarantine"]
    offsets = [row.offset for table in tables for row in rows_of(lake, to, table).select("offset").collect()]
    assert sorted(offsets) == list(range(records))
    placed = rows_of(lake, to, "placed")
    assert placed.schema["value"].dataType.simpleString() == "struct<total:bigint,at:timestamp>"
    found = placed.selectExpr("value.total", "string(value.at) AS at", "data", "data_kind").collect()
    assert Counter(found) == {
        (1, "2024-01-01 00:00:00", None, None): times,
        (2, "2024-01-01 00:00:00", None, None): times,
        (3, None, None, None): times,
        (4, None, None, None): times,
    }
    paid = [row.asDict(recursive=True) for row in rows_of(lake, to, "paid").select("value.*").collect()]
    raw = [{name: bytes(v) if isinstance(v, bytearray) else v for name, v in row.items()} for row in paid]
    assert raw == [PAID] * times
    events = rows_of(lake, to, "events")
    assert "value" not in events.columns
    assert {bytes(row.data) for row in events.select("data").collect()} == {b"hello"}
    errors = rows_of(lake, to, "quarantine").where("error.verdict = 'broken-data'")
    reasons = Counter(row.reason for row in errors.select("error.reason").collect())
    assert reasons == dict.fromkeys([*(why for _, why in PLACED if isinstance(why, str)), BEHIND], times)
    by_reason = total.by_reason["broken-data"]
    assert sum(by_reason.values()) == times * len(reasons)
    assert by_reason["data: /total must be there"] == times


@pytest.mark.parametrize(
    "to", ["parquet", *(pytest.param(to, marks=pytest.mark.release) for to in ("delta", "iceberg"))]
)
@pytest.mark.parametrize(
    "in_java", [True, pytest.param(False, marks=pytest.mark.release)], ids=["java", "python"]
)
def test_data_by_type(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch, *, in_java: bool) -> None:
    """Tables of types have their data by their schemas; the quarantine has each misfit with its reason."""
    if not in_java:
        starts_in_java = "cloudevents_kafka.spark.pipeline.batches._batch.BatchWriter.starts_in_java"
        monkeypatch.setattr(starts_in_java, lambda *_: False)
    records = send(lake)
    check(lake, to, lake.run(to=to, tables=ROUTES, schemas=SCHEMAS), records)


@pytest.mark.parametrize(
    ("to", "step"),
    [
        pytest.param(to, step, marks=pytest.mark.release)
        for to in ("delta", "iceberg")
        for step in range(1, 6)
    ],
)
def test_killed_between_tables(lake: Lake, to: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that was begun is finished by the schemas of its note, also if others are set meanwhile."""
    records = send(lake, 2)
    with monkeypatch.context() as patch:
        kill_after(step, patch)
        with pytest.raises(PipelineFailed):
            lake.run(to=to, tables=ROUTES, schemas=SCHEMAS)
    summary = lake.run(to=to, tables=ROUTES, schemas={"order.placed": "total STRING", "order.paid": AVRO})
    assert summary.recovered == 0
    check(lake, to, summary, records, times=2)


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_one_schema_for_all(lake: Lake, to: str) -> None:
    """One schema needs no other tables; the column is added to an older table; with rescue more lands."""
    records = send(lake)
    lake.run(to=to)
    records += send(lake)
    summary = lake.run(to=to, schemas={"order.placed": "total BIGINT NOT NULL"}, rescue=True)
    total = summary.total.check()
    assert total.events + total.quarantined == total.read == records
    rows = rows_of(lake, to, "events")
    if to == "parquet":
        rows = lake.spark.read.option("mergeSchema", True).parquet(f"{lake.out}/events")
    typed = rows.where("value IS NOT NULL").selectExpr("value.total", "value._rescued").collect()
    assert Counter(map(tuple, typed)) == {
        (1, '{"/at":"2024-01-01T00:00:00Z","/more":1}'): 1,
        (2, '{"/at":"2024-01-01t01:00:00+01:00"}'): 1,
        (3, None): 1,
        (4, None): 1,
        (None, '{"/total":"1"}'): 1,
    }


def send_data(
    lake: Lake, type_: str, media: str, *payloads: bytes | None, subject: str | None = None
) -> None:
    """Send events of one type."""
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for n, payload in enumerate(payloads):
        parts = {"subject": subject, "datacontenttype": media, "data": payload}
        record = to_record(Event(id=str(n), source="/s", type=type_, **parts), mode="binary")
        producer.produce(lake.topic, value=record.value, headers=list(record.headers))
    assert producer.flush(30) == 0


DIGITS = b"1" * 1_001
NAME = b"n" * 50_001
POISON = {
    # Numbers and names of members that the schema does not have, beyond the limits of Spark's parser.
    b'{"total":1,"x":' + DIGITS + b"}": 1,
    b'{"total":2,"x":{"y":[0.' + DIGITS + b"]}}": 2,
    b'{"total":3,"x":1e' + DIGITS + b"}": 3,
    b'{"total":4,"' + NAME + b'":1}': 4,
    b'{"total":5,"x":{"' + NAME + b'":1}}': 5,
    b'{"total":6,"x":' + b"[" * 600 + b"]" * 600 + b"}": 6,
    b'{"total":7,"tags":{"' + NAME + b'":1}}': "data: /tags must have names of at most 50000 characters",
    b'{"total":8,"tags":{"\\ud800":"x"}}': "data: /tags/* must be an integer of 32 bits",
    b'{"total":' + DIGITS + b"}": "data: /total must be an integer of 32 bits",
    b'{"total":9,"share":1e39}': "data: /share must be a number of 32 bits",
    b'{"total":9,"at":"9999-12-31T23:59:59-01:00"}': (
        "data: /at must be a time with an offset, to the microsecond"
    ),
}


@pytest.mark.parametrize("to", ["parquet", pytest.param("iceberg", marks=pytest.mark.release)])
@pytest.mark.parametrize("rescue", [False, pytest.param(True, marks=pytest.mark.release)])
def test_no_record_ends_a_pipeline(lake: Lake, to: str, *, rescue: bool) -> None:
    """Names and numbers of any size land, or are misfits: few, which the driver reads, and many."""
    schema = "total INT, tags MAP<STRING, INT>, share FLOAT, at TIMESTAMP"
    for times in (1, 40):
        send_data(lake, "order", "application/json", *list(POISON) * times)
        counts = lake.run(to=to, schemas={"order": schema}, rescue=rescue).counts
        assert counts.read == len(POISON) * times
        if not rescue:
            reasons = {why: times for why in POISON.values() if isinstance(why, str)}
            assert counts.by_reason["broken-data"] == reasons
    if not rescue:
        totals = rows_of(lake, to, "events").groupBy("value.total").count().collect()
        assert {row.total: row["count"] for row in totals} == {
            why: 41 for why in POISON.values() if isinstance(why, int)
        }


NESTED = "total INT, lines ARRAY<STRUCT<sku: STRING, count: INT>>, at DATE"


@pytest.mark.parametrize("to", ["iceberg", pytest.param("delta", marks=pytest.mark.release)])
def test_changed_type(lake: Lake, to: str) -> None:
    """Where a schema has another type than the table, data of that type goes to the quarantine."""
    json_ = "application/json"
    send_data(lake, "order", json_, b'{"total":1,"lines":[{"sku":"a","count":1}],"at":"2024-01-01"}')
    lake.run(to=to, schemas={"order": NESTED})
    send_data(
        lake,
        "order",
        json_,
        b'{"total":2,"lines":[{"sku":"b","count":2}]}',
        b'{"total":3,"lines":[{"sku":"c","count":"many"}]}',
        b'{"total":4,"at":"2024-01-01T00:00:00Z","note":true}',
        b'{"total":5,"note":false}',
    )
    changed = NESTED.replace("count: INT", "count: STRING").replace("at DATE", "at TIMESTAMP, note BOOLEAN")
    summary = lake.run(to=to, schemas={"order": changed})
    assert summary.total.by_reason["broken-data"] == {
        "data: /lines/*/count must be an integer of 32 bits": 1,
        "data: /at must be a date": 1,
    }
    (warning,) = [text for text in lake.warnings if "must have the types of the table" in text]
    assert "value.lines.element.count int, value.at date" in warning
    rows = rows_of(lake, to, "events").orderBy("offset").selectExpr("value.total", "value.note")
    assert [tuple(row) for row in rows.collect()] == [(1, None), (2, None), (5, False)]
    # With the old schema again, or in a fresh table, they land by a replay.


@pytest.mark.parametrize("to", ["iceberg", pytest.param("delta", marks=pytest.mark.release)])
@pytest.mark.parametrize("step", [0, pytest.param(1, marks=pytest.mark.release)])
def test_a_table_changed_after_a_batch_was_begun(
    lake: Lake, to: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A begun batch that no table has is read in the types that the table has now; each record lands once."""
    send_data(lake, "order", "application/json", b'{"total":1}')
    lake.run(to=to, schemas={"order": "total INT"})
    send_data(lake, "order", "application/json", b'{"total":2}', b'{"total":"x"}', b"{}", b"[]")
    with monkeypatch.context() as patch:
        # As if another pipeline had made the table after this one has looked.
        patch.setattr(TablesTarget, "fit", lambda self, *_: self._read)
        with pytest.raises(WrongTable, match=r"column value\.total .* must have the type string, got int"):
            lake.run(to=to, schemas={"order": "total STRING"})
    if step:  # killed again, after the commit of the quarantine
        with monkeypatch.context() as patch:
            kill_after(step, patch)
            with pytest.raises(Killed):  # at the start, which finishes the batch
                lake.run(to=to, schemas={"order": "total STRING"})
    summary = lake.run(to=to, schemas={"order": "total STRING"})
    assert (summary.total.read, summary.total.events, summary.total.quarantined) == (5, 3, 2)
    totals = rows_of(lake, to, "events").orderBy("offset").selectExpr("value.total").collect()
    assert [row.total for row in totals] == [1, 2, None]
    assert rows_of(lake, to, "quarantine").count() == 2


@pytest.mark.parametrize("to", ["iceberg", pytest.param("delta", marks=pytest.mark.release)])
def test_changed_type_of_avro(lake: Lake, to: str) -> None:
    """Where a schema of Avro has another type than the table, its data goes to the quarantine."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    send_data(lake, "order", "application/avro", b"\x02")
    lake.run(to=to, schemas={"order": schema})
    send_data(lake, "order", "application/avro", b"\x02x", b"\x02y")
    changed = {**schema, "fields": [{"name": "a", "type": "string"}]}
    summary = lake.run(to=to, schemas={"order": changed})
    reason = "data: it must be of a schema with the types of its table, int at /a"
    assert summary.total.by_reason["broken-data"] == {reason: 2}
    assert rows_of(lake, to, "events").count() == 1


def test_rules_of_options(tmp_path: Path) -> None:
    """Schemas are checked with the options, and each error names the type."""

    def options(**more: Any) -> PipelineOptions:
        return PipelineOptions(bootstrap_servers="b:1", topics=("t",), out="o", **more)

    with pytest.raises(ValueError, match=r"schemas: t: .* got no type at /properties/a"):
        options(schemas={"t": {"type": "object", "properties": {"a": {}}}})
    with pytest.raises(ValueError, match="rescue must be False without schemas"):
        options(rescue=True)
    with pytest.raises(ValueError, match="must have types such as"):
        options(schemas={"": ORDER})
    assert has_avro(options(schemas={"t": AVRO}).schemas)
    (tmp_path / "order.json").write_text(json.dumps(ORDER))
    assert options(schemas={"t": tmp_path / "order.json"}) == options(schemas={"t": ORDER})


def test_the_command_refuses_wrong_schemas(tmp_path: Path) -> None:
    """A schema that has no type of Spark ends the command with exit code 2 and its place."""
    (tmp_path / "order.json").write_text('{"type": "object", "properties": {"a": {"minimum": 1}}}')
    command = [
        "pipeline",
        "-b",
        "b:1",
        "-t",
        "t",
        "-o",
        str(tmp_path),
        "--schema",
        f"t={tmp_path}/order.json",
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "/properties/a" in result.output
    result = CliRunner().invoke(app, [*command[:-1], "order.json"])
    assert "--schema must be TYPES=FILE" in result.output


@pytest.mark.parametrize(
    ("schemas", "routes", "fine"),
    [
        ({"*": "a INT"}, {}, True),
        ({"a": "a INT", "b": "b INT"}, {}, False),
        ({"a": "a INT", "b": "a INT"}, {}, True),
        ({"a": "a INT", "*": "b INT"}, {"a": "x"}, True),
        ({"a.*": "a INT", "b.*": "b INT"}, {"a.*": "x", "b.*": "y"}, True),
        ({"a.*": "a INT", "b.*": "b INT"}, {"a.*": "x", "b.*": "x"}, False),
    ],
)
def test_a_table_has_one_schema(
    session: SparkSession, schemas: dict[str, str], routes: dict[str, str], *, fine: bool
) -> None:
    """Schemas that one table would need at once are refused at the start."""
    from cloudevents_kafka.spark.typed.schemas import open_schemas

    with nullcontext() if fine else pytest.raises(ValueError, match="a table must have one schema, got the"):
        open_schemas(session, schemas, routes)


def test_patterns_in_tables() -> None:
    """Patterns that a route covers, and those that cannot meet a route, are left out."""
    routes = {"a.*": "x", "*.z": "y"}
    assert patterns_in("events", routes, ["a.b", "b", "*"]) == ["b", "*"]
    assert patterns_in("x", routes, ["b", "a.*", "*"]) == ["a.*"]
    assert patterns_in("x", routes, ["a.b", "b.*", "*"]) == ["a.b", "*"]
    assert patterns_in("y", routes, ["b.*", "q.z", "*.c"]) == ["b.*", "q.z"]
