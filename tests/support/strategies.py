"""Hypothesis strategies: valid events, and untrusted input."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, date, timedelta, timezone
from typing import Any, Final, TypeVar

from hypothesis import reject, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from cloudevents_kafka import EncodeError, Event, Record
from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.formats.registry import Format
from cloudevents_kafka.record import Headers

_F = TypeVar("_F", bound=Callable[..., Any])
# `make check` sets 0.2; a long run sets 100.
EXAMPLES: Final = float(os.environ.get("EXAMPLES", "1"))


def scaled(count: int) -> int:
    """Return a number of examples, multiplied by the variable EXAMPLES."""
    return max(1, round(count * EXAMPLES))


def examples(count: int) -> Callable[[_F], _F]:
    """Return a decorator that runs a property with this number of examples, scaled."""
    return settings(max_examples=scaled(count))


# --- what may be in an event ------------------------------------------------------

_NONCHARACTERS: Final = "".join(
    [*map(chr, range(0xFDD0, 0xFDF0)), *(chr(p << 16 | last) for p in range(17) for last in (0xFFFE, 0xFFFF))]
)
characters: Final = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=_NONCHARACTERS)
bad_characters: Final = st.sampled_from(
    "\x00\t\n\x1f\x7f\x80\x85\x9f\ud800\udfff\ufdd0\ufdef\ufffe\U0001ffff\U0010fffe"
)

texts: Final = st.one_of(
    st.text(st.sampled_from("abzAZ019._-:/"), min_size=1, max_size=12),
    st.text(characters, min_size=1, max_size=12),
    st.sampled_from(
        ['"', "\\", '","data":1', '{"data":2}', "null", "true", "0", " ", "€😀", "a%20b", "ﬀ\u200d", "=", "'"]
    ),
)
bad_texts: Final = st.builds(
    lambda a, bad, b: a + bad + b, st.text(max_size=3), bad_characters, st.text(max_size=3)
)
any_texts: Final = st.one_of(texts, bad_texts, st.text(max_size=6), st.just(""))

_TAKEN: Final = {*CORE, "data"}
names: Final = st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True).filter(lambda name: name not in _TAKEN)
any_names: Final = st.one_of(
    names,
    st.sampled_from(
        [
            *CORE,
            "data",
            "data_base64",
            "",
            "Type",
            "my_ext",
            "é",
            "a\n",
            "a,b",
            "self",
            "partitionkey",
            "sampledrate",
        ]
    ),
    st.text(max_size=4),
)
sources: Final = st.one_of(
    st.sampled_from(
        ["/", "#fragment", "//authority/path", "1-555-123-4567", "https://é.example/ü?q=%20#f", "urn:a:b"]
    ),
    st.sampled_from(["//u:p@h:80/p", "http://[::1]:80/", "x:", "?q", "a/b:c"]),
    st.from_regex(
        r"(?:/[a-z0-9._~:@!$&'()*+,;=-]{1,6}){0,3}/?(?:\?[a-z0-9/?=]{1,6})?(?:#[a-z0-9/?]{1,6})?",
        fullmatch=True,
    ).filter(bool),
)
schemas: Final = st.sampled_from(["https://a.example/s#", "urn:x", "mailto:a@b", "a+b:c?d"])

offsets: Final = st.one_of(
    st.sampled_from(["Z", "z", "+00:00", "-00:00"]),
    st.builds("{}{:02}:{:02}".format, st.sampled_from("+-"), st.integers(0, 23), st.integers(0, 59)),
)
fractions: Final = st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,12}", fullmatch=True))


@st.composite
def timestamps(draw: DrawFn) -> str:
    """Return RFC 3339 texts in all forms, of years that no offset overflows."""
    day = draw(st.dates(min_value=date(2, 1, 1), max_value=date(9998, 12, 31)))
    clock = draw(st.times())
    tee = draw(st.sampled_from("Tt"))
    return f"{day.isoformat()}{tee}{clock:%H:%M:%S}{draw(fractions)}{draw(offsets)}"


@st.composite
def almost_timestamps(draw: DrawFn) -> str:
    """Return timestamps with a character added, removed or changed."""
    text = draw(
        st.one_of(timestamps(), st.sampled_from(["2016-12-31T23:59:60Z", "2018-04-05T17:31:00.123456Z"]))
    )
    at = draw(st.integers(0, len(text)))
    length = draw(st.integers(0, 3))
    put = draw(st.text(st.sampled_from("0129TtZz:.,+-xW ٣²\x00\ud800"), max_size=3))
    return text[:at] + put + text[at + length :]


zones: Final = st.one_of(
    st.just(UTC),
    st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
json_types: Final = st.sampled_from(
    [
        "application/json",
        "Application/JSON; charset=UTF-8",
        "text/json",
        "application/vnd.a_b+json",
        'a/b+json;charset="utf-8"',
    ]
)
text_types: Final = st.sampled_from(
    ["text/plain", "text/xml; charset=utf-8", "application/xml", "TEXT/csv;header=present"]
)
other_charsets: Final = st.sampled_from(
    ["text/plain; charset=utf-16", "text/plain;charset=latin-1", "application/xml;charset=utf-32"]
)
bytes_types: Final = st.sampled_from(["application/octet-stream", "image/png", "application/avro"])
content_types: Final = st.one_of(json_types, text_types, bytes_types)

json_texts: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values: Final = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        json_texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(json_texts, inner, max_size=4)),
    max_leaves=8,
)
extension_values: Final = st.one_of(
    texts, st.booleans(), st.integers(-(2**31), 2**31 - 1), st.binary(max_size=6)
)
typed_extensions: Final = st.fixed_dictionaries(
    {},
    optional={
        "partitionkey": texts,
        "sampledrate": st.integers(1, 2**31 - 1),
        "opcuastatus": st.integers(-(2**31), 2**31 - 1),
        "deprecated": st.just(True),
        "bamptxcompleted": st.booleans(),
        "dssematerial": st.binary(max_size=6),
        "expirytime": timestamps(),
        "dataref": sources,
        "traceparent": texts,
        "tracestate": texts,
        "authid": texts,
        "severitytext": texts,
        "dataregulation": st.sampled_from(["GDPR", "GDPR, HIPAA", " ISO-27001 ,x"]),
    },
)
_NEEDED: Final[dict[str, Any]] = {  # attributes that some of these need
    "traceparent": "p",
    "deprecated": True,
    "authtype": "user",
    "severitynumber": 9,
    "dataclassification": "public",
    "bamtxid": "1",
    "bampid": "2",
    "bamptxid": "3",
    "bamptxsid": "4",
}


def _completed(given: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with those that their extensions need."""
    needed = {other for name in given for other in DOCUMENTED[name].needs} - given.keys()
    return {**given, **{name: _NEEDED[name] for name in sorted(needed)}}


