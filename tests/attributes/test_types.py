"""The type system: names, and the canonical texts of the seven types."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import Enum, IntEnum, StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import GOOD

from cloudevents_kafka import Event, InvalidEvent
from cloudevents_kafka.attributes._uri import is_uri, is_uri_reference
from cloudevents_kafka.attributes.fast_validation import is_valid_fast
from cloudevents_kafka.attributes.types import (
    canonical_text,
    is_name,
    is_string,
    parse_binary,
    parse_boolean,
    parse_integer,
    to_attribute,
)
from cloudevents_kafka.attributes.validation import find_problems


@pytest.mark.parametrize("name", ["a", "9x", "id", "x" * 64, "datacontenttype", "data1", "self"])
def test_names(name: str) -> None:
    """A name has lower-case ASCII letters and digits, in any number."""
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", "data", "MyExt", "my.ext", "under_scope", "a-b", "é", "abc\n", "a b", "ⅷ", "٣"]
)
def test_invalid_names(name: str) -> None:
    """Other texts, and data, are not names."""
    assert not is_name(name)
    problem = find_problems({**GOOD, name: "x"})
    assert [p.clause for p in problem] == [{"": "N-03", "data": "N-04"}.get(name, "N-01")]


@pytest.mark.parametrize(
    "text", ["", "abc", "é€😀", "\u00a0", "\u200d", "\ufffd", "\U0010fffd", "\u2028", "\ue000", "\u0378"]
)
def test_strings(text: str) -> None:
    """A String may have spaces, joiners, private and unassigned characters."""
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
def test_invalid_strings(text: str) -> None:
    """A String has no control characters, noncharacters of any plane, or surrogates."""
    assert not is_string(text)
    assert not is_string(f"abc {text} é")
    assert [p.clause for p in find_problems({**GOOD, "x": text})] == ["T-06"]
    assert not is_valid_fast({**GOOD, "x": text})


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
        ("1a:b", False, False),
        ("./1a:b", False, True),
        (":a", False, False),
        ("a:", True, True),
        ("a:b:c", True, True),
        ("a/b:c", False, True),
        ("?a:b", False, True),
        ("#a?b/c", False, True),
        ("a#b#c", False, False),
        ("x:#a#b", False, False),
        ("a?b?c", False, True),
        ("http://u:p@h:80/p", True, True),
        ("http://h:/p", True, True),
        ("http://h:port/", False, False),
        ("http://h:80:80/", False, False),
        ("http://a@b@c", False, False),
        ("//:80", False, True),
        ("////", False, True),
        ("http://[::1]:80/p", True, True),
        ("http://[2001:db8::192.0.2.1]", True, True),
        ("http://[v1.a:b]", True, True),
        ("http://[V1.fe]", True, True),
        ("http://[VaF.fe]:80/p", True, True),
        ("http://[V1]", False, False),
        ("//[::1]#f", False, True),
        ("http://[::1", False, False),
        ("http://::1]", False, False),
        ("http://[::g]/", False, False),
        ("http://[1:2]/", False, False),
        ("http://[::1]x/", False, False),
        ("http://a[::1]/", False, False),
        ("[", False, False),
        ("a:[", False, False),
        ("a:]", False, False),
        ("/p?[1]", False, False),
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
        ("é:b", False, False),
    ],
)
def test_uris(text: str, uri: bool, reference: bool) -> None:  # noqa: FBT001 - columns
    """A URI has a scheme; URIs and URI-references have no spaces, other delimiters or broken escapes."""
    assert (is_uri(text), is_uri_reference(text)) == (uri, reference)


def _uri_reference() -> re.Pattern[str]:
    """Return a pattern of RFC 3986, appendix A, rule by rule."""
    pct = "%[0-9A-Fa-f]{2}"
    unreserved, sub = "[A-Za-z0-9._~-]", "[!$&'()*+,;=]"
    pchar = f"(?:{unreserved}|{pct}|{sub}|[:@])"
    segment, segment_nz, segment_nz_nc = f"{pchar}*", f"{pchar}+", f"(?:{unreserved}|{pct}|{sub}|@)+"
    h16, octet = "[0-9A-Fa-f]{1,4}", "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])"
    ls32 = f"(?:{h16}:{h16}|{octet}(?:\\.{octet}){{3}})"
    ipv6 = "|".join(
        [
            f"(?:{h16}:){{6}}{ls32}",
            f"::(?:{h16}:){{5}}{ls32}",
            *(f"(?:(?:{h16}:){{0,{n}}}{h16})?::(?:{h16}:){{{4 - n}}}{ls32}" for n in range(5)),
            f"(?:(?:{h16}:){{0,5}}{h16})?::{h16}",
            f"(?:(?:{h16}:){{0,6}}{h16})?::",
        ]
    )
    future = f"v[0-9A-Fa-f]+\\.(?:{unreserved}|{sub}|:)+"
    host = f"(?:\\[(?:{ipv6}|{future})\\]|(?:{unreserved}|{pct}|{sub})*)"
    authority = f"(?:(?:{unreserved}|{pct}|{sub}|:)*@)?{host}(?::[0-9]*)?"
    abempty, absolute = f"(?:/{segment})*", f"/(?:{segment_nz}(?:/{segment})*)?"
    hier = f"(?://{authority}{abempty}|{absolute}|{segment_nz}(?:/{segment})*|)"
    relative = f"(?://{authority}{abempty}|{absolute}|{segment_nz_nc}(?:/{segment})*|)"
    tail = f"(?:\\?(?:{pchar}|[/?])*)?(?:#(?:{pchar}|[/?])*)?"
    return re.compile(f"(?:[A-Za-z][A-Za-z0-9+.-]*:{hier}{tail}|{relative}{tail})")


_RFC_3986 = _uri_reference()
_PIECES = st.sampled_from(
    [
        *"a1:/?#[]@%.-+é ",
        "//",
        "://",
        "::",
        "%41",
        "http",
        "[::1]",
        "[v1.a]",
        "1:",
        "fe80",
        "1.2.3.4",
        ":80",
        "256",
    ]
)


@settings(max_examples=2000)
@given(st.lists(_PIECES, max_size=12).map("".join))
def test_uri_references_by_the_grammar(text: str) -> None:
    """The URI-references are those of RFC 3986, appendix A, with non-ASCII letters as ASCII ones."""
    assert is_uri_reference(text) is (_RFC_3986.fullmatch(text.replace("é", "~")) is not None)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-0", 0), ("-1", -1), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))],
)
def test_integers(text: str, number: int) -> None:
    """An Integer has decimal digits, an optional minus, and 32 bits."""
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
def test_invalid_integers(text: str) -> None:
    """Other texts that int() accepts are refused."""
    with pytest.raises(ValueError, match="32-bit"):
        parse_integer(text)


@pytest.mark.parametrize("text", ["TRUE", "True", "1", "", "yes", "true "])
def test_invalid_booleans(text: str) -> None:
    """The text of a Boolean is exactly true or false."""
    with pytest.raises(ValueError, match="true or false"):
        parse_boolean(text)
    assert parse_boolean("true") is True
    assert parse_boolean("false") is False


@pytest.mark.parametrize(
    ("text", "raw"),
    [("", b""), ("TWFu", b"Man"), ("TWE=", b"Ma"), ("TQ==", b"M"), ("4P8ARKo=", b"\xe0\xff\x00D\xaa")],
)
def test_binaries(text: str, raw: bytes) -> None:
    """A Binary is base64 of the standard alphabet with padding."""
    assert parse_binary(text) == raw
    assert canonical_text(raw) == text


@pytest.mark.parametrize(
    "text", ["x", "TWFU=", "TWF=", "==TQ", "TW-_", "TWE", "TW E=", "TQ==TQ==", "é", "TWE=\n", "\ud800"]
)
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
def test_subclasses_become_base_classes(value: object, kept: object) -> None:
    """A member of an enum becomes an equal value of the base class."""
    assert to_attribute(value) == kept
    assert type(to_attribute(value)) is type(kept)
    event = Event(id="1", source="/", type="t", x=value)  # type: ignore[arg-type]  # that is the test
    assert event["x"] == kept
    assert type(event["x"]) is type(kept)


@pytest.mark.parametrize("value", [1.5, float("nan"), {}, [], (), object(), 1j, {"a"}, datetime(2018, 4, 5)])  # noqa: DTZ001
def test_values_of_other_types_are_refused(value: object) -> None:
    """Values of other types are not converted."""
    with pytest.raises(ValueError, match=r"must be str|must have an offset"):
        to_attribute(value)
    with pytest.raises(InvalidEvent) as caught:
        Event(id="1", source="/", type="t", x=value)  # type: ignore[arg-type]  # that is the test
    assert [(p.attribute, p.clause) for p in caught.value.problems] == [("x", "T-01")]
