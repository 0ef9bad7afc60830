"""Event data by confluent-kafka's own serializers, such as its ``AvroSerializer``.

A schema registry's serializer writes the schema's id before the data (five bytes, so
that the payload is no plain Avro any more), or, told to, its GUID in a header of the
record, ``__value_schema_id``; then the payload stays what ``datacontenttype`` says.
The header is none of the event's: it goes with the record. Either way is read, but for
data of five bytes and less, which confluent-kafka 2.16 takes for too short in both.

Its ``AvroDeserializer`` hands data to fastavro as it came. A schema that is recursive, or
has arrays of nulls or decimals, lets who writes such data end the process or hold it up:
where that may be a stranger, take `codecs.avro`, which has bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloudevents_kafka.codecs.registry import call_encode
from cloudevents_kafka.consumer import DataReader
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record

Serde = Callable[[Any, Any], Any]
"""A serializer or deserializer of confluent-kafka: takes a value and a SerializationContext."""


def data_reader(deserializer: Serde) -> DataReader:
    """Make of a deserializer what `EventConsumer` takes as ``data_reader``."""
    from confluent_kafka.serialization import MessageField, SerializationContext  # a client, loaded late

    def read(event: Event, record: Record) -> Any:
        context = SerializationContext(record.topic or "", MessageField.VALUE, list(record.headers))
        return deserializer(event.payload, context)

    return read


def serialize_data(event: Event, data: Any, serializer: Serde, topic: str) -> tuple[Event, Headers]:
    """Give an event data by a serializer, and the headers that must go with it to that topic.

    ``producer.send(event, topic, headers=headers)``. None is no data, as everywhere.
    Raises `DataError` for whatever the serializer raises.
    """
    if data is None:
        return event.replace(data=None), []
    from confluent_kafka.serialization import MessageField, SerializationContext

    headers: list[Any] = []  # which the serializer may add to
    context = SerializationContext(topic, MessageField.VALUE, headers)
    payload = call_encode(lambda value: serializer(value, context), data, event.datacontenttype)
    return event.replace(data=payload), headers
