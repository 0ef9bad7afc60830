"""The compact Avro format: bytes of the draft's schema, the Java SDK's form, and invalid bytes."""

from __future__ import annotations

import io
import time
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import EncodeError, Event, InvalidEvent, Record, from_record, to_record
from cloudevents_kafka.attributes.extension_types import register_extension
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.formats.avro_compact import AvroCompactFormat, JavaAvroCompactFormat
from cloudevents_kafka.primitives import zigzag
from tests.support import strategies as make
from tests.support.cases import each

from .java_events import java_event

COMPACT = AvroCompactFormat()
JAVA = JavaAvroCompactFormat()
_TIME = {"type": "long", "logicalType": "timestamp-micros"}
# The fields of the draft, without the default of data, which Avro parsers refuse.
SCHEMA: dict[str, Any] = {
    "namespace": "io.cloudevents.v1.avro.compact",
    "type": "record",
    "name": "CloudEvent",
    "version": "1.0",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "source", "type": "string"},
        {"name": "type", "type": "string"},
        {"name": "datacontenttype", "type": ["null", "string"], "default": None},
        {"name": "dataschema", "type": ["null", "string"], "default": None},
        {"name": "subject", "type": ["null", "string"], "default": None},
        {"name": "time", "type": ["null", _TIME], "default": None},
        {
            "name": "extensions",
            "type": {"type": "map", "values": ["boolean", "int", _TIME, "string", "bytes"]},
            "default": {},
        },
        {"name": "data", "type": ["bytes", "null"]},
    ],
}
PARSED = fastavro.parse_schema(SCHEMA)
HEAD = bytes.fromhex("0231042f730274")  # id 1, source /s, type t
MIN = HEAD + bytes(5) + b"\x02"
SINGLE = bytes.fromhex("c301ba27b92209f0ef56")

for _name, _kind in (("compacttime", AttributeType.TIMESTAMP), ("compactbool", AttributeType.BOOLEAN)):
    register_extension(_name, _kind)


def least(**more: Any) -> Event:
    return Event(**{"id": "1", "source": "/s", "type": "t", **more})


def with_extensions(*entries: str) -> bytes:
    """Return the smallest event with entries of the map, in hexadecimal."""
    return HEAD + bytes(4) + zigzag.encode(len(entries)) + bytes.fromhex("".join(entries)) + b"\x00\x02"


def problems(value: bytes) -> list[tuple[str | None, str]]:
    with pytest.raises(InvalidEvent) as caught:
        COMPACT.decode(value)
    assert str(caught.value)
    return [(problem.attribute, problem.clause) for problem in caught.value.problems]


