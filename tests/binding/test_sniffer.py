"""The sniffer: the mode of a record by its headers, with the reason, for any headers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    DecodeError,
    NotAnEvent,
    Record,
    Undecodable,
    UnsupportedBatch,
    UnsupportedFormat,
    decode,
    sniff,
)
from cloudevents_kafka.binding._sniffer import framed_hint
from cloudevents_kafka.message_headers import UnreadHeaders
from tests.support import strategies as make
from tests.support.cases import each

CE = make.required_headers
WITHOUT_VERSION = [(name, value) for name, value in CE if name != "ce_specversion"]
JSON = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}'
STRUCTURED = ("content-type", b"application/cloudevents+json")


@each(
    ("headers", "mode", "format_name"),
    [
        ([], "not-an-event", None),
        (CE, "binary", None),
        (CE[:3], "not-an-event", None),
        ([*CE[:3], ("ce_type", None)], "not-an-event", None),
        ([*CE[:3], ("ce_type", b"")], "binary", None),
        ([*CE, ("content-type", b"application/json")], "binary", None),
        ([*CE, ("content-type", b"application/cloudevents+json")], "structured", "json"),
        ([("content-type", b"Application/CloudEvents+AVRO; charset=UTF-8")], "structured", "avro"),
        ([*CE, ("content-type", b"application/cloudevents+xyz")], "unsupported-format", None),
        ([("content-type", b"application/cloudevents")], "unsupported-format", None),
        ([*CE, ("content-type", b"application/cloudevents-batch+json")], "batch", None),
        ([("content-type", None), *CE], "binary", None),
        ([("Content-Type", b"application/cloudevents+json")], "not-an-event", None),
        ([("content-type", b"\xff\xfe")], "not-an-event", None),
    ],
)
def test_verdicts(headers: Any, mode: str, format_name: str | None) -> None:
    """The content-type header decides, then the four required ce_ headers."""
    verdict = sniff(headers)
    assert (verdict.mode, verdict.format) == (mode, format_name)


@each(
    ("headers", "expected"),
    [
        ([], "all required ce_ headers are missing"),
        (CE[:3], "ce_type is missing"),
        (CE[:2], "ce_source, ce_type are missing"),
        ([("ce-id", b"1")], "found 'ce-id': Kafka headers start with ce_"),
        ([("cloudEvents:id", b"1")], "found 'cloudEvents:id': Kafka headers start with ce_"),
        ([("CE_ID", b"1")], "found 'CE_ID': Kafka header names are exact"),
        ([("Content-Type", b"x")], "found 'Content-Type'"),
        ([("content-type", b"text/plain")], "the content-type is 'text/plain'"),
        ([("content-type", b"application/cloudevents+xyz")], "application/cloudevents+json"),
    ],
)
def test_reasons_name_the_wrong_header(headers: Any, expected: str) -> None:
    """A reason names the header that has to be corrected."""
    assert expected in sniff(headers).reason


@given(st.lists(st.tuples(st.text(), st.one_of(st.none(), st.binary()))), st.binary())
def test_sniffing_is_total(headers: Any, content_type: bytes) -> None:
    """Any names and bytes have a verdict."""
    for some in (headers, [*headers, ("content-type", content_type)]):
        verdict = sniff(some)
        assert verdict.reason
        assert (verdict.format is not None) is (verdict.mode == "structured")


@each("name", [b"ce_id", 5, None, (), "\ud800"])
def test_odd_header_names_are_ignored(name: Any) -> None:
    """A header whose name is not a str or not UTF-8 is ignored."""
    assert sniff([(name, b"x")]).mode == "not-an-event"
    assert sniff([*CE, (name, b"x")]).mode == "binary"


@each("content_type", [b"application/cloudevents+json", bytearray(b"a/b"), memoryview(b"a/b")])
def test_any_bytes_may_be_a_content_type(content_type: Any) -> None:
    """It is the text in UTF-8 of what a client returns."""
    mode = "structured" if type(content_type) is bytes else "binary"
    verdict = sniff([*CE, ("content-type", content_type)])
    assert (verdict.mode, verdict.media_type) == (mode, bytes(content_type).decode())


@each(
    ("types", "named"),
    [
        ([b"a/b", b"a/c"], "a/c"),
        ([b"a/b", STRUCTURED[1]], STRUCTURED[1].decode()),
        ([STRUCTURED[1], b"a/b"], STRUCTURED[1].decode()),
        ([STRUCTURED[1], b"a/b", b"application/cloudevents+avro"], STRUCTURED[1].decode()),
        ([b"application/cloudevents+xyz", STRUCTURED[1]], STRUCTURED[1].decode()),
        ([STRUCTURED[1], b"application/cloudevents-batch+json"], STRUCTURED[1].decode()),
    ],
)
def test_the_order_of_content_types_does_not_matter(types: list[bytes], named: str) -> None:
    """The one that names an event format decides."""
    for order in (types, types[::-1]):
        verdict = sniff([("content-type", value) for value in order])
        assert verdict.media_type == named
        assert (verdict.mode == "structured") is ("cloudevents" in named)


def test_a_batch_decides_before_an_unknown_format() -> None:
    """In any order, too."""
    for unknown in ("application/cloudevents+xyz", "application/cloudeventsfoo"):
        types = ["application/cloudevents-batch+json", unknown, "a/b"]
        for order in (types, types[::-1]):
            assert sniff([("content-type", value.encode()) for value in order]).mode == "batch"
        assert sniff([("content-type", value.encode()) for value in types[1:]]).mode == "unsupported-format"


class Message:
    """A message of a client, with its headers as an attribute."""

    value, headers = None, CE


@each(
    "source",
    [
        CE,
        tuple(CE),
        iter(CE),
        dict(CE),
        Message(),
        Record(headers=CE),
        {"value": None, "headers": CE},
        {"value": None, "headers": CE, "key": None},
    ],
    ids=lambda source: type(source).__name__,
)
def test_headers_come_in_many_forms(source: Any) -> None:
    """They are pairs, a mapping, a record or what is read as one."""
    assert sniff(source).mode == "binary"


@each("wrong", [None, "ce_id", b"ce_id"])
def test_a_text_is_not_headers(wrong: Any) -> None:
    """What `Record.of` refuses is refused."""
    with pytest.raises(TypeError, match="record"):
        sniff(wrong)


def test_headers_that_a_client_cannot_return() -> None:
    """The reason is the client's."""
    verdict = sniff(UnreadHeaders())
    assert (verdict.mode, verdict.media_type, verdict.reason) == ("not-an-event", None, UnreadHeaders.rule)
    with pytest.raises(AttributeError, match="immutable"):
        verdict.mode = "binary"  # type: ignore[misc]