def attributes(extensions: SearchStrategy[Any] = extension_values) -> SearchStrategy[dict[str, Any]]:
    """Return valid attributes of all types, as keyword arguments of `Event`."""
    core = st.fixed_dictionaries(
        {"id": texts, "source": sources, "type": texts},
        optional={"subject": texts, "time": timestamps(), "dataschema": schemas},
    )
    more = st.dictionaries(names.filter(lambda n: n not in _KNOWN), extensions, max_size=3)
    return st.builds(lambda a, b, c: {**a, **b, **c}, core, more, typed_extensions.map(_completed))


_KNOWN: Final = set(DOCUMENTED)


@st.composite
def events(draw: DrawFn) -> Event:
    """Return valid events with all kinds of data, also JSON without a content type."""
    given = draw(attributes())
    kind = draw(st.sampled_from(["none", "json", "bare json", "text", "bytes", "bare bytes", "json bytes"]))
    if kind == "none" and draw(st.booleans()):
        given["datacontenttype"] = draw(content_types)
    elif kind == "json":
        given |= {"datacontenttype": draw(json_types), "data": draw(json_values)}
    elif kind == "bare json":
        given["data"] = draw(json_values)
    elif kind == "text":
        given |= {"datacontenttype": draw(st.one_of(text_types, other_charsets)), "data": draw(_latin)}
    elif kind == "bytes":
        given |= {"datacontenttype": draw(content_types), "data": draw(st.binary(max_size=20)).strip()}
    elif kind == "bare bytes":
        given["data"] = draw(st.binary(max_size=20))
    elif kind == "json bytes":
        text = json.dumps(
            draw(json_values), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))
        )
        given |= {"datacontenttype": draw(json_types), "data": text.encode()}
    return Event(**given)


