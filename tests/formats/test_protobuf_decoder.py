"""The Protobuf event format: untrusted bytes are an event or an InvalidEvent."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import EncodeError, Event, InvalidEvent
from tests.support import strategies as make
from tests.support.cases import each

from .official import MIN, PROTOBUF, CloudEvent, bytes_field, entry, least, outcome, problems

HOSTILE = {
    "half": MIN[:-1],
    "a length beyond the end": MIN + b"\x32\x05hi",
    "a huge length": MIN + b"\x32\xff\xff\xff\xff\xff\xff\xff\xff\x7fhi",
    "an endless number": b"\x08" + b"\xff" * 10**6,
    "65 bits": MIN + b"\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
    "field 0": MIN + b"\x00\x01",
    "a field number of 30 bits": MIN + b"\x80\x80\x80\x80\x10\x01",
    "a group": MIN + b"\x4b\x4c",
    "groups in groups": MIN + b"\x4b" * 10**5,
    "the end of a group": MIN + b"\x4c",
    "an odd wire type": MIN + b"\x4e",
    "half a fixed number": MIN + b"\x49\x01\x02",
    "bad text": MIN[:2] + b"\xff" + MIN[3:],
    "a bad key": MIN + b"\x2a\x07\x0a\x01\xff\x12\x02\x08\x01",
    "a bad value": MIN + entry("k", bytes_field(3, b"\xff")),
    "an entry with two names": MIN + b"\x2a\x0a\x0a\x01k\x0a\x01l\x12\x02\x08\x01",
    "an entry with two values": MIN + b"\x2a\x0b\x0a\x01k\x12\x02\x08\x01\x12\x02\x08\x01",
    "a time with two seconds": MIN + entry("time", bytes_field(7, b"\x08\x01\x08\x01")),
    "half an entry": MIN + b"\x2a\x02\x0a\x05",
    "JSON": b'{"specversion":"1.0"}',
    "text": b"hello",
}


@each("value", HOSTILE.values(), ids=HOSTILE)
def test_untrusted_bytes_are_refused_at_once(value: bytes) -> None:
    """Lengths are checked; the error names the message."""
    start = time.process_time()
    assert problems(value) == [(None, "P-05")]
    assert time.process_time() - start < 5


def test_empty_values() -> None:
    """An empty message has no required attribute."""
    assert {clause for _, clause in problems(b"")} == {"R-01"}
    assert {clause for _, clause in problems(b"\x2a\x00" * 10**5)} == {"R-01", "N-05", "P-02"}
    assert problems(MIN + b"\x2a\x07\x12\x05\x1a\x03abc") == [("", "N-03")]


def test_unknown_fields_are_ignored() -> None:
    """Fields of another number or wire type are ignored at each level, as Protobuf demands."""
    unknown = b"\x48\x01" + b"\x92\x03\x01x" + b"\x4d1234" + b"\x4912345678" + b"\x08\x01"
    unknown += b"\xf8\xff\xff\xff\x0f\x01"  # the largest field number, 2^29 - 1
    value = unknown + MIN + unknown + entry("k", b"\x48\x01" + bytes_field(3, b"v") + b"\x18\x01") + unknown
    assert CloudEvent.FromString(value).attributes["k"].ce_string == "v"
    event = PROTOBUF.decode(value)
    assert event == least(k="v")
    assert PROTOBUF.encode(event) is value
    assert PROTOBUF.encode(event.replace()) == PROTOBUF.encode(least(k="v"))


@make.examples(150)
@given(st.one_of(st.binary(max_size=60), st.data()))
def test_any_bytes_are_an_event_or_invalid(value: Any) -> None:
    """Generated code reads the same event."""
    if not isinstance(value, bytes):
        value = value.draw(make.mutated(make.written(PROTOBUF, value.draw(make.events()))))
    event = outcome(value)
    if isinstance(event, InvalidEvent):
        assert event.problems
        return
    message = CloudEvent.FromString(value)
    assert (message.id, message.source, message.type) == (event.id, event.source, event.type)
    assert set(message.attributes) == set(event) - {"id", "source", "type", "specversion"}
    with suppress(EncodeError):
        assert PROTOBUF.decode(PROTOBUF.encode(event.replace())) == event


@make.examples(80)
@given(make.events(), st.data())
def test_malformed_bytes_are_so_for_generated_code(event: Event, data: st.DataObject) -> None:
    """Generated code refuses them, too, except groups and numbers that it cuts."""
    with suppress(EncodeError):
        value = data.draw(make.mutated(PROTOBUF.encode(event)))
        text = str(outcome(value))
        if "P-05" in text and any(why in text for why in ("too early", "beyond its end", "is not UTF-8")):
            with pytest.raises((DecodeError, UnicodeDecodeError)):  # the latter where it is pure Python
                CloudEvent.FromString(value)
