"""Reading: records of any client, and what decode returns and from_record raises."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from cloudevents_kafka import (
    Decoded,
    Event,
    NotAnEvent,
    Record,
    Undecodable,
    decode,
    from_record,
    sniff,
)
from cloudevents_kafka.testing import FakeMessage
from tests.support import strategies as make
from tests.support.cases import each

CE = make.required_headers
JSON = ("content-type", b"application/cloudevents+json")
VALUE = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}'
EVENT = Event(id="1", source="/", type="t", subject="s", data=b"raw")


def test_decode_returns_what_from_record_raises() -> None:
    """`decode` returns the error that `from_record` raises."""
    good, bad = Record(headers=CE), Record(value=b"x", topic="t", partition=0, offset=9)
    assert decode(good) == Decoded(from_record(good), good)
    result = decode(bad)
    assert isinstance(result, Undecodable)
    assert result.record is result.error.record is bad
    with pytest.raises(NotAnEvent, match=r"^t\[0\]@9: not a CloudEvent: .*K-11"):
        from_record(bad)


class AiokafkaRecord:
    """A record with the attributes of aiokafka's ConsumerRecord."""

    topic, partition, offset, timestamp, timestamp_type, key = "t", 1, 2, 3, 0, None
    checksum, serialized_key_size, serialized_value_size = None, -1, len(VALUE)

    def __init__(self, value: bytes | None, headers: tuple[tuple[str, bytes], ...]) -> None:
        self.value = value
        self.headers = headers


def kafka_python_record(value: bytes | None, headers: list[tuple[str, bytes]]) -> Any:
    from kafka.consumer.fetcher import ConsumerRecord

    return ConsumerRecord("t", 1, None, 2, 3, 0, None, value, headers, None, -1, -1, -1)


CLIENT_RECORDS = {
    "confluent-kafka": lambda value, headers: Message(
        topic="t", value=value, headers=headers, partition=1, offset=2
    ),
    "aiokafka": lambda value, headers: AiokafkaRecord(value, tuple(headers)),
    "kafka-python": kafka_python_record,
    "mapping": lambda value, headers: {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "value": value,
        "headers": headers,
    },
}


@each("client", CLIENT_RECORDS)
@each("lenient", [False, True])
def test_a_clients_message_is_read_as_a_record(client: str, *, lenient: bool) -> None:
    """`decode` and `from_record` read the messages of confluent-kafka, aiokafka and kafka-python."""
    make_record = CLIENT_RECORDS[client]
    for value, headers in ((b"data", CE), (VALUE, [JSON])):
        message = make_record(value, headers)
        item = decode(message, lenient=lenient)
        assert isinstance(item, Decoded)
        assert (
            item.event
            == from_record(message, lenient=lenient)
            == from_record(Record(value=value, headers=headers))
        )
        assert item.record.where == "t[1]@2"
    bad = decode(make_record(b"x", [("trace", b"1")]), lenient=lenient)
    assert isinstance(bad, Undecodable)
    assert bad.record == bad.error.record
    assert bad.record.where == "t[1]@2"


@each("client", CLIENT_RECORDS)
def test_a_clients_message_is_sniffed(client: str) -> None:
    """`sniff` accepts a record of any client."""
    assert sniff(CLIENT_RECORDS[client](VALUE, [JSON])) == sniff([JSON])
    assert sniff(CLIENT_RECORDS[client](VALUE, CE)).mode == "binary"


def test_headers_are_sniffed_in_any_shape() -> None:
    """Headers may be a list, a tuple, an iterator or a mapping, and a record may have none."""
    for headers in (CE, tuple(CE), iter(CE), dict(CE), Record(headers=CE)):
        assert sniff(headers).mode == "binary"
    assert sniff(Message(topic="t", value=b"x")).mode == "not-an-event"


@each("read", [decode, from_record])
@each(
    ("thing", "error", "expected"),
    [
        (None, TypeError, "skip an empty poll"),
        (b"value", TypeError, "got bytes"),
        (FakeMessage(error=KafkaError(KafkaError._PARTITION_EOF)), ValueError, "check message.error"),
    ],
)
def test_other_objects_are_refused(read: Any, thing: Any, error: Any, expected: str) -> None:
    """The error names the argument's type and what to do."""
    with pytest.raises(error, match=expected):
        read(thing)


@each("thing", [None, "text", b"bytes"])
def test_other_objects_are_not_sniffed(thing: Any) -> None:
    """None and texts are refused with the message of Record.of."""
    with pytest.raises(TypeError, match="a Kafka record must have a method value"):
        sniff(thing)
