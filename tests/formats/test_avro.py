"""The Avro event format: bytes of the official schema, and untrusted bytes."""

from __future__ import annotations

import io
import time
from typing import Any

import fastavro
import pytest
from hypothesis import given

from cloudevents_kafka import EncodeError, Event, InvalidEvent
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.formats import avro
from cloudevents_kafka.formats.avro import SCHEMA, AvroFormat
from tests.support import strategies as make
from tests.support.cases import each

AVRO = AvroFormat()
PARSED = fastavro.parse_schema(SCHEMA)
# specversion, id 1, source /s, type t, and the end of the map
MIN = bytes.fromhex(
    "08167370656376657273696f6e0606312e300469640602310c736f7572636506042f73087479706506027400"
)
NONE = b"\x02"


def least(**more: Any) -> Event:
    return Event(**{"id": "1", "source": "/s", "type": "t", **more})


def with_entry(entry: str) -> bytes:
    """Return the smallest event with an entry of one attribute, in hexadecimal."""
    return b"\x0a" + MIN[1:-1] + bytes.fromhex(entry) + b"\x00"


@each(
    ("event", "value"),
    [
        (least(), MIN + NONE),
        (least(data=b"\x01\x02"), MIN + bytes.fromhex("00040102")),
        (least(data=b""), MIN + bytes.fromhex("0000")),
        (least(data=True), MIN + bytes.fromhex("0401")),
        (least(data="x"), MIN + bytes.fromhex("0c0278")),
        (least(data=1.5), MIN + bytes.fromhex("0a000000000000f83f")),
        (least(data=1), MIN + bytes.fromhex("0a000000000000f03f")),
        (least(data={}), MIN + bytes.fromhex("0600")),
        (least(data=[]), MIN + bytes.fromhex("0800")),
        (least(data={"a": {"b": 1}}), MIN + bytes.fromhex("060202610402026208000000000000f03f0000")),
        (least(i=10), with_entry("02690414") + NONE),
        (least(i=-(2**31)), with_entry("026904ffffffff0f") + NONE),
        (least(b=True), with_entry("02620201") + NONE),
        (least(b=False), with_entry("02620200") + NONE),
        (least(x=b"Ma"), with_entry("027808044d61") + NONE),
        (least(s="é"), with_entry("02730604c3a9") + NONE),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_bytes(event: Event, value: bytes) -> None:
    """A value is one datum with the union branches of the schema, in both directions."""
    assert AVRO.encode(event) == value
    again = AVRO.decode(value)
    assert (again, again.data) == (event, event.data)
    assert AVRO.encode(again) == value
    assert AVRO.encode(again.replace()) == value


def test_a_null_attribute_is_absent() -> None:
    """A null is absent, also for a required attribute."""
    assert AVRO.decode(with_entry("026e00") + NONE) == least()
    with pytest.raises(InvalidEvent, match="id: is required"):
        AVRO.decode(MIN.replace(b"\x04id\x06\x021", b"\x04id\x00") + NONE)


def test_maps_in_blocks() -> None:
    """A map may have several blocks, and blocks with their size."""
    entries = MIN[1:-1]
    assert AVRO.decode(b"\x07" + b"\x54" + entries + b"\x00" + NONE) == least()
    assert AVRO.decode(b"\x02" + entries[:17] + b"\x06" + entries[17:] + b"\x00" + NONE) == least()


@each(
    "data",
    [
        {"a": None, "b": True, "c": 1.5, "d": "é", "e": {"f": {"g": {"h": None}}}},
        {"value": {"a": {"value": {"x": 1}}}},
        {"-type": "x"},
        [{"a": 1}, {}, {"b": [{"c": None}]}],
        {"a": {"b": [{"c": {"d": {"e": "f"}}}]}},
        2**53,
        -(2**53),
        -0.0,
        1e300,
        "",
    ],
    ids=repr,
)
def test_json_data_without_a_content_type(data: Any) -> None:
    """JSON that the unions can hold is read as the same value."""
    again = AVRO.decode(AVRO.encode(least(data=data)))
    assert again.data == data
    assert again.kind is DataKind.JSON


@each(
    "data",
    [
        [1],
        {"a": [1]},
        {"a": []},
        [[]],
        2**53 + 1,
        -(2**53) - 1,
        {"a": {"b": {"c": 1}}},
        {"a": {"b": [1]}},
        {"a": {"b": {"-type": "x"}}},
    ],
    ids=repr,
)
def test_json_beyond_the_unions_is_refused(data: Any) -> None:
    """JSON that would change raises EncodeError with a hint."""
    with pytest.raises(EncodeError, match="set a datacontenttype"):
        AVRO.encode(least(data=data))
    event = least(data=data, datacontenttype="application/json")
    assert AVRO.decode(AVRO.encode(event)) == event


@each("text", [b"null", b"1e999", b"9" * 5000], ids=lambda text: text[:8])
def test_null_and_infinity_are_refused(text: bytes) -> None:
    """A null would be read as no data, and infinity is not JSON."""
    head = b'{"specversion":"1.0","id":"1","source":"/","type":"t","data":'
    from cloudevents_kafka.formats.json import JsonFormat

    event = JsonFormat().decode(head + text + b"}")
    with pytest.raises(EncodeError):
        AVRO.encode(event.replace(subject="s"))


@given(make.events())
def test_the_decoder_agrees_with_fastavro(event: Event) -> None:
    """For valid data the decoder and fastavro return the same."""
    value = make.written(AVRO, event)
    entries, data = avro.read(value)
    other: Any = fastavro.schemaless_reader(io.BytesIO(value), PARSED, None)
    assert dict(entries) == other["attribute"]
    if not isinstance(data, dict | list):
        assert data == other["data"]


def deep(depth: int) -> bytes:
    """Return objects nested in objects, for which fastavro exhausts the stack."""
    opening = bytes.fromhex("02026104020261")
    return MIN + bytes.fromhex("0602026104") + opening * depth + b"\x00" + b"\x00\x00" * depth + b"\x00"


HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
HOSTILE = {
    "nothing": b"",
    "half": MIN[:20],
    "no data": MIN,
    "left over": MIN + NONE + b"x",
    "a branch too high": MIN + b"\x0e",
    "a negative branch": MIN + b"\x01",
    "a huge branch": MIN + HUGE,
    "bytes beyond the end": MIN + b"\x00\x06hi",
    "a huge length": MIN + b"\x00" + HUGE + b"hi",
    "a negative length": MIN + b"\x00\x03hi",
    "a huge count": HUGE + MIN[1:] + NONE,
    "a huge list": MIN + b"\x08" + HUGE,
    "a huge list in blocks": MIN + b"\x08" + b"\x02\x00" * 10,
    "the least count": b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + MIN[1:] + NONE,
    "an endless number": b"\xff" * 10**6,
    "a wild boolean": MIN + b"\x04\x02",
    "half a double": MIN + b"\x0a\x00\x00",
    "bad text": with_entry("02730602ff") + NONE,
    "a lone surrogate": with_entry("027306 06eda080") + NONE,
    "a bad name": with_entry("0258060278") + NONE,
    "an int of 64 bits": with_entry("026904fefffffffffffffffF01") + NONE,
    "a key twice": MIN + bytes.fromhex("0604026100026100"),
    "not a number": MIN + bytes.fromhex("0a000000000000f87f"),
    "infinity": MIN + bytes.fromhex("0a000000000000f07f"),
    "infinity in a map": MIN + bytes.fromhex("06020261060000000000 00f07f00"),
    "65 objects": deep(64),
    "a thousand objects": deep(1000),
    "a hundred thousand objects": deep(100_000),
    "a container file": b"Obj\x01" + MIN,
    "a single object": b"\xc3\x01" + b"12345678" + MIN + NONE,
    "a registry's prefix": b"\x00\x00\x00\x00\x01" + MIN + NONE,
}


@each("value", HOSTILE.values(), ids=HOSTILE)
def test_untrusted_bytes_are_refused_at_once(value: bytes) -> None:
    """Lengths and counts are checked; the error names the schema."""
    start = time.process_time()
    with pytest.raises(InvalidEvent) as caught:
        AVRO.decode(value)
    assert caught.value.problems
    assert time.process_time() - start < 5


def test_depth_is_limited_in_both_directions() -> None:
    """Data of the maximum depth is written and read, also on a half used stack."""
    data: Any = {}
    for _ in range(avro.MAX_DEPTH + 1):
        data = {"a": {"a": data}}
    event = least(data=data)
    half_way = 400

    def dig(depth: int) -> Event:
        return dig(depth - 1) if depth else AVRO.decode(AVRO.encode(event))

    with pytest.raises(EncodeError, match="nested deeper than 64 objects"):
        dig(0)
    event = least(data=data["a"]["a"])
    assert dig(half_way).data == event.data
    assert AVRO.decode(deep(63)).data


def test_repeated_attributes_are_refused() -> None:
    """Repeats are refused, identical or not, null or not (core: Context Attributes)."""
    for entry in ("0874797065060274", "0874797065060275", "087479706500"):
        with pytest.raises(InvalidEvent) as caught:
            AVRO.decode(with_entry(entry) + NONE)
        assert [(p.attribute, p.clause) for p in caught.value.problems] == [("type", "N-05")]


@each(
    ("content_type", "data", "kind", "value"),
    [
        ("text/plain", "0c02e9", None, None),
        ("text/plain", "0c04c3a9", DataKind.TEXT, "é"),
        ("text/plain;charset=latin-1", "0c04c3a9", DataKind.TEXT, "é"),
        ("text/plain", "0401", None, None),
        ("application/json", "0c0278", DataKind.JSON, "x"),
        ("application/json", "000231", DataKind.BYTES, 1),
        ("application/octet-stream", "000231", DataKind.BYTES, b"1"),
    ],
)
def test_data_with_a_content_type(content_type: str, data: str, kind: DataKind | None, value: Any) -> None:
    """Data in another branch is converted to its content type, or refused."""
    entry = b"\x1edatacontenttype\x06" + bytes([2 * len(content_type)]) + content_type.encode()
    datum = with_entry(entry.hex()) + bytes.fromhex(data)
    if kind is None:
        with pytest.raises(InvalidEvent):
            AVRO.decode(datum)
        return
    event = AVRO.decode(datum)
    assert (event.kind, event.data) == (kind, value)
