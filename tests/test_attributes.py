"""The type system: names, canonical texts, known extensions, and every rule with its clause."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest
import strategies as make
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Event, InvalidEvent, Record, decode, extensions, from_record, glance, to_record
from cloudevents_kafka.attributes import (
    AttributeType,
    canonical_text,
    is_name,
    is_string,
    is_uri,
    is_uri_reference,
    parse_binary,
    parse_boolean,
    parse_integer,
    to_attribute,
)
from cloudevents_kafka.extensions import register_extension, type_of, typed, with_types
from cloudevents_kafka.glance import surely_good
from cloudevents_kafka.rules import find_problems

GOOD: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/", "type": "t"}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Known extensions as they were, when a test is over."""
    monkeypatch.setattr(extensions, "_extensions", {**extensions._extensions})
    monkeypatch.setattr(extensions, "_ruled", {*extensions._ruled})
    yield
    for forget in extensions._on_registration:
        forget()


@pytest.mark.parametrize("name", ["a", "9x", "id", "x" * 64, "datacontenttype", "data1", "self"])
def test_names(name: str) -> None:
    """Lower-case ASCII letters and digits, as many as one likes."""
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", "data", "MyExt", "my.ext", "under_scope", "a-b", "é", "abc\n", "a b", "ⅷ", "٣"]
)
def test_no_names(name: str) -> None:
    """Anything else names no attribute, and data is none."""
    assert not is_name(name)
    problem = find_problems({**GOOD, name: "x"})
    assert [p.clause for p in problem] == [{"": "N-03", "data": "N-04"}.get(name, "N-01")]


@pytest.mark.parametrize(
    "text", ["", "abc", "é€😀", "\u00a0", "\u200d", "\ufffd", "\U0010fffd", "\u2028", "\ue000", "\u0378"]
)
def test_strings(text: str) -> None:
    """Spaces, joiners, private and unassigned characters may stand in a String."""
    assert is_string(text)


@pytest.mark.parametrize(
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
def test_no_strings(text: str) -> None:
    """Control characters, noncharacters of all planes and surrogates may not."""
    assert not is_string(text)
    assert not is_string(f"abc {text} é")
    assert [p.clause for p in find_problems({**GOOD, "x": text})] == ["T-06"]
    assert not surely_good({**GOOD, "x": text})


@given(st.text(max_size=10))
def test_strings_by_the_letter(text: str) -> None:
    """A String is checked as if each character was looked up in the specification's list."""
    bad = any(
        ord(c) <= 0x1F
        or 0x7F <= ord(c) <= 0x9F
        or 0xD800 <= ord(c) <= 0xDFFF
        or 0xFDD0 <= ord(c) <= 0xFDEF
        or ord(c) & 0xFFFE == 0xFFFE
        for c in text
    )
    assert is_string(text) is not bad


@pytest.mark.parametrize(
    ("text", "uri", "reference"),
    [
        ("https://cloudevents.io", True, True),
        ("mailto:a@b", True, True),
        ("urn:uuid:1", True, True),
        ("https://a.example/x#y", True, True),
        ("https://é.example/ü", True, True),
        ("a+b.c-d:", True, True),
        ("#fragment", False, True),
        ("//authority/path", False, True),
        ("/p", False, True),
        ("1-555-123-4567", False, True),
        ("1a:b", False, True),
        ("", False, True),
        ("a%20b", False, True),
        ("a b", False, False),
        ("a\u00a0b", False, False),
        ("a%2", False, False),
        ("a%zz", False, False),
        ("<x>", False, False),
        ("a|b", False, False),
        ("a\\b", False, False),
        ("a\n", False, False),
        ("http://a\n", False, False),
        ("é:b", False, True),
    ],
)
def test_uris(text: str, uri: bool, reference: bool) -> None:  # noqa: FBT001 - columns
    """A URI has a scheme; both are free of spaces, delimiters and broken escapes."""
    assert (is_uri(text), is_uri_reference(text)) == (uri, reference)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-0", 0), ("-1", -1), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))],
)
def test_integers(text: str, number: int) -> None:
    """Plain digits with an optional minus, of 32 bits."""
    assert parse_integer(text) == number


