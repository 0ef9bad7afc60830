"""Valid Protobuf events are read by the parser of protobuf as `protobuf_decoder` reads them."""

from __future__ import annotations

from typing import Any

import pytest
import strategies as make
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Event, InvalidEvent
from cloudevents_kafka.event import raw_parts
from cloudevents_kafka.formats import _protobuf_reader as reader
from cloudevents_kafka.formats.protobuf import ProtobufFormat

EVENTS = [
    Event(id="1", source="/s", type="t"),
    Event(id="1", source="/s", type="t", time="2018-04-05T17:31:00.5Z", data={"a": 1}),
    Event(id="1", source="/s", type="t", number=-5, flag=True, blob=b"\0", data=b"\0", datacontenttype="x/y"),
    Event(id="é", source="/s", type="t", subject="é", data="text", datacontenttype="text/plain"),
    Event(id="1", source="/s", type="t", sampledrate=5, dataschema="http://example.com/"),
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


@pytest.mark.parametrize("value", MESSAGES)
def test_messages_of_this_library_are_parsed(value: bytes) -> None:
    """The parser reads the messages that this library writes."""
    event = reader.read_valid(value)
    assert event is not None
    assert parts(event) == read_closely(value)


@make.examples(500)
@given(st.data())
def test_both_readers_agree(data: st.DataObject) -> None:
    """What the parser returns for changed bytes is what the decoder returns; it accepts no other message."""
    value = bytearray(data.draw(st.sampled_from(MESSAGES)))
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(value)))
        value[start : start + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    event = reader.read_valid(bytes(value))
    if event is not None:
        assert parts(event) == read_closely(bytes(value))


def test_unknown_fields_are_ignored() -> None:
    """A message with unknown fields is left to the decoder, which ignores them."""
    value = MESSAGES[0] + b"\x7a\x01x"
    assert reader.read_valid(value) is None
    assert reader.read(value) == EVENTS[0]