NOTHING = "the content-type header is missing, and all required ce_ headers are missing"


@each(
    ("headers", "reason"),
    [
        ([], NOTHING),
        ([("ce_x", b""), ("Foo", b""), ("x", b"")], NOTHING),
        (
            [("CE_ID", b""), ("ce-id", b"")],
            f"{NOTHING} (found 'CE_ID': Kafka header names are exact, in lower case)",
        ),
        ([("ce-id", b"")], f"{NOTHING} (found 'ce-id': Kafka headers start with ce_, not ce-)"),
        ([("CE-id", b"")], f"{NOTHING} (found 'CE-id': Kafka headers start with ce_, not CE-)"),
        (WITHOUT_VERSION, "the content-type header is missing, and ce_specversion is missing"),
        (
            [("content-type", b"x" * 70)],
            f"the content-type is '{'x' * 60}', and all required ce_ headers are missing",
        ),
        (
            [("content-type", b"a/c"), ("content-type", b"a/b"), ("content-type", b"a/c")],
            "the content-type is 'a/b' and 'a/c', and all required ce_ headers are missing",
        ),
        (
            [("content-type", b"x" * 70), ("content-type", b"y" * 70)],
            f"the content-type is '{'x' * 60}' and '{'y' * 60}', and all required ce_ headers are missing",
        ),
        (
            [("content-type", b"a/c"), ("content-type", b"a/b")],
            "the content-type is 'a/b' and 'a/c', and all required ce_ headers are missing",
        ),
        (
            [("content-type", b"a/%d" % number) for number in range(2000, 0, -1)],
            "the content-type is 'a/1' and 'a/10' and 'a/100', and all required ce_ headers are missing",
        ),
    ],
)
def test_reasons_word_for_word(headers: Any, reason: str) -> None:
    """A reason names what is missing, or the first header that nearly has a name of the binding."""
    assert sniff(headers).reason == reason