def written(form: Format, event: Event) -> bytes:
    """Return an event in a format; skip the example if the format cannot express it."""
    try:
        return form.encode(event)
    except EncodeError:
        reject()


_latin: Final = st.text(st.characters(max_codepoint=255), max_size=8)

# --- what may be in a record --------------------------------------------------------

header_bytes: Final = st.one_of(st.none(), st.binary(max_size=8), texts.map(str.encode))
other_names: Final = st.one_of(
    st.sampled_from(["traceparent", "foo", "", "ce_", "ce-id", "CE_ID", "Content-Type", "é", "x" * 300]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5).filter(
        lambda n: not n.startswith("ce_") and n != "content-type"
    ),
)
other_headers: Final = st.lists(st.tuples(other_names, header_bytes), max_size=4)
keys: Final = st.one_of(st.none(), st.just(b""), st.binary(max_size=6))
FORMATS: Final = (
    "application/cloudevents+json",
    "application/cloudevents+avro",
    "application/cloudevents+avro-compact",
    "application/cloudevents+protobuf",
)
GOOD: Final = {"specversion": "1.0", "id": "1", "source": "/", "type": "t"}


@st.composite
def mutated(draw: DrawFn, value: bytes) -> bytes:
    """Return bytes with parts removed, repeated or changed at random places."""
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(value)))
        length = draw(st.integers(0, 4))
        put = draw(
            st.one_of(
                st.binary(max_size=3),
                st.sampled_from(
                    [
                        b'"',
                        b",",
                        b"}",
                        b'"data":',
                        b"\\ud800",
                        b"\\u0000",
                        b"\x00",
                        b"\xff",
                        b" ",
                        b"1e9",
                        b"\x01",
                        b"\x7f",
                    ]
                ),
            )
        )
        value = value[:at] + put + value[at + length :]
    return value if draw(st.booleans()) else value[: draw(st.integers(0, len(value)))]


def deep(opening: bytes, depth: int, closing: bytes) -> bytes:
    """Return JSON of this depth."""
    return opening * depth + b"1" + closing * depth


raw_values: Final = st.one_of(
    json_values.map(lambda value: json.dumps(value).encode()),
    json_values.map(
        lambda value: json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    ),
    texts.map(lambda text: json.dumps(text, ensure_ascii=False).encode()),
    st.sampled_from(
        [
            b'"1.0"',
            b'"TWFu"',
            b'"TWF="',
            b'"eyAieHl6IjogMTIzIH0="',
            b"null",
            b"-0",
            b"1.0",
            b"1e2",
            b"1e999999",
            b"9" * 5000,
            b"2147483648",
            b'"\\ud83d\\ude00"',
            b'"\\ud800"',
            b'"\\udc00\\ud800"',
            b'"\\/\\b\\u0041"',
            b'"\\q"',
            b'"\x01"',
            b'"\x7f"',
            b'"\xc0\xa0"',
            b'"\xed\xa0\x80"',
            b"NaN",
            b"Infinity",
            b"01",
            b"1.",
            b"[1,]",
            b'{"data":1}',
            b'{"a":1,"data":{"id":"2"},"a":2}',
            b"[]",
            b"{}",
            b"",
            b'"application/json"',
            b'"application/json; charset=utf-16"',
            b'"text/plain"',
            b'"text/plain;charset=latin-1"',
            b'"xyz"',
        ]
    ),
)
_spaces: Final = st.sampled_from([b"", b"", b"", b" ", b"\n\t\r ", b"\x0c", b"\xef\xbb\xbf"])
_members: Final = st.one_of(
    st.sampled_from(
        [
            "data",
            "data",
            "data_base64",
            "datacontenttype",
            "time",
            "subject",
            "id",
            "specversion",
            "sampledrate",
        ]
    ),
    any_names,
)


