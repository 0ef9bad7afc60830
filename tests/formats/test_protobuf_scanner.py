"""Valid Protobuf events are read by the scanner as `protobuf_decoder` reads them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Event, InvalidEvent
from cloudevents_kafka.attributes.extension_types import register_extension
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.event import raw_parts
from cloudevents_kafka.formats import _protobuf_reader as reader
from cloudevents_kafka.formats import _protobuf_scanner as scanner
from cloudevents_kafka.formats.protobuf import ProtobufFormat
from cloudevents_kafka.registry import temporarily
from tests.support import strategies as make
from tests.support.cases import each

register_extension("scanurl", AttributeType.URI)
register_extension("scantime", AttributeType.TIMESTAMP)
LONG = "x" * 128  # its length has two bytes
EVENTS = [
    Event(id="1", source="/s", type="t"),
    Event(id="1", source="/s", type="t", time="2018-04-05T17:31:00.5Z", data={"a": 1}),
    Event(id="1", source="/s", type="t", number=-5, flag=True, blob=b"\0", data=b"\0", datacontenttype="x/y"),
    Event(id="é", source="/s", type="t", subject="é", data="text", datacontenttype="text/plain"),
    Event(id="1", source="/s", type="t", sampledrate=5, dataschema="http://example.com/"),
    Event(id="1", source="/s", type="t", scanurl="u:x", dataref="/r", scantime="1969-12-31T23:59:59.5Z"),
    Event(id=LONG, source=LONG, type=LONG, subject=LONG, number=-(2**31), data=LONG),
    Event(id="1", source="/s", type="t", time="2600-01-01T00:00:00.000000001Z", number=300, other=False),
    Event(id="1", source="/s", type="t", time="1970-01-01T00:00:00Z", scantime="1970-01-01T00:00:00.25Z"),
]
MESSAGES = [ProtobufFormat().encode(event) for event in EVENTS]


def read_closely(value: bytes) -> Any:
    """Return all that is known of an event that the decoder reads, or None if it refuses the message."""
    try:
        return parts(reader.read(value))
    except InvalidEvent:
        return None


def parts(event: Event) -> Any:
    attributes, encoded = raw_parts(event)
    return list(attributes.items()), [*map(type, attributes.values())], event.payload, event.kind, encoded


@each("value", MESSAGES)
def test_messages_of_this_library_are_parsed(value: bytes) -> None:
    """The scanner reads the messages that this library writes."""
    event = scanner.read_valid(value)
    assert event is not None
    assert parts(event) == read_closely(value)


@make.examples(500)
@given(st.data())
def test_both_readers_agree(data: st.DataObject) -> None:
    """What the scanner returns for changed bytes is what the decoder returns; it accepts no other message."""
    value = bytearray(data.draw(st.sampled_from(MESSAGES)))
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(value)))
        value[start : start + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    event = scanner.read_valid(bytes(value))
    if event is not None:
        assert parts(event) == read_closely(bytes(value))


@given(make.events())
def test_written_events_are_scanned(event: Event) -> None:
    """Any event of this library is read by the scanner, with the same result."""
    value = make.written(ProtobufFormat(), event)
    scanned = scanner.read_valid(value)
    assert scanned is not None
    assert parts(scanned) == read_closely(value)


@each(
    "entry",
    [
        b"\x2a\x05\x0a\x01k\x12\x00",
        b"\x2a\x06\x0a\x01k\x12\x01\x08",
        b"\x2a\x06\x0a\x01k\x12\x01\x10",
        b"\x2a\x06\x0a\x01k\x12\x01\x1a",
        b"\x2a\x07\x0a\x01k\x12\x02\x1a\x01",
        b"\x2a\x08\x0a\x01k\x12\x03\x1a\x02x",
        b"\x2a\x09\x0a\x02k\x12\x03\x1a\x01x",
        b"\x2a\x08\x0a\x01k\x1a\x03\x1a\x01x",  # another field than the value
        b"\x2a\x08\x12\x01k\x12\x03\x1a\x01x",  # another field than the name
        b"\x2a\x00",
        b"\x2a",
    ],
)
@each("after", [b"", b"\x2a\x08\x0a\x01l\x12\x03\x1a\x01x", b"2\x00"])
def test_an_entry_with_wrong_parts(entry: bytes, after: bytes) -> None:
    """The scanner does not read an entry with other fields, or with lengths that differ from its parts'."""
    value = MESSAGES[0] + entry + after
    event = scanner.read_valid(value)
    assert event is None or parts(event) == read_closely(value)


def test_a_registration_changes_what_is_read() -> None:
    """The type of an extension is not remembered: another registration refuses its field."""
    value = MESSAGES[0] + b"\x2a\x0d\x0a\x05scank\x12\x04\x2a\x02u:"
    event = scanner.read_valid(value)
    assert event is not None
    assert event["scank"] == "u:"
    with temporarily():
        register_extension("scank", AttributeType.BOOLEAN)
        assert scanner.read_valid(value) is None


def test_unknown_fields_are_ignored() -> None:
    """A message with unknown fields is left to the decoder, which ignores them."""
    value = MESSAGES[0] + b"\x7a\x01x"
    assert scanner.read_valid(value) is None
    assert reader.read(value) == EVENTS[0]
