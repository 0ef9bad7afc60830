"""Data of confluent-kafka's serializers, with a schema registry in the process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pydantic
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import StringSerializer

from cloudevents_kafka import (
    BrokenData,
    DataError,
    Decoded,
    Event,
    EventConsumer,
    EventProducer,
    Undecodable,
    from_record,
    to_record,
)
from cloudevents_kafka.clients.serdes import data_reader, serialize_data
from cloudevents_kafka.codecs import avro
from cloudevents_kafka.testing import FakeConsumer, FakeProducer
from tests.support.cases import each

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "total", "type": "string"}],
}
ORDER = {"id": 17, "total": "1009.50"}
PLACED = Event(id="1", source="/shop", type="order.placed", datacontenttype="application/avro")
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "prefix": {},
    "header": {"schema.id.serializer": header_schema_id_serializer},
}


@pytest.fixture
def registry_client() -> SchemaRegistryClient:
    """A mock schema registry in this process."""
    return SchemaRegistryClient.new_client({"url": "mock://orders"})


def serializer(client: SchemaRegistryClient, way: str) -> Any:
    return AvroSerializer(client, json.dumps(SCHEMA), conf=CONFIGURATIONS[way] or None)


@pytest.mark.parametrize("way", CONFIGURATIONS)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_avro_data_comes_back(registry_client: SchemaRegistryClient, way: str, mode: Any) -> None:
    """Data is written and read in both modes, with the schema id in the data or in a header."""
    event, headers = serialize_data(PLACED, ORDER, serializer(registry_client, way), "orders")
    fake = FakeProducer()
    with EventProducer(fake, topic="orders", mode=mode) as producer:
        producer.send(event, headers=headers)
    consumer = FakeConsumer(fake.log)
    consumer.subscribe(["orders"])
    reader = data_reader(AvroDeserializer(registry_client))
    (item,) = EventConsumer(consumer, data_reader=reader).items(idle_timeout=0.05)
    assert isinstance(item, Decoded)
    assert item.event == event
    assert item.event.data == ORDER


@dataclass
class Order:
    id: int
    total: Decimal


class OrderModel(pydantic.BaseModel):
    id: int
    total: Decimal


JSON_SCHEMA = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.mark.parametrize("way", ["avro", "json"])
@pytest.mark.parametrize("data_type", [Order, OrderModel, {"order.placed": Order}])
def test_what_a_deserializer_returns_becomes_a_type(
    registry_client: SchemaRegistryClient, way: str, data_type: Any
) -> None:
    """A reader of a registry and a type work together; JSON with an id in front is not read as JSON."""
    writer: Any = serializer(registry_client, "prefix")
    deserializer: Any = AvroDeserializer(registry_client)
    if way == "json":
        writer = JSONSerializer(json.dumps(JSON_SCHEMA), registry_client)
        deserializer = JSONDeserializer(json.dumps(JSON_SCHEMA))
    placed = PLACED.replace(datacontenttype=f"application/{way}")
    fake = FakeProducer()
    with EventProducer(fake, topic="orders") as producer:
        for data in (ORDER, {"id": 18, "total": "much"}):
            event, headers = serialize_data(placed, data, writer, "orders")
            producer.send(event, headers=headers)
        producer.send(placed.replace(data=b"\x00\x00\x00\x00\x63unknown"))
    consumer = FakeConsumer(fake.log)
    consumer.subscribe(["orders"])
    reader = data_reader(deserializer)
    events = EventConsumer(consumer, data_reader=reader, data_type=data_type)
    good, wrong, unknown = events.items(idle_timeout=0.05)
    assert isinstance(good, Decoded)
    assert (good.event.data.id, good.event.data.total) == (17, Decimal("1009.50"))
    for item, reason in ((wrong, "total"), (unknown, f"data is not application/{way}")):
        assert isinstance(item, Undecodable)
        assert isinstance(item.error, BrokenData)
        assert reason in str(item.error)
        assert "much" not in str(item.error)


def test_with_the_id_in_a_header_data_is_plain_avro(registry_client: SchemaRegistryClient) -> None:
    """With the id in a header, readers without a registry can read the payload."""
    event, headers = serialize_data(PLACED, ORDER, serializer(registry_client, "header"), "orders")
    assert [name for name, _ in headers] == ["__value_schema_id"]
    codec = avro(SCHEMA)
    assert codec.decode is not None
    assert codec.decode(event.payload or b"") == ORDER
    assert event.replace(data=None) == PLACED
    record = to_record(event, headers=headers, topic="orders")
    assert to_record(from_record(record), like=record, topic="orders") == record
    prefixed, none = serialize_data(PLACED, ORDER, serializer(registry_client, "prefix"), "orders")
    assert none == []
    assert (prefixed.payload or b"")[5:] == event.payload


@each("mode", ["binary", "structured"])
@pytest.mark.parametrize("way", CONFIGURATIONS)
def test_forwarded_data_is_read_with_its_own_schema(
    registry_client: SchemaRegistryClient, mode: Any, way: str
) -> None:
    """If a record with the id of its schema in a header is forwarded with other data, the old id goes."""
    event, headers = serialize_data(PLACED, ORDER, serializer(registry_client, "header"), "orders")
    came = to_record(event, mode=mode, headers=headers)
    writer = AvroSerializer(registry_client, '{"type": "string"}', conf=CONFIGURATIONS[way] or None)
    paid, ids = serialize_data(from_record(came).replace(type="paid"), "1009.50", writer, "payments")
    sent = to_record(paid, like=came, headers=ids)
    assert [name for name, _ in sent.headers].count("__value_schema_id") == len(ids)
    read = data_reader(AvroDeserializer(registry_client))
    assert from_record(sent).read_with(lambda event: read(event, sent)).data == "1009.50"


def test_what_serializers_raise_is_a_data_error(registry_client: SchemaRegistryClient) -> None:
    """Wrong values and payloads are a DataError with the serializer's error as its cause."""
    with pytest.raises(DataError, match="a dict cannot be written as application/avro") as caught:
        serialize_data(PLACED, {"id": "S3CRET"}, serializer(registry_client, "prefix"), "orders")
    assert caught.value.__cause__ is not None
    assert "S3CRET" not in str(caught.value)
    read = data_reader(AvroDeserializer(registry_client))
    for payload in (b"", b"{}", b"\x05wrong magic", b"\x00\x00\x00\x00\x63unknown"):
        event = PLACED.replace(data=payload)
        record = to_record(event)
        reading = event.read_with(lambda event, record=record: read(event, record))
        with pytest.raises(DataError, match="data is not application/avro"):
            _ = reading.data
        assert reading.payload == payload


def test_any_serializer_will_do() -> None:
    """A serializer may need no registry; None removes the data."""
    text = PLACED.replace(datacontenttype="text/plain")
    event, headers = serialize_data(text, "é", StringSerializer("utf_8"), "orders")
    assert (event.payload, headers) == ("é".encode(), [])
    event, headers = serialize_data(text.replace(data="é"), None, StringSerializer("utf_8"), "orders")
    assert (event.payload, headers) == (None, [])
    with pytest.raises(DataError, match="the codec for text/plain must return bytes, got a NoneType"):
        serialize_data(text, "é", lambda value, context: None, "orders")
    with pytest.raises(
        DataError, match="the codec for data without a content type must return bytes, got a NoneType"
    ):
        serialize_data(text.replace(datacontenttype=None), "é", lambda value, context: None, "orders")
