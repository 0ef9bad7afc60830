"""Work and memory are linear in the input."""

from __future__ import annotations

import gc
import math
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, Final

import fastavro
import pytest

from cloudevents_kafka import (
    Codec,
    DataError,
    Decoded,
    EncodeError,
    Event,
    Record,
    codecs,
    decode,
    from_record,
    register_format,
    to_record,
)
from cloudevents_kafka.codecs import json as json_codec
from cloudevents_kafka.codecs import json_charset, json_grammar, payload
from cloudevents_kafka.codecs import registry as codec_registry
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.primitives.zigzag import encode as long
from cloudevents_kafka.spark.typed.avro_checks import AvroChecks, named_schemas
from cloudevents_kafka.spark.typed.avro_resolution import Resolution
from cloudevents_kafka.spark.typed.checks import Misfit, check_json
from cloudevents_kafka.spark.typed.shape import Member, Shape
from tests.support import strategies as make
from tests.support.cases import each
from tests.support.samples import one_in

GROWTH: Final = 8
"""The factor from the small input to the large one; work may grow by three times that."""
SIZE: Final = 300
SIZES: Final = (1, 10, 100, 1000)
MOST_CALLS: Final = 20  # for an attribute or a header; a text in JSON needs none
_STEP: Final = 50  # calls for any number of parts: names that are too many are read by another reader
_MEMORY: Final = 300  # bytes at the peak for each byte of input: an empty object in Avro is one byte
_NOISE: Final = 0.002  # seconds that are too short to be compared

HEAD: Final = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'


def headers(write: Callable[[int], Any]) -> Callable[[int], Record]:
    return lambda count: Record(headers=[*make.required_headers, *write(count)], value=b"x")


def content_type(write: Callable[[int], bytes]) -> Callable[[int], Record]:
    return headers(lambda count: [("content-type", write(count))])


def members(write: Callable[[int], bytes]) -> Callable[[int], Record]:
    headers = [("content-type", b"application/cloudevents+json")]
    return lambda count: Record(headers=headers, value=HEAD + write(count) + b"}")


def structured(name: str, write: Callable[[int], bytes]) -> Callable[[int], Record]:
    headers = [("content-type", f"application/cloudevents+{name}".encode())]
    return lambda count: Record(headers=headers, value=write(count))


def avro(write: Callable[[int], bytes]) -> Callable[[int], Record]:
    return structured("avro", write)


def compact(write: Callable[[int], bytes]) -> Callable[[int], Record]:
    return structured("avro-compact", write)


def protobuf(write: Callable[[int], bytes]) -> Callable[[int], Record]:
    return structured("protobuf", lambda count: REQUIRED + write(count))


def field(at: int, value: bytes) -> bytes:
    """Return a field of a Protobuf message whose value has fewer than 128 bytes."""
    return bytes([at << 3 | 2, len(value)]) + value


def text(value: str) -> bytes:
    return long(len(value)) + value.encode()


def repeated(form: bytes, count: int) -> bytes:
    return b"".join(form % index for index in range(count))


def letters(count: int) -> bytes:
    """Return distinct letters."""
    return "".join(chr(0x10000 + index) for index in range(count)).encode()


ATTRIBUTES: Final = long(4) + b"".join(text(name) + b"\x06" + text(v) for name, v in make.GOOD.items())
LIST: Final = ATTRIBUTES + b"\x00\x08"
COMPACT: Final = text("1") + text("/") + text("t") + b"\x00\x00\x00\x00"
REQUIRED: Final = b"".join(field(at, v) for at, v in ((1, b"1"), (2, b"/"), (3, b"1.0"), (4, b"t")))


def event(**more: Any) -> Event:
    return Event(id="1", source="/", type="t", **more)


def written_in(name: str) -> Callable[[int], Record]:
    return lambda n: to_record(event(**{f"x{i}": "v" for i in range(n)}), mode="structured", format=name)