def error_of(record: Record, *, lenient: bool = False) -> DecodeError:
    found = decode(record, lenient=lenient)
    assert isinstance(found, Undecodable)
    return found.error


BATCH = ("content-type", b"application/cloudevents-batch+json")
UNKNOWN = ("content-type", b"application/cloudevents+xyz")
OUTBOX = 'headers=[*record.headers, ("ce_specversion", b"1.0")]))'


@each("lenient", [False, True])
@each(
    ("headers", "kind", "hint"),
    [
        ([], NotAnEvent, ""),
        (WITHOUT_VERSION, NotAnEvent, OUTBOX),
        ([*WITHOUT_VERSION, ("ce_specversion", None)], NotAnEvent, OUTBOX),
        (WITHOUT_VERSION[1:], NotAnEvent, ""),
        ([BATCH], UnsupportedBatch, "split the batch before it is produced"),
        ([UNKNOWN], UnsupportedFormat, "forward the record unchanged, or register the format"),
    ],
)
def test_an_error_says_what_to_do(headers: Any, kind: type[DecodeError], hint: str, *, lenient: bool) -> None:
    """It names the header that an outbox does not write, and what else makes the record one to forward."""
    error = error_of(Record(headers=headers), lenient=lenient)
    assert type(error) is kind
    assert error.reason.startswith("not a CloudEvent: ") is (kind is NotAnEvent)
    assert hint in (error.hint or "")
    assert bool(hint) is (error.hint is not None)


@each(
    ("value", "advice"),
    [
        (JSON, "; the value may be an event in JSON: lenient=True reads it"),
        (b"\xef\xbb\xbf \t\r\n" + JSON, "; the value may be an event in JSON: lenient=True reads it"),
        (b"[%b]" % JSON, ""),
        (b'{"id":"1"}', ""),
        (None, ""),
    ],
)
def test_unmarked_json(value: bytes | None, advice: str) -> None:
    """Of a value that may be an event in JSON strict reading says so."""
    assert (
        error_of(Record(value=value)).reason == f"not a CloudEvent: {NOTHING} (K-11, Kafka binding 3){advice}"
    )


def test_the_problems_of_unmarked_json_are_bounded() -> None:
    """The reason has the first five, and the error all of them."""
    members = b'"id":"","source":5,"type":{},"id":"","source":5,"type":{}'
    error = error_of(Record(value=b'{"specversion":"0.1",%b}' % members), lenient=True)
    assert len(error.problems) > 5
    shown = "; ".join(map(str, error.problems[:5]))
    assert error.reason.endswith(f"; its value is not an event in JSON either: {shown}")


@each(
    ("value", "begin"),
    [
        (None, None),
        (b"", None),
        (bytes(5), None),
        (bytes(6), 5),
        (b"\x00\x00\x00\x00\x07" + JSON, 5),
        (b"\x01" + bytes(16) + JSON, 17),
        (b"\x01" + bytes(16) + b"\x02", 17),
        (b"\x01" + bytes(16), None),
        (b"\x02" + bytes(16) + JSON, None),
        (b"\xff" + bytes(16) + JSON, None),
        (JSON, None),
    ],
)
def test_framed_values(value: bytes | None, begin: int | None) -> None:
    """A frame is five bytes that begin with 0, or seventeen that begin with 1."""
    hint = framed_hint(value)
    assert (hint is not None) is (begin is not None)
    assert hint is None or f" read value[{begin}:] (" in hint
    if b"specversion" in (value or b""):
        assert (hint or "lenient=True") in error_of(Record(value=value)).reason or begin is None
