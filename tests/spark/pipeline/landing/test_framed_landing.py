"""Framed data lands by its writers' schemas, through kills; a registry that is away ends the run."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.cli.app import app
from cloudevents_kafka.clients.serdes import serialize_data
from cloudevents_kafka.spark.pipeline import PipelineFailed, PipelineOptions, ReplayOptions, replay_quarantine
from tests.spark.pipeline.lake import Lake, until
from tests.spark.pipeline.landing.test_fan_out import kill_after
from tests.spark.pipeline.landing.test_typed_landing import rows_of
from tests.spark.typed.test_framed import READER, VERSIONS
from tests.support.registries import slow_registry

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

UNKNOWN = "data: it must have a schema that the registry knows, got 999"
NONE = "data: it must have the id of its schema in front of it, or in a header, got none"


class Registry:
    """A registry that may be away."""

    def __init__(self) -> None:
        self.client: Any = SchemaRegistryClient.new_client({"url": "mock://orders"})
        self.error: Exception | None = None

    def get_schema(self, number: int) -> Any:
        return self._ask("get_schema", number)

    def get_schema_by_guid(self, guid: str) -> Any:
        return self._ask("get_schema_by_guid", guid)

    def _ask(self, name: str, key: Any) -> Any:
        if self.error is not None:
            raise self.error
        return getattr(self.client, name)(key)


def send(lake: Lake, registry: Registry, times: int = 1) -> int:
    """Send orders by two versions in both modes, three that do not fit, and another event."""
    values: list[Any] = [{"id": 1, "total": 0.5, "old": ""}, {"id": 2, "total": 3, "note": "x", "at": 0}]
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    sent = 0
    for mode in ("binary", "structured"):
        order = Event(id="1", source="/s", type="order", datacontenttype="application/avro")
        for schema, value in zip(VERSIONS, values, strict=False):
            for conf in (None, {"schema.id.serializer": header_schema_id_serializer}):
                serializer = AvroSerializer(registry.client, json.dumps(schema), conf=conf)
                event, headers = serialize_data(order, value, serializer, lake.topic)
                record = to_record(event, mode=mode)  # type: ignore[arg-type]
                all_headers = [*record.headers, *headers]
                for _ in range(times):
                    producer.produce(lake.topic, value=record.value, headers=all_headers)
                sent += times
    others = [("order", b"\0\0\0\x03\xe7x"), ("order", b"\x02"), ("visit", b"\0\0\0\x03\xe7x")]
    for type_, data in others:
        record = to_record(Event(id="1", source="/s", type=type_, data=data), mode="binary")
        producer.produce(lake.topic, value=record.value, headers=list(record.headers))
    assert producer.flush(30) == 0
    return sent + len(others)


def check(lake: Lake, to: str, times: int = 1) -> None:
    """Check that each record is there once: read whole, or with its reason."""
    events = rows_of(lake, to, "events")
    orders = events.where("type = 'order'").selectExpr("value.id", "value.total", "value.note", "data")
    assert Counter(map(tuple, orders.collect())) == {
        (1, 0.5, None, None): 4 * times,
        (2, 3.0, "x", None): 4 * times,
    }
    visits = events.where("type = 'visit'").select("data").collect()
    assert [bytes(row.data) for row in visits] == [b"\0\0\0\x03\xe7x"]
    quarantined = rows_of(lake, to, "quarantine").selectExpr("error.verdict", "error.reason").collect()
    assert sorted(map(tuple, quarantined)) == [("broken-data", UNKNOWN), ("broken-data", NONE)]


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
@pytest.mark.parametrize(
    "in_java", [True, pytest.param(False, marks=pytest.mark.release)], ids=["java", "python"]
)
def test_framed_data(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch, *, in_java: bool) -> None:
    """While the registry is away nothing lands; a new start lands all, each by its writer's schema."""
    if not in_java:
        starts_in_java = "cloudevents_kafka.spark.pipeline.batches._batch.BatchWriter.starts_in_java"
        monkeypatch.setattr(starts_in_java, lambda *_: False)
    registry = Registry()
    records = send(lake, registry)
    options: dict[str, Any] = {"to": to, "schemas": {"order": READER}, "schema_registry": registry}
    registry.error = SchemaRegistryError(503, 50301, "later")
    with pytest.raises(PipelineFailed, match="the schema registry must return the schema") as caught:
        lake.run(**options)
    assert not caught.value.final
    registry.error = None
    total = lake.run(**options).total.check()
    assert (total.read, total.events, total.quarantined) == (records, 9, 2)
    assert total.by_reason["broken-data"][UNKNOWN.partition(", got")[0]] == 1
    check(lake, to)


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "byte by byte"])
def test_a_registry_that_holds_its_answer(lake: Lake, *, drips: bool) -> None:
    """A registry that accepts and does not answer ends the run by its time-out; nothing has landed."""
    registry = Registry()
    records = send(lake, registry)
    options: dict[str, Any] = {"schemas": {"order": READER}}
    with slow_registry(drips=drips) as slow:
        settings = {"url": slow.url, "timeout": "2", "max.retries": "0"}
        with pytest.raises(PipelineFailed, match=r"must return the schema \d+, got .*; no record") as caught:
            lake.run(schema_registry=settings, **options)
        assert slow.asked.is_set()
    assert not caught.value.final
    assert lake.run(schema_registry=registry, **options).total.read == records


