"""The type system: names, and the canonical texts of the seven types."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum, IntEnum, StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Event, InvalidEvent
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.types import (
    TYPES,
    AttributeType,
    canonical_text,
    is_name,
    is_string,
    parse,
    parse_binary,
    to_attribute,
)
from cloudevents_kafka.attributes.validation import find_problems
from tests.support.cases import each
from tests.support.strategies import GOOD


@each("name", ["a", "9x", "id", "x" * 64, "datacontenttype", "data1", "self"])
def test_names(name: str) -> None:
    """A name has lower-case ASCII letters and digits, in any number."""
    assert is_name(name)


@each("name", ["", "data", "MyExt", "my.ext", "under_scope", "a-b", "é", "abc\n", "a b", "ⅷ", "٣"])
def test_invalid_names(name: str) -> None:
    """Other texts, and data, are not names."""
    assert not is_name(name)
    problem = find_problems({**GOOD, name: "x"})
    assert [p.clause for p in problem] == [{"": "N-03", "data": "N-04"}.get(name, "N-01")]


@each("text", ["", "abc", "é€😀", "\u00a0", "\u200d", "\ufffd", "\U0010fffd", "\u2028", "\ue000", "\u0378"])
def test_strings(text: str) -> None:
    """A String may have spaces, joiners, private and unassigned characters."""
    assert is_string(text)


@each(
    "text",
    [
        "a\nb",
        "\t",
        "\x00",
        "\x1f",
        "\x7f",
        "\x80",
        "\x85",
        "\x9f",
        "\ufdd0",
        "\ufdef",
        "\ufffe",
        "\uffff",
        "\U0001fffe",
        "\U0010ffff",
        "\ud800",
        chr(0xDFFF),
        "\ud83d\ude00",
    ],
)
def test_invalid_strings(text: str) -> None:
    """A String has no control characters, noncharacters of any plane, or surrogates."""
    assert not is_string(text)
    assert not is_string(f"abc {text} é")
    assert [p.clause for p in find_problems({**GOOD, "x": text})] == ["T-06"]
    assert not accept({**GOOD, "x": text})


@given(st.text(max_size=10))
def test_strings_by_each_character(text: str) -> None:
    """A String is valid if each of its characters is."""
    bad = any(
        ord(c) <= 0x1F
        or 0x7F <= ord(c) <= 0x9F
        or 0xD800 <= ord(c) <= 0xDFFF
        or 0xFDD0 <= ord(c) <= 0xFDEF
        or ord(c) & 0xFFFE == 0xFFFE
        for c in text
    )
    assert is_string(text) is not bad


@each(
    ("text", "number"),
    [("0", 0), ("-0", 0), ("-1", -1), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))],
)
def test_integers(text: str, number: int) -> None:
    """An Integer has decimal digits, an optional minus, and 32 bits."""
    assert parse(AttributeType.INTEGER, text) == number


@each(
    "text",
    [
        "+10",
        "007",
        " 10",
        "10 ",
        "1,000",
        "1_000",
        "1.5",
        "1e2",
        "",
        "-",
        "٣",
        "1\n",
        "2147483648",
        "-2147483649",
        "9" * 5000,
    ],
)
def test_invalid_integers(text: str) -> None:
    """Other texts that int() accepts are refused."""
    with pytest.raises(ValueError, match="32-bit"):
        parse(AttributeType.INTEGER, text)


@each("text", ["TRUE", "True", "1", "", "yes", "true "])
def test_invalid_booleans(text: str) -> None:
    """The text of a Boolean is exactly true or false."""
    with pytest.raises(ValueError, match="true or false"):
        parse(AttributeType.BOOLEAN, text)
    assert parse(AttributeType.BOOLEAN, "true") is True
    assert parse(AttributeType.BOOLEAN, "false") is False


@each(
    ("text", "raw"),
    [("", b""), ("TWFu", b"Man"), ("TWE=", b"Ma"), ("TQ==", b"M"), ("4P8ARKo=", b"\xe0\xff\x00D\xaa")],
)
def test_binaries(text: str, raw: bytes) -> None:
    """A Binary is base64 of the standard alphabet with padding."""
    assert parse_binary(text) == raw
    assert canonical_text(raw) == text


@each("text", ["x", "TWFU=", "TWF=", "==TQ", "TW-_", "TWE", "TW E=", "TQ==TQ==", "é", "TWE=\n", "\ud800"])
def test_invalid_binaries(text: str) -> None:
    """Other texts that base64 decoders accept are refused."""
    with pytest.raises(ValueError, match="RFC 4648"):
        parse_binary(text)


class Color(str, Enum):  # noqa: UP042 - the older way, whose text is another
    RED = "red"


class Size(StrEnum):
    BIG = "big"


class Level(IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "another"


class Number(int):
    def __repr__(self) -> str:
        return "many"


@each(
    ("value", "kept"),
    [
        ("x", "x"),
        (True, True),
        (0, 0),
        (b"x", b"x"),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        (datetime(2018, 4, 5, 12, tzinfo=UTC), "2018-04-05T12:00:00Z"),
        (Color.RED, "red"),
        (Size.BIG, "big"),
        (Level.HIGH, 3),
        (Text("own"), "own"),
        (Number(5), 5),
    ],
)
def test_subclasses_become_base_classes(value: object, kept: object) -> None:
    """A member of an enum becomes an equal value of the base class."""
    assert to_attribute(value) == kept
    assert type(to_attribute(value)) is type(kept)
    event = Event(id="1", source="/", type="t", x=value)  # type: ignore[arg-type]  # that is the test
    assert event["x"] == kept
    assert type(event["x"]) is type(kept)


@each("value", [1.5, float("nan"), {}, [], (), object(), 1j, {"a"}, datetime(2018, 4, 5)])  # noqa: DTZ001
def test_values_of_other_types_are_refused(value: object) -> None:
    """Values of other types are not converted."""
    with pytest.raises(ValueError, match=r"must be str|must have an offset"):
        to_attribute(value)
    with pytest.raises(InvalidEvent) as caught:
        Event(id="1", source="/", type="t", x=value)  # type: ignore[arg-type]  # that is the test
    assert [(p.attribute, p.clause) for p in caught.value.problems] == [("x", "T-01")]


def test_one_table_of_types() -> None:
    """Each of the seven types has a row, and what a row writes it parses."""
    assert list(TYPES) == list(AttributeType)
    values = (True, -5, "a", b"b", "urn:x", "/s", "2026-01-01T00:00:00Z")
    for row, value in zip(TYPES.values(), values, strict=True):
        text = row.write(value)
        assert type(value) is row.python
        assert (row.parse or str)(text) == value
        assert row.accepts is None or row.accepts(text)