@st.composite
def envelopes(draw: DrawFn) -> bytes:
    """Return JSON envelopes with white space, escapes, repeated members, and data in any place."""
    plain = draw(st.booleans())
    required = [(name, json.dumps(text).encode()) for name, text in GOOD.items()]
    more = [
        (name, draw(raw_values)) for name in draw(st.lists(_members, max_size=3, unique=draw(st.booleans())))
    ]
    members = draw(st.permutations(required + more)) if draw(st.booleans()) else required + more
    if draw(st.integers(0, 9)) == 0:
        members = members[1:]
    space = st.just(b"") if plain else _spaces
    written = [
        draw(space)
        + _written_name(name, escaped=not plain and draw(st.booleans()))
        + draw(space)
        + b":"
        + draw(space)
        + value
        + draw(space)
        for name, value in members
    ]
    value = draw(space) + b"{" + b",".join(written) + b"}" + draw(space)
    return value if draw(st.integers(0, 3)) else draw(mutated(value))


def _written_name(name: str, *, escaped: bool) -> bytes:
    text = json.dumps(name)
    if escaped and name.isascii() and name.isalnum():
        text = f'"\\u{ord(name[0]):04x}{name[1:]}"'
    return text.encode("utf-8", "surrogatepass")


_header_names: Final = st.one_of(
    st.sampled_from(
        [
            f"ce_{name}"
            for name in (*GOOD, "time", "subject", "dataschema", "datacontenttype", "data", "sampledrate")
        ]
    ),
    st.sampled_from(
        [
            "content-type",
            "Content-Type",
            "CE_ID",
            "ce-id",
            "ce_",
            "ce_my_ext",
            "ce_SUBJECT",
            "ce_é",
            "x" * 1000,
        ]
    ),
    st.text(max_size=5),
    any_names.map("ce_{}".format),
)
_content_types: Final = st.sampled_from(
    [
        b"application/cloudevents+json",
        b"application/cloudevents+json; charset=latin-1",
        b'Application/CloudEvents+JSON; charset="UTF-8"',
        b"application/cloudevents+avro",
        b"application/cloudevents",
        b"application/cloudevents-batch+json",
        b"application/cloudevents+xyz",
        b"application/cloudevents+json;\xff",
        b"application/json;charset=undefined",
        b"text/plain;charset=utf-7",
        b"text/plain;charset=unicode_escape",
        b"a/b+json;charset=utf-7",
        b"text/plain;charset=base64",
        b'text/plain;charset="\\\\"',
        b"text/plain;charset=idna",
        b"xyz",
        b"",
    ]
)
_header_values: Final = st.one_of(
    header_bytes, _content_types, st.sampled_from([b"1.0", b"\xff", b"true", b"5", b"2018-04-05 17:31:00Z"])
)
required_headers: Final[Headers] = [(f"ce_{name}", text.encode()) for name, text in GOOD.items()]


@st.composite
def hostile_records(draw: DrawFn, values: SearchStrategy[bytes] = st.binary(max_size=30)) -> Record:  # noqa: B008
    """Return records with any headers and bytes, similar enough to events to reach most code."""
    headers = draw(st.lists(st.tuples(_header_names, _header_values), max_size=4))
    if draw(st.booleans()):
        headers = [*required_headers, *headers]
    if draw(st.booleans()):
        headers.insert(draw(st.integers(0, len(headers))), ("content-type", draw(_content_types)))
    value = draw(st.one_of(st.none(), values, envelopes(), st.binary(max_size=30)))
    return Record(key=draw(keys), value=value, headers=headers)
