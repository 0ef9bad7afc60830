"""Write and read event data with the serializers of confluent-kafka, such as ``AvroSerializer``.

A serializer for a schema registry writes five bytes with the id of the schema before the data;
``datacontenttype`` does not describe these bytes. With the setting ``schema.id.serializer``, the serializer
writes no bytes before the data, and writes the GUID of the schema to a header of the record. This header,
``__value_schema_id``, belongs to the record, not to the event. A deserializer reads both forms: data that
begins with an id, and data with a GUID in the header. But confluent-kafka 2.16 rejects data of at most five
bytes as too short, even if the GUID is in the header.

``AvroDeserializer`` passes the data to fastavro, which has no limits. If the schema is recursive, or contains
arrays of nulls or decimals, a few bytes can crash or block the process. For untrusted data, use
`codecs.avro`, whose decoder has limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloudevents_kafka.clients.consumer import DataReader
from cloudevents_kafka.codecs.registry import call_encode
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.record import Headers, Record

Serde = Callable[[Any, Any], Any]
"""A confluent-kafka serializer or deserializer, which is called with a value and a SerializationContext.

Examples:
    >>> from cloudevents_kafka.clients.serdes import Serde
    >>> from confluent_kafka.serialization import StringDeserializer
    >>> deserializer: Serde = StringDeserializer("utf_8")
    >>> deserializer(b"9.50", None)
    '9.50'
"""


def data_reader(deserializer: Serde) -> DataReader:
    """Return a function for the ``data_reader`` of an `EventConsumer`; it reads data with a deserializer.

    Raises `TypeError` for a deserializer for asyncio.

    Examples:
        >>> from confluent_kafka.serialization import StringDeserializer
        >>> from cloudevents_kafka import EventConsumer
        >>> from cloudevents_kafka.clients.serdes import data_reader
        >>> item = EventConsumer(consumer, strict=True, data_reader=data_reader(StringDeserializer())).poll()
        >>> item and item.event.data
        '{"total":"9.50"}'
    """
    _check_serde("deserializer", deserializer)
    from confluent_kafka.serialization import (  # not imported without a client
        MessageField,
        SerializationContext,
    )

    def read(event: Event, record: Record) -> Any:
        context = SerializationContext(record.topic or "", MessageField.VALUE, list(record.headers))
        return deserializer(event.payload, context)

    return read


def serialize_data(event: Event, data: Any, serializer: Serde, topic: str) -> tuple[Event, Headers]:
    """Return an event whose data a serializer has written, and the headers to send with this event.

    ``topic`` is the topic to which the event will be sent. Send the event with ``producer.send(event, topic,
    headers=headers)``. If ``data`` is None, the returned event has no data. Raises `DataError` if the
    serializer raises an error, and `TypeError` for a serializer for asyncio.

    Examples:
        >>> from confluent_kafka.serialization import StringSerializer
        >>> from cloudevents_kafka import Event, EventProducer
        >>> from cloudevents_kafka.clients.serdes import serialize_data
        >>> event = Event(id="1", source="/shop", type="order.placed")
        >>> event, headers = serialize_data(event, "9.50", StringSerializer(), "orders")
        >>> EventProducer(producer).send(event, "orders", headers=headers).event.payload
        b'9.50'
    """
    _check_serde("serializer", serializer)
    if data is None:
        return event.replace(data=None), []
    from confluent_kafka.serialization import MessageField, SerializationContext

    headers: list[Any] = []  # the serializer may add headers to this list
    context = SerializationContext(topic, MessageField.VALUE, headers)
    payload = call_encode(lambda value: serializer(value, context), data, event.datacontenttype)
    return event.replace(data=payload), headers


def _check_serde(name: str, serde: Serde) -> None:
    """Raise `TypeError` for a coroutine function, or a serializer or deserializer for asyncio."""
    check_callbacks(**{name: serde})
    kind = type(serde)
    # Its calls return coroutines, but it is not a coroutine function.
    if any(base.__name__ == "AsyncBaseSerde" for base in kind.__mro__):
        raise TypeError(
            f"{name} must be a plain function, got {kind.__name__}, which is awaited; "
            f"pass {kind.__name__.removeprefix('Async')}"
        )
