"""The door: modes, formats, headers, relays, and errors that say what to do."""

from __future__ import annotations

from typing import Any

import pytest
import strategies as make
from confluent_kafka import KafkaError, Message

from cloudevents_kafka import (
    Decoded,
    EncodeError,
    Event,
    InvalidEvent,
    NotAnEvent,
    Record,
    Undecodable,
    decode,
    from_record,
    sniff,
    to_record,
)
from cloudevents_kafka.testing import FakeMessage

CE = make.required_headers
JSON = ("content-type", b"application/cloudevents+json")
VALUE = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}'
EVENT = Event(id="1", source="/", type="t", subject="s", data=b"raw")


def test_decode_gives_what_from_record_raises() -> None:
    """The loop's door and the caller's door agree."""
    good, bad = Record(headers=CE), Record(value=b"x", topic="t", partition=0, offset=9)
    assert decode(good) == Decoded(from_record(good), good)
    result = decode(bad)
    assert isinstance(result, Undecodable)
    assert result.record is result.error.record is bad
    with pytest.raises(NotAnEvent, match=r"^t\[0\]@9: not a CloudEvent: .*K-11"):
        from_record(bad)


class AiokafkaRecord:
    """The shape of aiokafka's ConsumerRecord."""

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


@pytest.mark.parametrize("client", CLIENT_RECORDS)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_clients_message_is_taken_as_a_record(client: str, *, lenient: bool) -> None:
    """Decode and from_record read what confluent-kafka, aiokafka and kafka-python hand out."""
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


@pytest.mark.parametrize("client", CLIENT_RECORDS)
def test_a_clients_message_is_sniffed(client: str) -> None:
    """Sniff takes a record of any client for its headers."""
    assert sniff(CLIENT_RECORDS[client](VALUE, [JSON])) == sniff([JSON])
    assert sniff(CLIENT_RECORDS[client](VALUE, CE)).mode == "binary"


def test_headers_are_sniffed_in_any_shape() -> None:
    """A list, a tuple, an iterator, a mapping or a record with no headers at all."""
    for headers in (CE, tuple(CE), iter(CE), dict(CE), Record(headers=CE)):
        assert sniff(headers).mode == "binary"
    assert sniff(Message(topic="t", value=b"x")).mode == "not-an-event"


@pytest.mark.parametrize("read", [decode, from_record])
@pytest.mark.parametrize(
    ("thing", "error", "said"),
    [
        (None, TypeError, "skip an empty poll"),
        (b"value", TypeError, "got bytes"),
        (FakeMessage(error=KafkaError(KafkaError._PARTITION_EOF)), ValueError, "check message.error"),
    ],
)
def test_what_is_no_record_is_refused_with_advice(read: Any, thing: Any, error: Any, said: str) -> None:
    """The error names what was handed in, and what to do."""
    with pytest.raises(error, match=said):
        read(thing)


@pytest.mark.parametrize(
    "name", ["content-type", "Content-Type", "ce_id", "ce_other", "CE_ID", "Ce_x", "ce_"]
)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_headers_of_the_event_cannot_be_added(name: str, mode: Any) -> None:
    """A user's header that a reader could take for an attribute is refused, in any case of letters."""
    for headers in ({name: b"x"}, [(name, None)]):
        with pytest.raises(EncodeError, match="belongs to the event"):
            to_record(EVENT, headers=headers, mode=mode)
        with pytest.raises(EncodeError, match="belongs to the event"):
            to_record(EVENT, headers=headers, like=to_record(EVENT, mode=mode))


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_other_headers_go_behind_in_order(mode: Any) -> None:
    """Repeats, nulls and empty values stay; the caller's list is neither kept nor changed."""
    headers: list[tuple[str, bytes | None]] = [("a", b"\xff"), ("a", None), ("b", b"")]
    record = to_record(EVENT, headers=headers, mode=mode)
    assert record.headers[-3:] == headers
    record.headers.clear()
    assert len(headers) == 3
    assert to_record(EVENT, headers=headers, mode=mode).headers[-3:] == headers
    assert to_record(EVENT, headers={"a": "é"}, mode=mode).headers[-1] == ("a", "é".encode())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"mode": "batch"}, "mode must be 'binary' or 'structured', got 'batch'"),
        ({"mode": ""}, "mode must be 'binary' or 'structured'"),
        ({"format": "json"}, "use mode='structured'"),
        ({"mode": "binary", "format": "avro"}, "use mode='structured'"),
        ({"mode": "structured", "format": "xml"}, "one of json, avro"),
    ],
)
def test_what_cannot_be_asked_for(arguments: Any, said: str) -> None:
    """A wrong mode or format is an EncodeError that says which there are."""
    with pytest.raises(EncodeError, match=said):
        to_record(EVENT, **arguments)


