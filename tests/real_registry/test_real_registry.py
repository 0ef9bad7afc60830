"""Data that others' serializers have framed is read by the schemas of a real registry."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer

from cloudevents_kafka import Event, from_record, to_record
from cloudevents_kafka.cli.app import app
from cloudevents_kafka.clients.schema_registry import registry_client
from cloudevents_kafka.clients.serdes import data_reader, serialize_data
from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineOptions, local_session
from cloudevents_kafka.testing import LocalBroker
from tests.support.real_registry import RealRegistry, find_newer_java

pytestmark = [
    pytest.mark.release,
    pytest.mark.broker,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "total", "type": "double"}],
}
WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]}
JSON_ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "total": {"type": "number"}},
}
VALUES = [{"id": number, "total": number / 2} for number in range(5)]
JAVASCRIPT = "@kafkajs/confluent-schema-registry@4.1.0"


@pytest.fixture(scope="module")
def registry() -> Iterator[RealRegistry]:
    home = find_newer_java()
    if home is None:
        pytest.skip("Java 21")
    with RealRegistry(home) as started:
        yield started


@pytest.fixture(scope="module")
def client(registry: RealRegistry) -> Iterator[SchemaRegistryClient]:
    with closing(registry_client({"url": registry.url})) as made:
        yield made


def order(data: bytes, type_: str = "order.avro") -> Event:
    return Event(id="1", source="/s", type=type_, datacontenttype="application/avro", data=data)


def by_python(client: SchemaRegistryClient, subject: str, schema: dict[str, Any] = ORDER) -> list[bytes]:
    """Return orders as confluent-kafka's serializer frames them."""
    conf = {"subject.name.strategy": lambda *_: subject}
    serializer = AvroSerializer(client, json.dumps(schema), conf=conf)
    events = [serialize_data(order(b""), {"note": "x", **value}, serializer, "t")[0] for value in VALUES]
    return [event.payload or b"" for event in events]


def by_javascript(registry: RealRegistry, subject: str, folder: Path) -> list[bytes]:
    """Return orders as kafkajs' registry client frames them."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("Node.js with npm")
    script = Path(__file__).with_name("encode.js")
    shutil.copy(script, folder)
    (folder / "package.json").write_text("{}")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", JAVASCRIPT]
    subprocess.run(install, cwd=folder, check=True, timeout=300)
    done = subprocess.run(
        ["node", script.name, registry.url, subject],
        cwd=folder,
        input=json.dumps({"schema": {**ORDER, "namespace": "shop"}, "values": VALUES}),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [bytes.fromhex(line) for line in done.stdout.split()]


def consumed(broker: LocalBroker, topic: str, *options: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["consume", "-b", broker.bootstrap_servers, "-t", topic, *options])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def produce(broker: LocalBroker, topic: str, events: list[Event]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for event in events:
        record = to_record(event, mode="binary")
        producer.produce(topic, record.value, headers=list(record.headers))
    assert producer.flush(30) == 0


def test_serdes(client: SchemaRegistryClient) -> None:
    """What confluent-kafka's serializers write with the registry, its deserializers read."""
    for serializer, deserializer in (
        (AvroSerializer(client, json.dumps(ORDER)), AvroDeserializer(client)),
        (
            JSONSerializer(json.dumps(JSON_ORDER), client),
            JSONDeserializer(None, schema_registry_client=client),
        ),
    ):
        read, topic = data_reader(deserializer), f"serdes-{type(serializer).__name__}"
        for value in VALUES:
            event, headers = serialize_data(order(b""), value, serializer, topic)
            record = to_record(event, mode="binary", headers=headers)
            assert read(from_record(record), record) == value


def test_doctor(registry: RealRegistry) -> None:
    """The registry answers as one."""
    result = CliRunner().invoke(app, ["doctor", "consume", "--registry", registry.url])
    assert (result.exit_code, f"{registry.url} answers: " in result.stdout) == (0, True), result.output


@pytest.mark.parametrize("writer", ["Python", "JavaScript"])
def test_consume(
    registry: RealRegistry,
    client: SchemaRegistryClient,
    kafka_broker: LocalBroker,
    kafka_topic: str,
    tmp_path: Path,
    writer: str,
) -> None:
    """`consume` decodes framed data; an id that the registry does not have is the reason of an error."""
    if writer == "Python":
        payloads = by_python(client, "consume-python")
    else:
        payloads = by_javascript(registry, "consume-javascript", tmp_path)
    produce(kafka_broker, kafka_topic, [order(data) for data in [*payloads, b"\0\0\1\0\0x"]])
    *lines, unknown = consumed(kafka_broker, kafka_topic, "--schema-registry", registry.url)
    assert [line["decoded"] for line in lines] == VALUES
    assert unknown["decode_error"] == "the registry has no schema 65536"


def test_references(
    registry: RealRegistry, client: SchemaRegistryClient, kafka_broker: LocalBroker, kafka_topic: str
) -> None:
    """Data of a schema that refers to another is decoded by both."""
    part = {"type": "record", "name": "Part", "fields": [{"name": "size", "type": "int"}]}
    client.register_schema("part", Schema(json.dumps(part), "AVRO"))
    whole = {"type": "record", "name": "Whole", "fields": [{"name": "part", "type": "Part"}]}
    reference = SchemaReference("Part", "part", 1)
    number = client.register_schema("whole", Schema(json.dumps(whole), "AVRO", [reference]))
    produce(kafka_broker, kafka_topic, [order(b"\0" + number.to_bytes(4, "big") + b"\x02")])
    (line,) = consumed(kafka_broker, kafka_topic, "--schema-registry", registry.url)
    assert line["decoded"] == {"part": {"size": 1}}


@pytest.mark.spark
def test_landing(
    registry: RealRegistry,
    client: SchemaRegistryClient,
    kafka_broker: LocalBroker,
    kafka_topic: str,
    tmp_path: Path,
) -> None:
    """Framed data lands by the schemas of its writers, two versions of Python's and that of JavaScript."""
    (tmp_path / "js").mkdir()
    payloads = [
        *by_python(client, "land"),
        *by_python(client, "land", WIDER),
        *by_javascript(registry, "land-javascript", tmp_path / "js"),
    ]
    produce(kafka_broker, kafka_topic, [order(data) for data in [*payloads, b"\0\0\1\0\0x", b"none"]])
    with local_session(master="local[2]", formats=["avro"]) as spark:
        options = PipelineOptions(
            bootstrap_servers=kafka_broker.bootstrap_servers,
            topics=(kafka_topic,),
            out=str(tmp_path / "lake"),
            once=True,
            schemas={"order.*": WIDER},
            schema_registry={"url": registry.url, "timeout": "30"},
        )
        counts = EventPipeline(options, spark=spark).run().counts
        assert (counts.events, counts.quarantined) == (15, 2)
        rows = spark.read.parquet(str(tmp_path / "lake" / "events")).select("value.*").collect()
        reasons = spark.read.parquet(str(tmp_path / "lake" / "quarantine")).select("error.reason").collect()
    expected = [(value["id"], value["total"], note) for note in "-x-" for value in VALUES]
    assert sorted(map(tuple, rows)) == sorted(expected)
    assert sorted(row.reason for row in reasons) == [
        "data: it must have a schema that the registry knows, got 65536",
        "data: it must have the id of its schema in front of it, or in a header, got none",
    ]
