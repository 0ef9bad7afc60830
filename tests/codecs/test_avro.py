"""Limits for untrusted Avro data: a value or a DataError, in bounded time and memory."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import time
import tracemalloc
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import DataError, Event, InvalidEvent, codecs, register_codec
from cloudevents_kafka.codecs._avro import MAX_DECIMAL_BYTES, MAX_DEPTH, MAX_EMPTY_ITEMS, AvroLimits
from cloudevents_kafka.codecs.avro_binary import write_bytes
from cloudevents_kafka.codecs.registry import call_decode, call_encode
from cloudevents_kafka.primitives import zigzag
from tests.support.cases import each
from tests.support.strategies import examples

NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
TREE = {
    "type": "record",
    "name": "n.Tree",
    "fields": [
        {"name": "label", "type": "string"},
        {"name": "down", "type": {"type": "array", "items": "Tree"}},
    ],
}
MAPS = {"type": "record", "name": "M", "fields": [{"name": "m", "type": {"type": "map", "values": "M"}}]}
ENDLESS = {"type": "record", "name": "E", "fields": [{"name": "e", "type": "E"}]}
NULLS = {"type": "array", "items": "null"}
NOTHING = {"type": "record", "name": "Nothing", "fields": [{"name": "n", "type": "null"}]}
NONE_OF = {"type": "fixed", "name": "None", "size": 0}
MANY = {"type": "record", "name": "Many", "fields": [{"name": f"n{i}", "type": "null"} for i in range(1000)]}
DEC = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
LONG_DEC = {"type": "bytes", "logicalType": "decimal", "precision": 3000}
NUMBERS = {
    "type": "record",
    "name": "Numbers",
    "fields": [
        *({"name": kind[0], "type": kind} for kind in ("long", "boolean", "float", "double", "int")),
        {"name": "next", "type": ["null", "Numbers"]},
    ],
}
NULLS_IN_UNIONS = {
    "type": "record",
    "name": "Both",
    "fields": [
        {"name": "nulls", "type": NULLS},
        {"name": "unions", "type": {"type": "array", "items": ["null", "string"]}},
    ],
}


def data(schema: Any, value: bytes) -> Any:
    return call_decode(codecs.avro(schema).decode, value, "application/avro")  # type: ignore[arg-type]  # it has one


def written(schema: Any, value: Any) -> bytes:
    return call_encode(codecs.avro(schema).encode, value, "application/avro")  # type: ignore[arg-type]  # it has one


def chain(nodes: int) -> Any:
    value = None
    for _ in range(nodes):
        value = {"next": value}
    return value


def of_arrays(count: int, arrays: int) -> bytes:
    return zigzag.encode(arrays) + (zigzag.encode(count) + b"\0") * arrays + b"\0"


@each(
    ("schema", "value", "said"),
    [
        (NODE, b"\x02" * 5000 + b"\0", "nested deeper than 128 records"),
        (NODE, b"\x02" * 1_000_000, "nested deeper"),
        (NODE, b"\x02" * 9, "ends too early"),
        (NODE, b"\x04", "an unknown union branch"),
        (NODE, b"\x01", "an unknown union branch"),
        (NODE, b"\0\0", "bytes follow its end"),
        (TREE, b"\0\x02" * 5000, "nested deeper"),
        (TREE, b"\x06ab", "a length beyond its end"),
        (MAPS, b"\x02\0" * 5000, "nested deeper"),
        (["null", NODE], b"\x02" * 5000, "nested deeper"),
        ([{"type": "array", "items": NODE}, "Node"], b"\x02" * 5000, "nested deeper"),
        (ENDLESS, b"", "nested deeper"),
        ({"type": "array", "items": ENDLESS}, b"\x02", "nested deeper"),
        (NULLS, bytes.fromhex("8080804000"), "more than 65536 items without bytes"),
        (NULLS, bytes.fromhex("808080808010"), "without bytes"),
        (NULLS, bytes.fromhex("ffffffffffffffffff010000"), "without bytes"),
        (NULLS, b"\x02", "ends too early"),
        ({"type": "array", "items": NULLS}, of_arrays(1000, 1000), "without bytes"),
        ({"type": "array", "items": NOTHING}, bytes.fromhex("8080804000"), "without bytes"),
        ({"type": "array", "items": NONE_OF}, bytes.fromhex("8080804000"), "without bytes"),
        ({"type": "map", "values": MANY}, zigzag.encode(100) + b"\0" * 101, "without bytes"),
        (
            {"type": "array", "items": ["null", MANY]},
            zigzag.encode(100) + b"\2" * 100 + b"\0",
            "without bytes",
        ),
        ([NULLS, NODE, {"type": "array", "items": "double"}], b"\4" + b"\x80" * 8 + b"\1\0", "too early"),
        ([NULLS, {"type": "array", "items": "int"}], b"\2" + b"\x80" * 8 + b"\1\0", "ends too early"),
        ([NULLS, {"type": "array", "items": "string"}], b"\2\2\1\0", "a length beyond its end"),
        (DEC, write_bytes(b"\1" * 1_000_000), "a decimal of more than 1024 bytes"),
        (
            {"type": "array", "items": DEC},
            zigzag.encode(9) + write_bytes(b"\1" * 100_000) * 9,
            "a decimal of more",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_data_beyond_the_limits_is_refused(schema: Any, value: bytes, said: str) -> None:
    """Data beyond a limit raises DataError in little time and memory."""
    codec = codecs.avro(schema)
    assert codec.decode is not None
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(DataError, match=said) as caught:
        call_decode(codec.decode, value, "application/avro")
    assert time.process_time() - started < 2
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    assert str(caught.value).startswith("data is not application/avro: ")


@each(
    ("schema", "value", "raw"),
    [
        ("Paid", {"order": 2}, b"\x04"),
        (["Placed", "Paid"], ("Paid", {"order": 2}), b"\x02\x04"),
        (["null", "Placed"], {"order": 2}, b"\x02\x04"),
        ({"type": "array", "items": "Placed"}, [{"order": 2}], b"\x02\x04\0"),
        ({"type": "map", "values": ["null", "Placed"]}, {"a": {"order": 2}}, b"\x02\x02a\x02\x04\0"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "f", "type": "Paid"}]},
            {"f": {"order": 2}},
            b"\x04",
        ),
    ],
)
def test_references_of_any_schema(schema: Any, value: Any, raw: bytes) -> None:
    """A schema of any kind may refer to types of other schemas, as a union of two types of events does."""
    fields = [{"name": "order", "type": "int"}]
    references = [{"type": "record", "name": name, "fields": fields} for name in ("Placed", "Paid")]
    codec = codecs.avro(schema, references=references)
    assert codec.encode is not None
    assert codec.decode is not None
    assert codec.encode(value) == raw
    assert codec.decode(raw) == (value[1] if isinstance(value, tuple) else value)


def test_limits_of_references() -> None:
    """The limits of data are the same, whether a type is in the schema or in a reference."""
    for schema, references in (([NODE, "null"], ()), (["Node", "null"], (NODE,))):
        codec = codecs.avro(schema, references=references)
        deepest = b"\0" + b"\x02" * (MAX_DEPTH - 1) + b"\0"
        assert call_decode(codec.decode, deepest, "application/avro") == chain(MAX_DEPTH)  # type: ignore[arg-type]
        with pytest.raises(DataError, match="nested deeper than 128"):
            call_decode(codec.decode, b"\0\x02" + deepest[1:], "application/avro")  # type: ignore[arg-type]
        assert call_encode(codec.encode, chain(MAX_DEPTH), "application/avro") == deepest  # type: ignore[arg-type]
        with pytest.raises(DataError, match="nested deeper than 128"):
            call_encode(codec.encode, chain(MAX_DEPTH + 1), "application/avro")  # type: ignore[arg-type]


@pytest.mark.usefixtures("registry")
def test_an_event_with_such_data_is_valid() -> None:
    """Only access to the data raises an error; the payload is complete."""
    register_codec("application/avro", codecs.avro(NODE))
    event = Event(id="1", source="/", type="t", datacontenttype="application/avro", data=b"\x02" * 5000)
    with pytest.raises(DataError, match="register a Codec of your own"):
        _ = event.data
    assert event.payload == b"\x02" * 5000
    assert event.replace(data=chain(2)).data == chain(2)
    with pytest.raises(InvalidEvent, match="a dict cannot be written as application/avro: it is nested"):
        event.replace(data=chain(50_000))


def circle() -> Any:
    value: dict[str, Any] = {}
    value["next"] = value
    return value


@each(
    ("schema", "value", "said"),
    [
        (NODE, chain(50_000), "a dict cannot be written as .*nested deeper"),
        (NODE, chain(MAX_DEPTH + 1), "nested deeper"),
        (NODE, circle(), "nested deeper"),
        (["null", NODE], ("Node", chain(MAX_DEPTH + 1)), "nested deeper"),
        (NULLS, [None] * (MAX_EMPTY_ITEMS + 1), "without bytes"),
        (DEC, Decimal("1E+999999999999"), "a Decimal of more than 2465 digits"),
        ([NULLS, DEC], [Decimal("-1E+999999999")], "a Decimal of more"),
        (LONG_DEC, Decimal(10**2465), "a Decimal of more"),
        (DEC, Decimal("NaN"), "its codec raised"),
        (DEC, Decimal("0.123"), "its codec raised ValueError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_beyond_the_limits_is_not_written(schema: Any, value: Any, said: str) -> None:
    """A value that could not be read again is refused."""
    with pytest.raises(DataError, match=said):
        written(schema, value)


@each(
    ("schema", "value"),
    [
        (NODE, chain(MAX_DEPTH)),
        (TREE, {"label": "", "down": [{"label": "é" * 99, "down": []}] * 1000}),
        (MAPS, {"m": {"a": {"m": {}}, "b": {"m": {}}}}),
        (NULLS, [None] * MAX_EMPTY_ITEMS),
        ({"type": "array", "items": NULLS}, [[None] * 9, []]),
        ({"type": "array", "items": {"type": "array", "items": "double"}}, [[1.5] * 999]),
        ([NULLS, {"type": "array", "items": "string"}], ["a" * 200] * 99),
        (DEC, Decimal("12345678.90")),
        (LONG_DEC, Decimal(10**2464)),
        (NUMBERS, {"l": 64, "b": True, "f": 1.5, "d": 1.5, "i": 1, "next": None}),
        (NULLS_IN_UNIONS, {"nulls": [None] * 65_000, "unions": [None] * 1000}),
        ({**DEC, "precision": 2000}, Decimal("1" * 1998 + ".25")),
        ({"type": "array", "items": DEC}, [Decimal("1.25")] * 2000),
        ({"type": "array", "items": {**DEC, "type": "fixed", "name": "F", "size": 8}}, [Decimal("1.25")] * 9),
        (["null", NODE], chain(3)),
        (
            [{"type": "array", "items": ["null", {"type": "enum", "name": "Y", "symbols": ["a"]}, NODE]}],
            ["a"],
        ),
    ],
    ids=str,
)
def test_data_within_the_limits_is_that_of_fastavro(schema: Any, value: Any) -> None:
    """Data up to the limits is written and read as by fastavro."""
    expected = io.BytesIO()
    fastavro.schemaless_writer(expected, fastavro.parse_schema(schema), value)
    raw = written(schema, value)
    assert raw == expected.getvalue()
    assert data(schema, raw) == value


def test_data_of_a_plain_schema_is_not_checked() -> None:
    """For a schema without recursion, decimals and empty items, only fastavro reads the data."""
    plain = {
        "type": "record",
        "name": "P",
        "fields": [
            {"name": "a", "type": {"type": "array", "items": ["null", "string"]}},
            {"name": "b", "type": {"type": "map", "values": NOTHING}},
            {"name": "c", "type": "Nothing"},
        ],
    }
    named: dict[str, Any] = {}
    bounds = AvroLimits(fastavro.parse_schema(plain, named), named)
    bounds.check_datum(b"\xff" * 9)
    bounds.check_value(circle())
    named = {}
    small = AvroLimits(fastavro.parse_schema(DEC, named), named)
    small.check_datum(b"\xff" * MAX_DECIMAL_BYTES)


ROOM = """
import threading
from cloudevents_kafka.codecs._avro import MAX_DEPTH
from cloudevents_kafka.codecs import avro
node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
two = ["null", {"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"},
    {"name": "next", "type": ["null", "A", {"type": "record", "name": "B", "fields": [
        {"name": "b", "type": "int"}, {"name": "next", "type": ["null", "A", "B"]}]}]}]}]