@pytest.mark.parametrize("thing", [None, {}, "x", b"", object(), CE])
def test_what_is_no_event_is_refused(thing: object) -> None:
    """Nothing is turned into an event by guessing."""
    with pytest.raises(TypeError, match="an event must have get_attributes"):
        to_record(thing)


# --- like ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        CE,
        CE[::-1],
        [("foo", b"\xff"), *CE[:2], ("foo", None), *CE[2:], ("foo", b"\xff")],
        [*CE, ("content-type", b"a/b"), ("ce_datacontenttype", b"a/b")],
        [("ce_datacontenttype", b"a/b"), *CE, ("content-type", b"a/b")],
        [*CE, ("ce_subject", None), ("content-type", None)],
        [("ce_subject", None), *CE, ("ce_subject", b"x"), ("ce_subject", None)],
        [*CE, ("ce_opcuastatus", b"-0")],
        [*CE, ("ce_dssematerial", b"TQ=="), ("ce_deprecated", b"true"), ("ce_sampledrate", b"5")],
        [*CE, ("ce_time", b"2018-04-05t17:31:00.1000000001-00:00")],
        [*CE, ("CE_ID", b"x"), ("ce-id", b"y"), ("ce_", b"z"), ("Content-Type", b"a")],
    ],
    ids=lambda headers: repr(headers)[-50:],
)
def test_an_unchanged_event_gives_the_same_record(headers: Any) -> None:
    """Relayed in binary mode, order, nulls, copies, spelling and strangers stay as they were."""
    for key in (None, b"", b"\xff"):
        record = Record(headers=headers, key=key, value=b"\x00v")
        again = to_record(from_record(record), like=record)
        assert (again.headers, again.key, again.value) == (headers, key, b"\x00v")


@pytest.mark.parametrize(
    "headers",
    [
        [JSON],
        [("content-type", b"Application/CloudEvents+JSON; charset=UTF-8")],
        [
            ("ce_id", b"other"),
            ("foo", None),
            JSON,
            ("ce_id", b"\xff"),
            ("ce_datacontenttype", b"x"),
            ("ce_subject", None),
        ],
    ],
)
def test_a_structured_record_is_relayed_with_all_its_headers(headers: Any) -> None:
    """The value comes from the wire, and copies of attributes in headers are its own affair."""
    record = Record(
        headers=headers, value=VALUE[:-1] + b' , "time":null, "data":{"b": 1.0, "a":2}} \n', key=b"k"
    )
    again = to_record(from_record(record), like=record)
    assert again == record


def test_a_changed_event_changes_what_it_must() -> None:
    """Headers keep their places; what is gone goes, what is new comes last; stale copies go."""
    record = Record(
        headers=[
            ("foo", b"1"),
            ("ce_subject", b"s"),
            *CE,
            ("content-type", b"a/b"),
            ("ce_datacontenttype", b"a/b"),
            ("bar", None),
        ],
        value=b"x",
        key=b"k",
    )
    changed = from_record(record).replace(subject=None, id="2", datacontenttype="a/c", other="new")
    again = to_record(changed, like=record, headers={"added": b""})
    assert again.headers == [
        ("foo", b"1"),
        ("ce_specversion", b"1.0"),
        ("ce_id", b"2"),
        ("ce_source", b"/"),
        ("ce_type", b"t"),
        ("content-type", b"a/c"),
        ("bar", None),
        ("ce_other", b"new"),
        ("added", b""),
    ]
    assert (again.key, again.value) == (b"k", b"x")


def test_a_zero_that_was_a_minus_zero_is_another_for_texts() -> None:
    """Only an Integer has two spellings; a text that changed is written as it is now."""
    record = Record(headers=[*CE, ("ce_subject", b"-0")])
    changed = from_record(record).replace(subject="0")
    assert to_record(changed, like=record).headers[-1] == ("ce_subject", b"0")


def test_a_null_header_gives_its_place_to_a_new_value() -> None:
    """An attribute that was null and is set now stands where the null stood."""
    record = Record(headers=[("ce_subject", None), *CE])
    changed = from_record(record).replace(subject="s")
    assert to_record(changed, like=record).headers == [("ce_subject", b"s"), *CE]