@each(
    ("event", "value"),
    [
        (least(), MIN),
        (least(data=b""), HEAD + bytes(5) + b"\x00\x00"),
        (least(data=b"hi"), HEAD + bytes(5) + b"\x00\x04hi"),
        (least(datacontenttype="a/b"), HEAD + b"\x02\x06a/b" + bytes(4) + b"\x02"),
        (least(dataschema="u:"), HEAD + b"\x00\x02\x04u:" + bytes(3) + b"\x02"),
        (least(subject="s"), HEAD + b"\x00\x00\x02\x02s" + bytes(2) + b"\x02"),
        (
            least(time="2018-04-05T17:31:00.123456Z"),
            HEAD + bytes(3) + b"\x02" + bytes.fromhex("80fda6d9a9c7b405") + b"\x00\x02",
        ),
        (least(k=True), with_extensions("026b0001")),
        (least(k=False), with_extensions("026b0000")),
        (least(k=-(2**31)), with_extensions("026b02ffffffff0f")),
        (least(k="é"), with_extensions("026b0604c3a9")),
        (least(k=b"Ma"), with_extensions("026b08044d61")),
        (
            Event(
                id="1",
                source="/s",
                type="t",
                time="2018-04-05T17:31:00.123456Z",
                a=True,
                b=10,
                compacttime="2018-04-05T17:31:00.123456Z",
                d="s",
                e=b"Ma",
                data=b"hi",
            ),
            bytes.fromhex(
                "0231042f7302740000000280fda6d9a9c7b4050a026100010262021416636f6d7061637474696d650480fda6d9a9c7b405"
                "0264060273026508044d610000046869"
            ),
        ),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_bytes(event: Event, value: bytes) -> None:
    """A value is one datum without specversion and with data, in both directions."""
    assert COMPACT.encode(event) == value
    again = COMPACT.decode(value)
    assert again == event
    assert COMPACT.encode(again) is value
    assert COMPACT.encode(again.replace()) == value


@given(make.events())
def test_fastavro_reads_written_values(event: Event) -> None:
    """Fastavro reads a written value with the same attributes, types and data."""
    value = make.written(COMPACT, event)
    found: Any = fastavro.schemaless_reader(io.BytesIO(value), PARSED, None)
    assert found.pop("data") == event.payload
    content_type = found.pop("datacontenttype")
    assert content_type == event.datacontenttype or (event.kind, content_type) == (
        DataKind.JSON,
        "application/json",
    )
    core = {name: found.pop(name) for name in ("id", "source", "type", "dataschema", "subject", "time")}
    for name, other in {**core, **found["extensions"]}.items():
        assert event.get(name) == other
    assert set(found["extensions"]) == set(event.extensions)


@given(make.events())
def test_round_trip(event: Event) -> None:
    """A written event is read as equal; JSON has a content type."""
    written = make.written(COMPACT, event)
    if event.kind is DataKind.JSON and event.datacontenttype is None:
        event = event.replace(datacontenttype="application/json")
    assert COMPACT.decode(written) == event


@each(
    ("data", "content_type", "payload"),
    [
        ({"a": 1}, None, b'{"a":1}'),
        ("x", None, b'"x"'),
        ("x", "text/plain", b"x"),
        ([1], "text/json", b"[1]"),
    ],
)
def test_ac_03_data_is_written_as_bytes(data: Any, content_type: str | None, payload: bytes) -> None:
    """JSON and text are bytes, which the content type describes (R-10)."""
    again = COMPACT.decode(COMPACT.encode(least(data=data, datacontenttype=content_type)))
    assert (again.payload, again.datacontenttype) == (payload, content_type or "application/json")
    assert again.data == data


@each(
    "text",
    [
        "2016-12-31T23:59:60Z",
        "2018-04-05T17:31:00.1234567Z",
        "2018-04-05T17:31:00.1234560001Z",
        "0000-06-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
    ],
)
def test_an_instant_beyond_microseconds_is_refused(text: str) -> None:
    """An instant is not rounded; one with an offset is the same instant in UTC."""
    for name in ("time", "compacttime"):
        with pytest.raises(EncodeError, match=rf"{name}.*AC-02"):
            COMPACT.encode(least(**{name: text}))
    again = COMPACT.decode(COMPACT.encode(least(time="2018-04-05T17:31:00.50+02:00")))
    assert again.text("time") == "2018-04-05T15:31:00.5Z"


@each(
    ("entry", "value"),
    [
        ("026b0480fda6d9a9c7b405", "2018-04-05T17:31:00.123456Z"),
        ("026b0401", "1969-12-31T23:59:59.999999Z"),
        ("16636f6d7061637474696d650400", "1970-01-01T00:00:00Z"),
    ],
)
def test_a_time_among_extensions(entry: str, value: str) -> None:
    """A timestamp is read as its canonical text, for a known extension and an unknown one."""
    event = COMPACT.decode(with_extensions(entry))
    (name,) = event.extensions
    assert event.text(name) == value
    assert type(COMPACT.decode(with_extensions(entry)).text(name)) is str


@each(
    ("value", "found"),
    [
        (MIN[:-1], (None, "AC-01")),
        (MIN + b"x", (None, "AC-01")),
        (HEAD, (None, "AC-01")),
        (HEAD + bytes(5) + b"\x04", (None, "AC-01")),
        (HEAD + bytes(5) + b"\x00\x0ahi", (None, "AC-01")),
        (HEAD + b"\x01" + bytes(4) + b"\x02", (None, "AC-01")),
        (b"", (None, "AC-01")),
        (SINGLE + MIN, (None, "AC-01")),
        (b"\x02\xff" + MIN[2:], (None, "AC-01")),
        (b"\x00" + MIN[2:], ("id", "R-02")),
        (HEAD + bytes(3) + b"\x02" + zigzag.encode(2**62) + b"\x00\x02", ("time", "AC-02")),
        (HEAD + bytes(3) + b"\x02" + zigzag.encode(-(2**62)) + b"\x00\x02", ("time", "AC-02")),
        (HEAD + bytes(4) + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", (None, "AC-01")),
        (with_extensions("026b0001", "026b0001"), ("k", "N-05")),
        (with_extensions("026b0002"), (None, "AC-01")),
        (with_extensions("026b028080808010"), ("k", "T-04")),
        (with_extensions("024b0001"), ("K", "N-01")),
        (with_extensions("046964060231"), ("id", "AC-01")),
        (with_extensions("1673706563766572 73696f6e0606312e30"), ("specversion", "AC-01")),
        (with_extensions("0874696d650400"), ("time", "AC-01")),
        (with_extensions("16636f6d70616374626f6f6c0400"), ("compactbool", "AC-02")),
        (with_extensions("16636f6d70616374626f6f6c0202"), ("compactbool", "T-03")),
        (with_extensions("026b04feffffffffffffffff01"), ("k", "AC-02")),
    ],
    ids=repr,
)
def test_refused(value: bytes, found: tuple[str | None, str]) -> None:
    """Invalid bytes are refused at once, with the attribute."""
    start = time.process_time()
    assert problems(value) == [found]
    assert time.process_time() - start < 5


@make.examples(150)
@given(st.one_of(st.binary(max_size=60), st.data()))
def test_any_bytes_are_an_event_or_invalid(value: Any) -> None:
    """Any bytes are an event that can be written again, or InvalidEvent."""
    if not isinstance(value, bytes):
        value = value.draw(make.mutated(make.written(COMPACT, value.draw(make.events()))))
    for form in (COMPACT, JAVA):
        value = SINGLE + value if form is JAVA else value
        try:
            event = form.decode(value)
        except InvalidEvent:
            continue
        assert form.encode(event) is value
        assert COMPACT.decode(COMPACT.encode(event.replace())) == event


# --- the Java SDK ------------------------------------------------------------------

BASE = "2c68747470733a2f2f636c6f75646576656e74732e696f26696f2e636c6f75646576656e74732e74657374"
# Captured from the AvroCompactFormat of the Java SDK, 4.0.1; by id, what follows the type.
CAPTURED = {
    "minimal": "000000000000086e756c6c",
    "minimalWithTime": "0000000280f497d9a9c7b4050000086e756c6c",
    "allCore": (
        "0214746578742f706c61696e024268747470733a2f2f636c6f75646576656e74732e696f2f64617461736368656d61020a"
        "74657374730280f497d9a9c7b4050000086e756c6c"
    ),
    "allExtensionTypes": (
        "000000000a14657874696e7465676572021414657874626f6f6c65616e000112657874737472696e670608746578741265"
        "787462696e61727908044d611865787474696d657374616d700480c0f497f48cfc050000086e756c6c"
    ),
    "json": "02206170706c69636174696f6e2f6a736f6e0000000000207b2261223a205b312c2022c3a9225d7d",
    "noct": "000000000000046869",
    "nanos": "0000000280fda6d9a9c7b4050000086e756c6c",
    "old": "00000002bf843d0000086e756c6c",
    "longext": "0000000002026e04d0410000086e756c6c",
}


@each(("name", "rest"), CAPTURED.items(), ids=CAPTURED)
def test_values_of_the_java_sdk(name: str, rest: str) -> None:
    """The bytes of the Java SDK are read as its event; data that it writes as null is absent."""
    value = SINGLE + zigzag.encode(len(name)) + name.encode() + bytes.fromhex(BASE + rest)
    headers: list[tuple[str, bytes | None]] = [("content-type", b"application/cloudevents+avrocompact")]
    record = Record(value=value, headers=headers)
    event, expected = from_record(record), java_event("micros" if name == "nanos" else name, name)
    assert event.payload == expected.payload
    assert {n: event.text(n) for n in event} == {n: expected.text(n) for n in expected}
    assert to_record(event, like=record) == record
    assert COMPACT.decode(COMPACT.encode(event)) == event


def test_the_java_form_is_not_written() -> None:
    """The error names the formats to use instead."""
    with pytest.raises(EncodeError, match="format='avro-compact'"):
        to_record(least(), mode="structured", format="avrocompact")


@each("value", [b"", MIN, SINGLE[:9], SINGLE, bytes([*SINGLE[:9], 0]) + MIN, SINGLE + MIN[:-1]])
def test_invalid_values_of_the_java_form(value: bytes) -> None:
    """The value must have the header of that schema, and one datum."""
    with pytest.raises(InvalidEvent, match="AC-01"):
        JAVA.decode(value)