tree = {"type": "record", "name": "T", "fields": [{"name": "t", "type": {"type": "array", "items": "T"}}]}
maps = {"type": "record", "name": "M", "fields": [{"name": "m", "type": {"type": "map", "values": "M"}}]}

def chain(end, wrap, levels):
    for _ in range(levels):
        end = wrap(end)
    return end

def run():
    for schema, value in [
        (node, chain(None, lambda v: {"next": v}, MAX_DEPTH)),
        (two, chain(None, lambda v: {"a": 1, "next": v}, MAX_DEPTH)),
        (tree, chain({"t": []}, lambda v: {"t": [v]}, MAX_DEPTH // 2 - 1)),
        (maps, chain({"m": {}}, lambda v: {"m": {"k": v}}, MAX_DEPTH // 2 - 1)),
    ]:
        codec = avro(schema)
        assert codec.decode(codec.encode(value)) == value
    print("refused")

threading.stack_size(512 * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_data_within_the_limits_fits_a_small_stack() -> None:
    """The deepest data fits a stack of 512 KiB; a process of its own shows it."""
    done = subprocess.run(
        [sys.executable, "-c", ROOM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("refused\n", 0), done.stderr


# --- any schema, any bytes -------------------------------------------------------

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    """Return schemas of all kinds, some of them recursive."""
    names = iter(range(100))
    known: list[str] = []

    def record(depth: int) -> Any:
        name = f"R{next(names)}"
        known.append(name)
        fields = [{"name": f"f{n}", "type": one(depth - 1)} for n in range(draw(st.integers(0, 3)))]
        return {"type": "record", "name": name, "fields": fields}

    def union(depth: int) -> Any:
        plain = draw(st.lists(st.sampled_from([*PRIMITIVES, *known]), unique=True, max_size=3))
        more = [record(depth - 1)] if draw(st.booleans()) else [{"type": "array", "items": one(depth - 1)}]
        return [*plain, *more]

    def one(depth: int) -> Any:
        kind = draw(st.sampled_from(["primitive", "known", "record", "array", "map", "union", "named"]))
        if kind == "known" and known:
            return draw(st.sampled_from(known))
        if depth <= 0 or kind in ("primitive", "known"):
            return draw(st.sampled_from([*PRIMITIVES, DEC]))
        if kind == "array":
            return {"type": "array", "items": one(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": one(depth - 1)}
        if kind == "named":
            name = f"R{next(names)}"
            fixed = {"type": "fixed", "name": name, "size": draw(st.integers(0, 3))}
            return draw(st.sampled_from([fixed, {"type": "enum", "name": name, "symbols": ["a", "b"]}]))
        return record(depth) if kind == "record" else union(depth)

    return record(4)


few_bytes = st.lists(
    st.one_of(st.sampled_from([b"\0", b"\1", b"\2", b"\3", b"\4", b"\6"]), st.binary(min_size=1, max_size=3)),
    max_size=25,
).map(b"".join)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, where NaN equals NaN."""
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def is_datum(raw: bytes, schema: Any) -> bool:
    """Return whether fastavro reads the bytes to their end."""
    stream = io.BytesIO(raw)
    try:
        fastavro.schemaless_reader(stream, schema, None)
    except Exception:  # noqa: BLE001 - it has many
        return False
    return not stream.read(1)


@examples(400)
@given(schemas(), few_bytes)
def test_any_bytes_are_a_value_or_a_data_error(schema: Any, raw: bytes) -> None:
    """Values are those of fastavro, and valid data within the limits is not refused."""
    known = fastavro.parse_schema(schema)
    try:
        value = data(schema, raw)
    except DataError as error:
        if any(said in str(error) for said in ("nested deeper", "no bytes", "branch", "64 bits", "length")):
            return
        assert not is_datum(raw, known)
    else:
        assert same(value, fastavro.schemaless_reader(io.BytesIO(raw), known, None))


@examples(150)
@given(
    schemas(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["f0", "f1", "f2"]), inner)
            | st.tuples(st.sampled_from(["R0", "R1", "string"]), inner)
        ),
    ),
)
def test_any_value_is_written_or_a_data_error(schema: Any, value: Any) -> None:
    """A written value can be read."""
    try:
        raw = written(schema, value)
    except DataError:
        return
    data(schema, raw)