@pytest.mark.parametrize(
    ("mode", "format_name", "headers"),
    [
        ("structured", None, [JSON, ("foo", None)]),
        ("structured", "avro", [("content-type", b"application/cloudevents+avro"), ("foo", None)]),
    ],
)
def test_the_mode_can_be_changed_on_the_way(mode: Any, format_name: str | None, headers: Any) -> None:
    """From binary to structured, ce_ headers go and strangers stay; and back they come."""
    record = Record(headers=[*CE, ("ce_subject", None), ("foo", None)], value=b"x", key=b"k")
    event = from_record(record)
    other = to_record(event, like=record, mode=mode, format=format_name)
    assert sorted(other.headers, key=str) == sorted(headers, key=str)
    assert from_record(other) == event
    back = to_record(from_record(other), like=other, mode="binary")
    assert sorted(back.headers, key=str) == sorted([("foo", None), *CE], key=str)
    assert (back.value, back.key) == (b"x", b"k")


def test_key_and_topic_beside_like() -> None:
    """A key or a mapper given wins over the record's key; the topic is not taken over."""
    record = Record(headers=CE, key=b"k", topic="t", partition=1, offset=2, timestamp=3)
    event = from_record(record)
    assert to_record(event, like=record, key=b"own").key == b"own"
    assert to_record(event, like=record, key_mapper=lambda _: "mapped").key == b"mapped"
    assert to_record(event, like=record, key_mapper=lambda _: None).key == b"k"
    again = to_record(event, like=record, topic="other")
    assert (again.topic, again.partition, again.offset, again.timestamp) == ("other", None, None, None)


def test_like_a_record_that_is_no_event() -> None:
    """The event is written in binary mode, beside the strangers of that record."""
    record = Record(headers=[("foo", b"1")], value=b"x", key=b"k")
    again = to_record(EVENT, like=record)
    assert again.headers == [("foo", b"1"), *to_record(EVENT).headers]
    assert (again.key, again.value) == (b"k", b"raw")


def test_writing_never_changes_what_is_given() -> None:
    """Event, record and headers are as before, and what is given back is fresh."""
    record = Record(headers=[*CE, ("foo", None)], value=b"x")
    event = from_record(record)
    for _ in range(2):
        again = to_record(event, like=record)
        assert again == record
        assert again.headers is not record.headers
        again.headers.clear()
    first, second = to_record(event), to_record(event)
    assert first == second
    assert first.headers is not second.headers


class SdkShape:
    """What an SDK's event looks like from outside."""

    def __init__(self, attributes: Any, data: Any = None) -> None:
        self.attributes = attributes
        self.payload = data

    def get_attributes(self) -> Any:
        return self.attributes

    def get_data(self) -> Any:
        return self.payload


@pytest.mark.parametrize("options", [{"key": "\ud800"}, {"headers": [("a", "\ud800")]}])
def test_text_that_utf8_cannot_hold_is_refused(options: Any) -> None:
    """A lone surrogate in a key or in a header is an error of ours."""
    with pytest.raises(EncodeError, match="UTF-8"):
        to_record(Event(id="1", source="/s", type="t"), **options)


def test_an_sdk_event_that_breaks_rules_is_refused() -> None:
    """Every problem is told; the object is not changed."""
    attributes = {"id": "", "source": "/", "time": None, "x": [1]}
    with pytest.raises(InvalidEvent) as caught:
        to_record(SdkShape(attributes, object()))
    assert {p.attribute for p in caught.value.problems} == {"specversion", "id", "type", "x", "data"}
    assert attributes == {"id": "", "source": "/", "time": None, "x": [1]}


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_a_record_of_a_client_may_be_the_like(mode: Any) -> None:
    """What a consumer handed out is forwarded without making a Record of it first."""
    record = to_record(EVENT, mode=mode, key=b"k", headers=[("trace", b"1")])
    message = Message(topic="t", value=record.value, key=record.key, headers=record.headers)
    assert to_record(from_record(message), like=message) == record


@pytest.mark.parametrize(
    "write",
    [
        lambda text: to_record(EVENT, like=Record(headers=[("a", text)])),
        lambda text: to_record(EVENT, headers=[("a", text)]),
        lambda text: to_record(EVENT, key=text),
        lambda text: Record(key=text),
        lambda text: Record(value=text),
        lambda text: decode({"value": b"", "headers": [("a", text)]}),
    ],
)
def test_text_that_utf8_does_not_have_is_refused_without_showing_it(write: Any) -> None:
    """No error of a codec's comes out, whose message and object have what was given."""
    with pytest.raises((EncodeError, ValueError), match="character 1 cannot be encoded") as caught:
        write("S\ud83d")
    assert not isinstance(caught.value, UnicodeError)
    assert "ud83d" not in str(caught.value)


@pytest.mark.parametrize("thing", [None, "text", b"bytes"])
def test_what_is_no_headers_is_not_sniffed(thing: Any) -> None:
    """A poll that brought nothing, and texts, are refused in the words of Record.of."""
    with pytest.raises(TypeError, match="a Kafka record must have value"):
        sniff(thing)