VALID: Final[dict[str, Callable[[int], Record]]] = {
    "many headers": headers(lambda n: [(f"ce_x{i}", b"v") for i in range(n)]),
    "many headers that are not ASCII": headers(lambda n: [(f"ce_x{i}", b"\xc3\xa9") for i in range(n)]),
    "many null headers": headers(lambda n: [(f"ce_x{i}", None) for i in range(n)]),
    "many other headers": headers(lambda n: [(f"x{i}", b"v") for i in range(n)]),
    "data": lambda n: Record(headers=make.required_headers, value=b"x" * n),
    "members": members(lambda n: repeated(b',"x%d":"v"', n)),
    "members with blanks": members(lambda n: repeated(b', "x%d": "v"', n)),
    "members with escapes": members(lambda n: repeated(b',"x%d":"\\u00e9"', n)),
    "members that are not ASCII": members(lambda n: repeated(b',"x%d":"\xc3\xa9"', n)),
    "members that are integers": members(lambda n: repeated(b',"x%d":5', n)),
    "members that are Booleans": members(lambda n: repeated(b',"x%d":true', n)),
    "members that are null": members(lambda n: repeated(b',"x%d":null', n)),
    "members after data": members(lambda n: b',"data":{}' + repeated(b',"x%d":"v"', n)),
    "JSON data": members(lambda n: b',"data": [1' + b",1" * n + b"]"),
    "JSON data in the middle": members(lambda n: b',"data":[1' + b",1" * n + b'],"subject":"s"'),
    "JSON data that is not ASCII": members(lambda n: b',"data":"' + b"\xc3\xa9" * n + b'"'),
    "text data": members(lambda n: b',"datacontenttype":"a/b","data":"' + b'\\"a' * n + b'"'),
    "base64": members(lambda n: b',"data_base64":"' + b"TWFu" * n * 3 + b'"'),
    "escapes": members(lambda n: b',"subject":"' + b"\\u00e9" * n * 2 + b'"'),
    **{f"attributes in {name}": written_in(name) for name in formats.writable()},
}