def test_stopping_while_a_registry_holds_its_answer(lake: Lake) -> None:
    """A run that is stopped ends at once, without an error, and the next one begins with the same records."""
    registry = Registry()
    records = send(lake, registry)
    options: dict[str, Any] = {"schemas": {"order": READER}}
    with slow_registry() as slow:
        settings = {"url": slow.url, "timeout": "600"}
        with closing(lake.start(schema_registry=settings, **options)) as pipeline:
            until(pipeline, slow.asked.is_set)
            pipeline.stop()
            assert pipeline.wait(300)  # half of the registry's time
            assert pipeline.summary().counts.read == 0
    assert lake.run(schema_registry=registry, **options).total.read == records


@pytest.mark.parametrize("step", [pytest.param(step, marks=pytest.mark.release) for step in range(1, 3)])
def test_killed_between_tables(lake: Lake, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that was begun is read by what its note knows, also if the registry knows more or is away."""
    registry = Registry()
    records = send(lake, registry, 2)
    options: dict[str, Any] = {"to": "delta", "schemas": {"order": READER}, "schema_registry": registry}
    with monkeypatch.context() as patch:
        kill_after(step, patch)
        with pytest.raises(PipelineFailed):
            lake.run(**options)
    registry.error = ConnectionError("refused")
    summary = lake.run(**options)
    assert (summary.recovered, summary.total.read) == (0, records)
    check(lake, "delta", 2)
    again = replay_quarantine(ReplayOptions(out=str(lake.out)), spark=lake.spark)
    assert again.outcomes == {"refused": 2}


@pytest.mark.release
def test_a_replay_asks_the_registry(lake: Lake) -> None:
    """Data whose schema the registry did not know lands by a replay when it does."""
    registry, schema = Registry(), json.dumps(VERSIONS[0])
    order = Event(id="1", source="/s", type="order", datacontenttype="application/avro")
    event, _ = serialize_data(
        order, {"id": 7, "total": 0.5, "old": ""}, AvroSerializer(registry.client, schema), "t"
    )
    record = to_record(event, mode="binary")
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    producer.produce(lake.topic, value=record.value, headers=list(record.headers))
    assert producer.flush(30) == 0
    registry.client, known = SchemaRegistryClient.new_client({"url": "mock://empty"}), registry.client
    options: dict[str, Any] = {"schemas": {"order": READER}, "schema_registry": registry}
    assert lake.run(to="delta", **options).counts.quarantined == 1
    replay = ReplayOptions(out=str(lake.out), apply=True, schema_registry=registry)
    assert replay_quarantine(replay, spark=lake.spark).outcomes == {"refused": 1}
    registry.error = ConnectionError("refused")
    with pytest.raises(PipelineFailed, match="the schema registry must answer"):
        replay_quarantine(replay, spark=lake.spark)
    registry.error, registry.client = None, known
    assert replay_quarantine(replay, spark=lake.spark).outcomes == {"landed": 1}
    assert [row.id for row in rows_of(lake, "delta", "events").select("value.id").collect()] == [7]


def test_rules_of_options() -> None:
    """A registry needs schemas that its data can be read into; its settings are secret."""

    def options(**more: Any) -> PipelineOptions:
        return PipelineOptions(bootstrap_servers="b:1", topics=("t",), out="o", **more)

    settings = {"url": "http://127.0.0.1:1", "basic.auth.user.info": "user:hidden-word"}
    with pytest.raises(ValueError, match="schema_registry must be None without schemas"):
        options(schema_registry=settings)
    union = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}
    with pytest.raises(ValueError, match="unions of null and one type only"):
        options(schema_registry=settings, schemas={"t": union})
    fine = options(schema_registry=settings, schemas={"t": READER})
    assert "hidden-word" not in fine.redact("x user:hidden-word y") + repr(fine)


def test_the_command_takes_settings_of_the_client(tmp_path: Any) -> None:
    """Settings of the client are -X schema.registry.NAME, and errors do not have their values."""
    (tmp_path / "order.avsc").write_text(json.dumps(READER))
    command = ["pipeline", "-b", "b:1", "-t", "t", "-o", str(tmp_path), "--schema-registry", "http://r:1"]
    command += ["--schema", f"t={tmp_path}/order.avsc", "-X", "schema.registry.no.such=hidden-word"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "a schema registry must have settings of its client" in result.output
    assert "hidden-word" not in result.output