@pytest.mark.parametrize(
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
def test_no_integers(text: str) -> None:
    """What Python's int() takes beside that is refused."""
    with pytest.raises(ValueError, match="32-bit"):
        parse_integer(text)


@pytest.mark.parametrize("text", ["TRUE", "True", "1", "", "yes", "true "])
def test_no_booleans(text: str) -> None:
    """A Boolean's text is true or false, to the letter."""
    with pytest.raises(ValueError, match="true or false"):
        parse_boolean(text)
    assert parse_boolean("true") is True
    assert parse_boolean("false") is False


@pytest.mark.parametrize(
    ("text", "raw"),
    [("", b""), ("TWFu", b"Man"), ("TWE=", b"Ma"), ("TQ==", b"M"), ("4P8ARKo=", b"\xe0\xff\x00D\xaa")],
)
def test_binaries(text: str, raw: bytes) -> None:
    """Base64 of the standard alphabet, with padding."""
    assert parse_binary(text) == raw
    assert canonical_text(raw) == text


@pytest.mark.parametrize(
    "text", ["x", "TWFU=", "TWF=", "==TQ", "TW-_", "TWE", "TW E=", "TQ==TQ==", "é", "TWE=\n", "\ud800"]
)
def test_no_binaries(text: str) -> None:
    """What base64 decoders let pass beside that is refused."""
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


@pytest.mark.parametrize(
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
def test_python_values_become_plain_ones(value: object, kept: object) -> None:
    """Enums and other subclasses are kept as what they are equal to, of the plain type."""
    assert to_attribute(value) == kept
    assert type(to_attribute(value)) is type(kept)
    event = Event(id="1", source="/", type="t", x=value)  # type: ignore[arg-type]  # that is the test
    assert event["x"] == kept
    assert type(event["x"]) is type(kept)


@pytest.mark.parametrize("value", [1.5, float("nan"), {}, [], (), object(), 1j, {"a"}, datetime(2018, 4, 5)])  # noqa: DTZ001
def test_other_values_are_refused(value: object) -> None:
    """There are seven types and no others, and no guess is made."""
    with pytest.raises(ValueError, match=r"must be text|needs an offset"):
        to_attribute(value)
    with pytest.raises(InvalidEvent) as caught:
        Event(id="1", source="/", type="t", x=value)  # type: ignore[arg-type]  # that is the test
    assert [(p.attribute, p.clause) for p in caught.value.problems] == [("x", "T-01")]


@pytest.mark.parametrize(
    ("changed", "clause"),
    [
        *[({name: None}, "R-01") for name in GOOD],
        ({"id": ""}, "R-02"),
        ({"id": 25}, "R-02"),
        ({"source": ""}, "R-04"),
        ({"source": "a b"}, "T-11"),
        ({"specversion": ""}, "R-05"),
        ({"specversion": "0.9"}, "R-05"),
        ({"specversion": "1.0.2"}, "R-05"),
        ({"type": ""}, "R-06"),
        ({"datacontenttype": ""}, "R-07"),
        ({"datacontenttype": "xyz"}, "R-07"),
        ({"datacontenttype": "a/b\x00"}, "T-06"),
        ({"dataschema": ""}, "R-11"),
        ({"dataschema": "rel/path"}, "T-10"),
        ({"dataschema": "//h/p"}, "T-10"),
        ({"subject": ""}, "R-12"),
        ({"subject": True}, "R-12"),
        ({"time": ""}, "R-13"),
        ({"time": "lunchtime"}, "T-12"),
        ({"x": 2**31}, "T-04"),
        ({"x": -(2**31) - 1}, "T-04"),
        ({"x": 10**5000}, "T-04"),
        ({"partitionkey": ""}, "E-01"),
        ({"partitionkey": 5}, "T-06"),
        ({"sampledrate": 0}, "E-01"),
        ({"sampledrate": "1.5"}, "T-05"),
        ({"sampledrate": True}, "T-05"),
        ({"severitynumber": -1}, "E-01"),
        ({"deprecated": False}, "E-01"),
        ({"deprecated": "yes"}, "T-03"),
        ({"expirytime": "soon"}, "T-12"),
        ({"deprecationmigration": "/p"}, "T-10"),
        ({"dataref": ""}, "E-01"),
        ({"dataref": "a b"}, "T-11"),
        ({"dssematerial": "TWFU="}, "T-09"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_each_rule_has_its_clause(changed: dict[str, Any], clause: str) -> None:
    """A broken rule is one problem, with the attribute's name and the rule's clause."""
    given = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    problems = find_problems(with_types(given))
    assert [(p.attribute, p.clause) for p in problems] == [(next(iter(changed)), clause)]
    assert not surely_good(given)


def test_all_problems_are_told_together() -> None:
    """Whoever mends an event sees everything at once, data included, each with its clause."""
    bad: dict[str, Any] = {"x": 1.5, "My_Ext": "v", "y": 2**40, "data": {1, object()}}
    with pytest.raises(InvalidEvent) as caught:
        Event(source="", type="t\n", time=datetime(2018, 4, 5), **bad)  # noqa: DTZ001 - that is one
    assert {(p.attribute, p.clause) for p in caught.value.problems} == {
        ("id", "R-01"),
        ("source", "R-04"),
        ("type", "T-06"),
        ("time", "T-01"),
        ("data", "J-10"),
        ("x", "T-01"),
        ("My_Ext", "N-01"),
        ("y", "T-04"),
    }
    for problem in caught.value.problems:
        assert str(problem) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sampledrate", "5", 5),
        ("deprecated", "true", True),
        ("dssematerial", "TWE=", b"Ma"),
        ("bamptxcompleted", "false", False),
        ("partitionkey", "5", "5"),
        ("unheardof", "5", "5"),
        ("unheardof", "true", "true"),
        ("sampledrate", "five", "five"),
    ],
)
def test_known_types_are_read_from_text(name: str, text: str, value: object) -> None:
    """A header's text becomes the type that its extension has, and nothing is guessed."""
    assert typed(name, text) == value
    assert type(typed(name, text)) is type(value)


@pytest.mark.usefixtures("registry")
def test_a_registered_type_counts_everywhere() -> None:
    """Once registered, an extension is typed from headers and from JSON, and checked in all events."""
    headers = [*make.required_headers, ("ce_mycount", b"5")]
    assert from_record(Record(headers=headers))["mycount"] == "5"
    register_extension(
        "mycount", AttributeType.INTEGER, rule="must be odd", accepts=lambda v: bool(int(v) % 2)
    )
    assert type_of("mycount") is AttributeType.INTEGER
    event = from_record(Record(headers=headers))
    assert event["mycount"] == 5
    assert event.text("mycount") == "5"
    assert Event(id="1", source="/", type="t", mycount="5") == event
    assert from_record(to_record(event, mode="structured")) == event
    assert b'"mycount":5' in (to_record(event, mode="structured").value or b"")
    for bad in (b"4", b"five"):
        assert "mycount" in str(
            getattr(decode(Record(headers=[*make.required_headers, ("ce_mycount", bad)])), "error", "")
        )
    with pytest.raises(InvalidEvent, match="must be odd"):
        Event(id="1", source="/", type="t", mycount=4)


@pytest.mark.usefixtures("registry")
def test_registering_a_text_again_brings_its_rule_into_force() -> None:
    """Nothing that proved good before is remembered against a new rule."""
    given = {**GOOD, "mytext": "loud"}
    assert surely_good(given)
    register_extension("mytext", AttributeType.STRING, rule="must be quiet", accepts=lambda v: v != "loud")
    assert not surely_good(given)
    assert [p.rule for p in find_problems(given)] == ["must be quiet"]
    register_extension("mytext", AttributeType.STRING)
    assert find_problems(given) == []


@pytest.mark.parametrize("name", ["", "data", "My", "my_ext", "id", "time", "a\n"])
def test_what_is_no_extension_cannot_be_registered(name: str) -> None:
    """A core attribute's type stands in the specification."""
    with pytest.raises(ValueError, match="cannot name an extension"):
        register_extension(name, AttributeType.STRING)


def test_what_is_remembered_is_bounded() -> None:
    """A flood of sources, schemas and names does not stay in memory."""
    for number in range(5000):
        assert surely_good({**GOOD, "source": f"/{number}", "dataschema": f"a:{number}", f"x{number}": "v"})
    assert surely_good({**GOOD, "source": "/" * 10**5, "x" * 10**5: "v"})
    for memory in (glance._sources, glance._schemas, glance._plain_names):
        assert len(memory) <= 4096
    assert max(map(len, glance._sources)) <= 256