INPUTS: Final[dict[str, Callable[[int], Record]]] = {
    **VALID,
    "one header again and again": headers(lambda n: [("ce_subject", b"v")] * n),
    "spellings of one name": headers(
        lambda n: [("ce_x" + f"{i:b}".translate({48: "-", 49: "_"}), b"v") for i in range(n)]
    ),
    "one other header again and again": headers(lambda n: [("x", b"v")] * n),
    "bad names": headers(lambda n: [(f"ce_X_{i}", b"v") for i in range(n)]),
    "one name in another case": headers(lambda n: [("CE_SUBJECT", b"v")] * n),
    "content types": headers(lambda n: [("content-type", b"a/b")] * n),
    "copies of the content type": headers(lambda n: [("ce_datacontenttype", b"a/b")] * n),
    "no texts": headers(lambda n: [(f"ce_x{i}", b"\xff") for i in range(n)]),
    "a long name": headers(lambda n: [("ce_" + "x" * n * 10, b"v")]),
    "a long time": headers(lambda n: [("ce_time", b"2018-04-05T17:31:00." + b"1" * n * 10 + b"Z")]),
    "a long time without end": headers(lambda n: [("ce_time", b"2018-04-05T17:31:00." + b"1" * n * 10)]),
    "a long URI": headers(lambda n: [("ce_dataschema", b"urn:" + b"%41a" * n * 3)]),
    "a long URI with a bad end": headers(lambda n: [("ce_dataschema", b"urn:" + b"%41a" * n * 3 + b" ")]),
    "a long number": headers(lambda n: [("ce_sampledrate", b"9" * n * 10)]),
    "long base64": headers(lambda n: [("ce_dssematerial", b"TWFu" * n * 3)]),
    "parameters": content_type(lambda n: b"a/b" + b";a=b" * n * 3),
    "quoted parameters": content_type(lambda n: b"a/b" + b';c="d"' * n * 2),
    "parameters of charsets": content_type(lambda n: b"a/b" + b';charset="\\u\\t\\f"' * n),
    "a charset of escapes": content_type(lambda n: b'text/plain;charset="' + b"\\u" * n * 5 + b'"'),
    "parameters with a bad end": content_type(lambda n: b"a/b" + b"; a=b" * n * 3 + b";"),
    "an open quotation": content_type(lambda n: b'a/b;a="' + b"\\a" * n * 5),
    "quotations and an open one": content_type(lambda n: b"a/b" + b';a="\\a"' * n + b';a="'),
    "spaces and no parameter": content_type(lambda n: b"a/b" + b" " * n * 10 + b"x"),
    "semicolons": content_type(lambda n: b"a/b" + b" ;" * n * 5),
    "spaces behind the format": content_type(lambda n: b"application/cloudevents+json" + b" " * n * 10),
    "a long charset": content_type(lambda n: b"text/plain;charset=" + b"-x" * n * 5),
    "members with capitals": members(lambda n: repeated(b',"X%d":"v"', n)),
    "members of no type": members(lambda n: repeated(b',"x%d":1.5', n)),
    "members that are lists": members(lambda n: repeated(b',"x%d":[]', n)),
    "one member again and again": members(lambda n: b',"x":"v"' * n),
    "one member again and again, with escapes": members(lambda n: b',"\\u0078":"v"' * n),
    "data again and again": members(lambda n: b',"data":1' * n),
    "a long integer": members(lambda n: b',"x":' + b"9" * n * 10),
    "long integers": members(lambda n: repeated(b',"x%d":' + b"9" * 4000, n // 20)),
    "a long fraction": members(lambda n: b',"x":0.' + b"9" * n * 10),
    "a long integer as data": members(lambda n: b',"data":' + b"9" * n * 10),
    "a long integer as text": members(lambda n: b',"datacontenttype":"text/plain","data":' + b"9" * n * 10),
    "base64 with a bad end": members(lambda n: b',"data_base64":"' + b"TWFu" * n * 3 + b'!"'),
    "quoted quotes": members(lambda n: b',"subject":"' + b'\\"data\\":' * n + b'"'),
    "halves of characters": members(lambda n: b',"subject":"' + b"\\ud800" * n + b'"'),
    "deep data": members(lambda n: b',"data":' + make.deep(b"[", n, b"]")),
    "deep objects as data": members(lambda n: b',"data":' + make.deep(b'{"a":[', n, b"]}")),
    "data of halves of characters": members(lambda n: b',"data":"' + b"\\ud800" * n + b'"'),
    "wide data with half of a character": members(lambda n: b',"data":["\\ud800"' + b',[{"a":1}]' * n + b"]"),
    "data with half of a character, open": members(lambda n: b',"data":["\\ud800"' + b",[" * n),
    "a deep extension": members(lambda n: b',"x":' + make.deep(b"[", n, b"]")),
    "a wide extension": members(lambda n: b',"x":[' + b"1," * n + b"1]"),
    "utf-16": members(
        lambda n: b',"datacontenttype":"a/json;charset=utf-16","data":"' + b"a" * n * 10 + b'"'
    ),
    "utf-7": members(
        lambda n: b',"datacontenttype":"text/plain;charset=utf-7","data":"' + b"\xc3\xa9" * n * 5 + b'"'
    ),
    "iso-2022": members(
        lambda n: b',"datacontenttype":"a/b;charset=iso-2022-jp","data":"' + b"\xe3\x81\x82a" * n * 2 + b'"'
    ),
    "idna": members(lambda n: b',"datacontenttype":"a/b;charset=idna","data":"' + letters(n * 5) + b'"'),
    "punycode": members(
        lambda n: b',"datacontenttype":"a/b;charset=punycode","data":"' + letters(n * 5) + b'"'
    ),
    "JSON without a header": lambda n: Record(value=HEAD + b',"data":"' + b"a" * n * 10 + b'"}'),
    "no JSON under its name": lambda n: Record(headers=[("content-type", b"a/json")], value=b"[" * n),
    "Avro attributes": avro(
        lambda n: ATTRIBUTES + b"".join(long(1) + text(f"x{i}") + b"\x00" for i in range(n)) + b"\x00\x02"
    ),
    "one Avro attribute again and again": avro(
        lambda n: ATTRIBUTES + (long(1) + text("x") + b"\x00") * n + b"\x00\x02"
    ),
    "Avro objects of one byte": avro(lambda n: LIST + long(n * 5) + b"\x00" * n * 5 + b"\x00"),
    "Avro blocks of one object": avro(lambda n: LIST + (long(1) + b"\x00") * n * 3 + b"\x00"),
    "an endless Avro list": avro(lambda n: LIST + long(2**62) + b"\x00" * n * 5),
    "an endless Avro map": avro(lambda n: long(2**62) + b"\x00" * n * 5),
    "an endless Avro map, by its size": avro(lambda n: b"\xff" * 8 + b"\x7f" + b"\x00" * n * 5),
    "deep Avro data": avro(lambda n: LIST + b"\x02\x02\x02a\x06" * n),
    "compact Avro attributes": compact(
        lambda n: COMPACT + b"".join(long(1) + text(f"x{i}") + b"\x00\x00" for i in range(n)) + b"\x00\x02"
    ),
    "an endless compact Avro map": compact(lambda n: COMPACT + long(2**62) + b"\x00" * n * 5),
    "Protobuf attributes": protobuf(
        lambda n: b"".join(field(5, field(1, b"x%d" % i) + field(2, field(3, b"v"))) for i in range(n))
    ),
    "one Protobuf attribute again and again": protobuf(
        lambda n: field(5, field(1, b"x") + field(2, field(3, b"v"))) * n
    ),
    "Protobuf attributes without a value": protobuf(lambda n: field(5, field(1, b"x") + field(2, b"")) * n),
    "Protobuf data again and again": protobuf(lambda n: field(7, b"x") * n),
    "empty Protobuf fields": protobuf(lambda n: b"\x78\x00" * n),
    "nested Protobuf groups": protobuf(lambda n: b"\x7b" * n),
    "a number without end": avro(lambda n: b"\xff" * n * 10),
}


def size_of(record: Record) -> int:
    return len(record.value or b"") + sum(len(name) + len(value or b"") for name, value in record.headers)


def do_everything(record: Record) -> None:
    """Read a record strictly and leniently, explain it, access its event, and write it in every format."""
    for lenient in (False, True):
        result = decode(record, lenient=lenient)
        if isinstance(result, Decoded):
            repr(result.event)
            with suppress(DataError):
                assert result.event.data is result.event.data
            for name in (None, *formats.names()):
                with suppress(EncodeError):
                    to_record(result.event, mode="structured" if name else None, format=name)
            to_record(result.event, like=record)
        else:
            assert str(result.error)


def taken(action: Callable[[], object]) -> float:
    """Return the processor time in seconds, the minimum of three runs."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return min(seconds)


# The law by steps has all inputs in each run; by memory and by time of a processor, each fourth.
@pytest.mark.parametrize("name", one_in(4, INPUTS))
def test_work_is_linear(name: str) -> None:
    """An input of eight times the size takes about eight times the work."""
    small, large = INPUTS[name](SIZE), INPUTS[name](SIZE * GROWTH)
    allowed = 3 * GROWTH
    ratios = []
    for _ in range(3):  # a busy machine spoils a measurement, not three
        ratios.append(
            taken(partial(do_everything, large)) / max(taken(partial(do_everything, small)), _NOISE)
        )
        if ratios[-1] < allowed:
            return
    pytest.fail(f"work grows by {ratios}, where the input grows by {GROWTH}")


def ways(record: Record) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield functions that read and write a record, each with its name."""
    changed = from_record(record).replace(id="2")  # an event that is not changed keeps its bytes
    yield "read", lambda: from_record(record)
    yield "read leniently", lambda: decode(record, lenient=True)
    yield "write in binary mode", lambda: to_record(changed)
    yield "write in JSON", lambda: to_record(changed, mode="structured")
    yield "write like the record", lambda: to_record(changed, like=record)
    attributes: dict[str, Any] = {name: changed[name] for name in changed}
    yield "make", lambda: Event(**attributes, data=changed.payload)


def count_calls(action: Callable[[], object]) -> int:
    """Return how many functions of Python and of C are called once the caches and readers know the record."""
    for _ in range(5):
        action()
    events: list[str] = []
    before = sys.getprofile()
    gc.disable()  # its callbacks are functions, too
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        action()
    finally:
        sys.setprofile(before)
        gc.enable()
    return events.count("call") + events.count("c_call")


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", VALID)
def test_calls_are_linear(name: str) -> None:
    """From 1 to 1,000 parts of a valid event, each more needs as many calls: few, and none for data."""
    register_format("json", JsonFormat)  # one that has met no names, which it learns at some calls
    counts: dict[str, list[int]] = {}
    for size in SIZES:
        for way, action in ways(VALID[name](size)):
            counts.setdefault(way, []).append(count_calls(action))
    for way, (one, ten, hundred, thousand) in counts.items():
        for_each = round((thousand - hundred) / 900)
        assert for_each <= MOST_CALLS, (way, counts)
        for fewer, more, parts in ((one, ten, 9), (ten, hundred, 90), (hundred, thousand, 900)):
            assert abs(more - fewer - for_each * parts) <= _STEP, (way, counts)
        if name in ("data", "text data", "base64", "escapes") or name.startswith("JSON data"):
            assert for_each == 0, way


@pytest.mark.parametrize("name", one_in(4, INPUTS))
def test_memory_is_linear(name: str) -> None:
    """The peak of memory is bounded by the size of the input, and a count alone allocates nothing."""
    record = INPUTS[name](SIZE * GROWTH)
    do_everything(record)  # what is remembered for good is not of this record
    tracemalloc.start()
    try:
        do_everything(record)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < _MEMORY * size_of(record) + 100_000


# --- data by a schema, and codecs: steps of Python for twice as much of it ----------------------

STEPS: Final = (50, 100, 200)
_MANY: Final = 900
_SLACK: Final = 300  # steps: of what is remembered, or sorted
Reads = Callable[[int], Callable[[], object]]

ITEMS: Final = Shape("ARRAY", item=Shape("STRUCT", members=(Member("a", Shape("BIGINT")),)))
FIELDS: Final = Shape(
    "STRUCT",
    members=(
        Member("a", Shape("BIGINT")),
        Member("s", Shape("STRING", nullable=True)),
        Member("d", Shape("DECIMAL(38,0)")),
        Member("r", Shape("DOUBLE")),
        Member("t", Shape("TIMESTAMP")),
        Member("x", Shape("BINARY")),
        Member("m", Shape("MAP", item=Shape("BIGINT"))),
        Member("l", ITEMS),
        Member("n", Shape("MAP", item=ITEMS)),
    ),
)


def by_shape(write: Callable[[int], bytes], *, rescue: bool = False) -> Reads:
    """Return how data of JSON is checked."""
    return lambda count: partial(check_json, write(count), FIELDS, rescue=rescue)


def by_avro(type_: Any, write: Callable[[int], bytes], reader: Any = None) -> Reads:
    """Return how data of Avro is checked, and resolved into the schema of a reader."""
    writer, wanted = (
        fastavro.parse_schema({"type": "record", "name": "R", "fields": [{"name": "a", "type": each}]})
        for each in (type_, reader or type_)
    )
    checks, resolution = AvroChecks(writer), Resolution(writer, named_schemas(writer), wanted)

    def read(datum: bytes) -> None:
        checks.check(datum)
        with suppress(Misfit):
            resolution.read(datum)

    return lambda count: partial(read, write(count))


def by_codec(codec: Codec, value: Callable[[int], Any]) -> Reads:
    """Return how a value is encoded, and decoded again."""

    def both(value: Any) -> None:
        assert codec.encode is not None
        assert codec.decode is not None
        codec.decode(codec.encode(value))

    return lambda count: partial(both, value(count))


def each_of(function: Callable[[Any], object], write: Callable[[int], Any]) -> Reads:
    return lambda count: partial(function, write(count))


def array_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def blocks(item: bytes) -> Callable[[int], bytes]:
    return lambda count: long(count) + item * count + b"\x00"


def members_of(form: bytes) -> Callable[[int], bytes]:
    return lambda count: b'{"a":1' + repeated(form, count) + b"}"


def behind_a_key(length: int, count: int, item: bytes) -> bytes:
    return b'{"n":{"' + b"k" * length + b'":[' + b",".join([item] * count) + b"]}}"


def refused(value: Any) -> None:
    with pytest.raises(DataError):
        json_codec.encode_json(value)


NODE: Final = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
DECIMAL: Final = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}

DATA: Final[dict[str, Reads]] = {
    "a member twice among others": by_shape(lambda n: b'{"a":1,"a":2' + repeated(b',"x%d":1', n) + b"}"),
    "each member twice": by_shape(lambda n: b'{"a":1' + repeated(b',"x%d":1', n) * 2 + b"}"),
    "other members": by_shape(members_of(b',"x%d":1')),
    "items": by_shape(lambda n: b'{"l":[' + b'{"a":1},' * n + b"{}]}"),
    "keys": by_shape(lambda n: b'{"m":{"k":1' + repeated(b',"k%d":1', n) + b"}}"),
    "a key twice": by_shape(lambda n: b'{"m":{"k":1,"k":1' + repeated(b',"k%d":1', n) + b"}}"),
    "rescued members": by_shape(members_of(b',"x%d":1'), rescue=True),
    "rescued members of items": by_shape(lambda n: b'{"l":[' + b'{"a":1,"x":1},' * n + b"{}]}", rescue=True),
    "rescued items": by_shape(lambda n: b'{"l":[' + b'{"a":"1"},' * n + b"{}]}", rescue=True),
    "rescued items of a list that does not fit": by_shape(
        lambda n: b'{"l":[' + b'{"a":"1","x":1},' * n + b"1]}", rescue=True
    ),
    "items behind a long key": by_shape(lambda n: behind_a_key(n, n, b'{"a":1}')),
    "rescued members behind a long key": by_shape(lambda n: behind_a_key(n, n, b'{"x":1}'), rescue=True),
    "a long number": by_shape(lambda n: b'{"a":' + b"9" * n * 19 + b"}"),
    "a long fraction": by_shape(lambda n: b'{"r":0.' + b"9" * n * 19 + b',"d":0.' + b"0" * n * 19 + b"}"),
    "a long exponent": by_shape(lambda n: b'{"r":1e' + b"9" * n + b',"d":1e' + b"9" * n + b"}"),
    "a long text": by_shape(lambda n: b'{"s":"' + b"\\u00e9" * n + b'","x":"' + b"TWFu" * n + b'"}'),
    "a long time": by_shape(lambda n: b'{"t":"2024-01-01T00:00:00.' + b"0" * n + b'Z"}'),
    "deep data that no schema has": by_shape(lambda n: b'{"x":' + make.deep(b"[", n, b"]") + b"}"),
    "a place in a key": by_shape(lambda n: b'{"m":{"' + b"/~" * n + b'":"1"}}'),
    "an array of Avro": by_avro(array_of("long"), blocks(b"\x02"), array_of("double")),
    "an array of nothing": by_avro(array_of("null"), lambda n: long(n) + b"\x00"),
    "blocks of nothing": by_avro(array_of("null"), lambda n: long(1) * n + b"\x00"),
    "nested nothing": by_avro(array_of(array_of("null")), blocks(long(9) + b"\x00")),
    "an array of unions": by_avro(array_of(["null", "string"]), blocks(b"\x02\x02x")),
    "a map of Avro": by_avro(
        {"type": "map", "values": "int"},
        lambda n: long(n) + b"".join(text(f"k{i}") + b"\x02" for i in range(n)) + b"\x00",
    ),
    "a key of Avro twice": by_avro({"type": "map", "values": "int"}, blocks(text("k") + b"\x02")),
    "a decimal of many bytes": by_avro(DECIMAL, lambda n: text("\x01" * n), {**DECIMAL, "scale": 3}),
    "a string of Avro": by_avro("string", lambda n: text("é" * n)),
    "a number of Avro without end": by_avro("long", lambda n: b"\x80" * n),
    "a datum that ends too early": by_avro(array_of("long"), lambda n: long(2**60) + b"\x02" * n),
    "records of Avro in records": by_avro(NODE, lambda n: b"\x02" * n + b"\x00"),
    "the codec of Avro": by_codec(codecs.avro(array_of(NODE)), lambda n: [{"next": {"next": None}}] * n),
    "the codec of Avro, nothing": by_codec(codecs.avro(array_of("null")), lambda n: [None] * n),
    "the codec of Avro, decimals": by_codec(codecs.avro(array_of(DECIMAL)), lambda n: [Decimal("1.25")] * n),
    "the codec of a type": by_codec(codecs.typed_json(dict[str, list[int]]), lambda n: {"k": [1] * n}),
    "a value as JSON": each_of(json_codec.encode_json, lambda n: [{"k": 1.5}] * n),
    "a value that is not finite": each_of(refused, lambda n: [1.5] * n + [math.inf]),
    "JSON as a value": each_of(json_codec.decode_json, lambda n: b"[" + b'{"a":1},' * n + b"1]"),
    "JSON that has no value": each_of(json_codec.is_json, lambda n: b"[" + b'"\\ud800",' * n + b"1]"),
    "JSON that has no end": each_of(json_codec.is_json, lambda n: b"[" + b'"\\ud800",{"a":[' * n),
    "half of a character at the end": each_of(
        json_grammar.find_lone_surrogate, lambda n: b'"' + b"\\u00e9" * n + b'\\ud800"'
    ),
    "members as texts": each_of(
        lambda raw: json_grammar.blank_members(raw, "a"), members_of(b',"x%d":[1,{}]')
    ),
    "one member as text, again and again": each_of(
        lambda raw: json_grammar.blank_members(raw, "a"), lambda n: b'{"a":1' + b',"a":[1]' * n + b"}"
    ),
    "JSON in another charset": each_of(
        lambda value: json_charset.encode_json_text(value, "ascii"), lambda n: '"é€"' * n
    ),
    "data of another charset": each_of(
        lambda value: payload.json_payload(value, "application/json;charset=utf-16"), lambda n: ["é"] * n
    ),
    "a codec of a media type": each_of(
        lambda media: codec_registry.find(media, {}), lambda n: "application/x" + "+y" * n
    ),
}


def count_steps(action: Callable[[], object]) -> int:
    """Return how many lines are run and how many functions are called, once caches are filled."""
    action()
    steps = [0]

    def trace(frame: Any, event: str, argument: Any) -> Any:
        steps[0] += 1
        return trace

    def profile(frame: Any, event: str, argument: Any) -> None:
        steps[0] += event == "c_call"

    before, profiled = sys.gettrace(), sys.getprofile()
    gc.disable()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(profiled)
        sys.settrace(before)
        gc.enable()
    return steps[0]


def assert_linear(counts: list[int], name: str) -> None:
    """Assert that twice as much input needs twice as many steps more."""
    fewer, more = counts[1] - counts[0], counts[2] - counts[1]
    assert more <= 2.5 * max(fewer, 0) + _SLACK, (name, counts)


@each("name", DATA)
def test_steps_of_data_are_linear(name: str) -> None:
    """Data by a schema, and each codec: a step more for a part more, in all ways to fail as well."""
    assert_linear([count_steps(DATA[name](size)) for size in STEPS], name)


def test_rescued_members_behind_a_long_key_are_bounded() -> None:
    """Each pointer has the key: a megabyte of them is kept, and more is a misfit that names the bound."""
    few, many = (behind_a_key(50_000, count, b'{"x":1}') for count in (10, 500))
    assert (check_json(few, FIELDS, rescue=True).payload or b"").count(b"/0/x") == 1
    tracemalloc.start()
    try:
        reason = check_json(many, FIELDS, rescue=True).reason
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    most = (1 << 20) + 32 * len(many)
    rule = f"must have at most {most} characters in pointers of rescued members"
    assert reason == f"data: it {rule}, got more"
    assert peak < 10 * most


def test_absent_members_of_items_are_bounded() -> None:
    """An object costs each member of its schema, as a row of Spark has them all: a few bytes cost little."""
    wide = Shape("STRUCT", members=tuple(Member(f"m{n}", Shape("BIGINT")) for n in range(500)))
    root = Shape("STRUCT", members=(Member("l", Shape("ARRAY", item=wide)),))
    payload = b'{"l":[' + b"{}," * 500 + b"{}]}"
    rule = f"must have at most {16_384 + 32 * len(payload)} members, including absent members"
    for rescue in (False, True):
        read = partial(check_json, payload, root, rescue=rescue)
        assert count_steps(read) < 500_000
    assert check_json(payload, root).reason == f"data: it {rule}, for its {len(payload)} bytes, got more"
    assert check_json(payload, root, rescue=True).payload is not None  # the list is a rescued member


@each("name", INPUTS)
def test_steps_of_records_are_linear(name: str) -> None:
    """Each way to read a record in each format, and to write its event, takes a step more for a part more."""
    assert_linear([count_steps(partial(do_everything, INPUTS[name](size))) for size in STEPS], name)


@pytest.mark.parametrize("name", one_in(4, DATA))
def test_work_of_data_is_linear(name: str) -> None:
    """The same for what C does within a step, such as a search in a list or a copy."""
    small, large = (DATA[name](_MANY * factor) for factor in (1, GROWTH))
    ratios = []
    for _ in range(3):
        ratios.append(taken(large) / max(taken(small), _NOISE / 4))
        if ratios[-1] < 3 * GROWTH:
            return
    pytest.fail(f"work grows by {ratios}, where the input grows by {GROWTH}")


def test_a_quadratic_step_is_found() -> None:
    """The two measures find a loop within a loop, in Python and in C."""

    def in_python(count: int) -> Callable[[], object]:
        return lambda: [None for _ in range(count) for _ in range(count // 10) if str(count) == "0"]

    def in_c(count: int) -> Callable[[], object]:
        names = [f"name {n}" for n in range(count)]
        return lambda: [name for name in names if names.count(name) > 1]

    with pytest.raises(AssertionError):
        assert_linear([count_steps(in_python(size * 4)) for size in STEPS], "in Python")
    assert taken(in_c(SIZE * GROWTH)) / max(taken(in_c(SIZE)), _NOISE / 4) > 3 * GROWTH
