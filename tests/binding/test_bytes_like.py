"""Bytes-like values are accepted as bytes are, and are copied to bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloudevents_kafka import (
    Codec,
    Decoded,
    Event,
    Record,
    Undecodable,
    decode,
    from_record,
    register_codec,
    register_format,
    sniff,
    to_record,
)
from cloudevents_kafka.event import raw_parts
from cloudevents_kafka.formats.avro import AvroFormat
from cloudevents_kafka.formats.avro_compact import AvroCompactFormat, JavaAvroCompactFormat
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.formats.protobuf import ProtobufFormat
from tests.support.cases import each
from tests.support.ids import stable

LIKE = pytest.mark.parametrize("like", [bytearray, memoryview, lambda b: memoryview(bytearray(b))])
Like = Callable[[bytes], Any]
EVENT = Event(
    id="1", source="/s", type="t", datacontenttype="application/json", data={"a": [1, "é"]}, sampledrate=5
)
BARE = EVENT.replace(datacontenttype=None, data=b"\x00\xff")
WAYS: list[dict[str, Any]] = [
    {"mode": "binary"},
    *({"mode": "structured", "format": name} for name in ("json", "avro", "protobuf", "avro-compact")),
]
ALL = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.get("format", "binary"))


def in_likes(record: Record, like: Like) -> Record:
    headers: Any = [(name, like(value or b"")) for name, value in record.headers]
    return Record(key=like(record.key or b""), value=like(record.value or b""), headers=headers)


def is_of_bytes(event: Event) -> bool:
    attributes, encoded = raw_parts(event)
    values = [*attributes.values(), event.payload, *(encoded or ())]
    return all(type(value) in {bytes, str, int, bool} for value in values)


@LIKE
@ALL
@pytest.mark.parametrize("event", [EVENT, BARE], ids=["JSON", "bytes"])
def test_records_of_bytes_like_values_are_read(like: Like, way: dict[str, Any], event: Event) -> None:
    """The rows of PySpark's `collect` are read, and their events written in every mode to the same bytes."""
    record = to_record(event, key=b"k", **way)
    given = in_likes(record, like)
    assert (type(given.key), type(given.value)) == (bytes, bytes)
    read = from_record(given)
    assert read == event
    assert is_of_bytes(read)
    assert from_record(given, lenient=True) == event
    assert sniff(given.headers) == sniff(record.headers)
    for other in WAYS:
        written = to_record(read, **other)
        assert type(written.value) is bytes
        assert from_record(written) == event


@LIKE
@ALL
def test_headers_alone_may_be_bytes_like(like: Like, way: dict[str, Any]) -> None:
    """Headers may be bytes-like if the value is bytes; a record that is written like it has bytes."""
    record = to_record(EVENT, key=b"k", headers={"other": b"f"}, **way)
    headers: Any = [(name, like(value or b"")) for name, value in record.headers]
    given = Record(key=b"k", value=record.value, headers=headers)
    assert from_record(given) == EVENT
    assert to_record(from_record(given), like=given) == record
    assert isinstance(decode(given), Decoded)
    assert isinstance(decode(given, lenient=True), Decoded)
    broken = [(name, like(b"\xff") if name == "ce_id" else value) for name, value in headers]
    bytes_broken = [(name, bytes(value)) for name, value in broken]
    outcomes = [decode(Record(value=record.value, headers=each)) for each in (broken, bytes_broken)]
    assert _summary(outcomes[0]) == _summary(outcomes[1])


def _summary(decoded: Decoded | Undecodable) -> Event | str:
    return decoded.event if isinstance(decoded, Decoded) else str(decoded.error)


@ALL
def test_changed_buffers_do_not_change_events(way: dict[str, Any]) -> None:
    """An event does not change with the buffers from which it was read."""
    record = to_record(BARE, key=b"k", **way)
    value, key = bytearray(record.value or b""), bytearray(b"k")
    headers: Any = [(name, bytearray(text or b"")) for name, text in record.headers]
    given = Record(key=key, value=value, headers=headers)  # type: ignore[arg-type]  # what this is about
    event = from_record(given)
    for one in (value, key, *(text for _, text in headers)):
        one[:] = b"!" * len(one)
    assert event == BARE
    assert (given.key, given.value) == (b"k", record.value)
    assert to_record(event, **way).value == record.value


@LIKE
def test_events_accept_bytes_like_values(like: Like) -> None:
    """Data, attributes, keys, header values and clients' records may be bytes-like."""
    event = Event(id="1", source="/s", type="t", data=like(b"\x00\xff"), x=like(b"b"))
    assert (event.payload, event["x"]) == (b"\x00\xff", b"b")
    assert is_of_bytes(event)
    assert is_of_bytes(event.replace(data=like(b"y"), z=like(b"z")))
    record = to_record(event, mode="structured", key=like(b"k"), headers={"h": like(b"v")})
    assert (record.key, record.headers[-1]) == (b"k", ("h", b"v"))
    assert to_record(event, key_mapper=lambda _: like(b"m")).key == b"m"
    fields = {"key": like(b"k"), "value": like(record.value or b""), "headers": record.headers}
    assert Record.of(fields) == record


@LIKE
@pytest.mark.parametrize("format", [JsonFormat, AvroFormat, ProtobufFormat, AvroCompactFormat])
def test_formats_read_bytes_like_values(like: Like, format: Any) -> None:
    """A format that is called directly returns an event of bytes, too."""
    for event in (EVENT, BARE):
        read = format().decode(like(format().encode(event)))
        assert read == event
        assert is_of_bytes(read)


@LIKE
def test_the_format_of_java_reads_bytes_like_values(like: Like) -> None:
    """Java's compact Avro, which is read only, accepts them too."""
    from cloudevents_kafka.formats import avro_compact

    value = avro_compact._SINGLE_OBJECT + AvroCompactFormat().encode(BARE)
    read = JavaAvroCompactFormat().decode(like(value))
    assert read.payload == BARE.payload
    assert is_of_bytes(read)


@LIKE
@pytest.mark.usefixtures("registry")
def test_users_functions_may_return_bytes_like_values(like: Like) -> None:
    """The value of a user's format and the payload of a user's codec become bytes."""

    class Liked(JsonFormat):
        def encode(self, event: Event) -> bytes:
            return like(super().encode(event))  # type: ignore[no-any-return]  # any of the three

    register_format("x-liked", Liked)
    record = to_record(EVENT, mode="structured", format="x-liked")
    assert type(record.value) is bytes
    register_codec("application/x-liked", Codec(encode=lambda _: like(b"p"), decode=like))
    event = Event(id="1", source="/s", type="t", datacontenttype="application/x-liked", data=object())
    assert is_of_bytes(event)


@each("value", [5, 1.5, ["x"], {"a": 1}, object()], ids=stable)
def test_other_values_are_refused(value: Any) -> None:
    """Keys and values are refused when a record is created, header values when they are read."""
    with pytest.raises(TypeError, match="bytes or None, got"):
        Record(value=value)
    with pytest.raises(TypeError, match="bytes or None, got"):
        Record(key=value)
    with pytest.raises(TypeError, match="bytes or None, got"):
        from_record(Record(value=b"", headers=[("ce_id", value)]))
    with pytest.raises(TypeError, match="bytes or None, got"):
        to_record(EVENT, key=value)


def test_text_becomes_utf_8() -> None:
    """A str becomes UTF-8, as in a client's record."""
    record = Record(key="é", value="é", headers=[("ce_id", "é")])  # type: ignore[arg-type,list-item]
    assert (record.key, record.value) == (b"\xc3\xa9", b"\xc3\xa9")
    named = [("ce_id", "é"), ("ce_source", "/s"), ("ce_type", "t"), ("ce_specversion", "1.0")]
    assert from_record(Record(headers=named)).id == "é"  # type: ignore[arg-type]  # the same
