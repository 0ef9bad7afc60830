"""Misspelled headers: the attribute that they carry, their precedence, and ambiguous ones."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from cloudevents_kafka import BrokenEvent, Decoded, Record, decode, from_record, sniff, to_record
from cloudevents_kafka.binding.lenient._headers import normalize_headers
from cloudevents_kafka.binding.lenient.rules import text_or_bytes
from cloudevents_kafka.errors import LeftOut
from tests.support import strategies as make
from tests.support.cases import each

CE = make.required_headers
EVENTS = b"application/cloudevents+json"
HEAD = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'


@each(
    ("headers", "values", "tolerated", "ambiguous"),
    [
        ([], {}, [], []),
        ([("foo", b"1"), ("ce_", b"2"), ("ce_x", None), ("CE_X", None), (5, b"")], {}, [], []),
        ([("ce_x", b"1"), ("ce_x", b"2")], {"ce_x": b"2"}, ["x"], []),
        ([("ce-x", b"1")], {"ce_x": b"1"}, ["ce-x"], []),
        ([("cloudEvents:X", b"1"), ("ce_x", None)], {"ce_x": b"1"}, ["cloudEvents:X"], []),
        ([("CE_X", b"1"), ("ce_x", b"2")], {"ce_x": b"2"}, ["CE_X"], []),
        ([("CE_X", b"1"), ("ce-x", b"1")], {"ce_x": b"1"}, ["CE_X", "ce-x"], []),
        ([("CE_X", b"1"), ("ce-x", b"2")], {}, ["CE_X", "ce-x"], []),
        ([("ce_a_x", b"1"), ("ce_a.x", b"2")], {}, ["a_x", "a.x"], []),
        ([("ce_a_x", b"1"), ("ce_a_x", b"2")], {"ce_ax": b"2"}, ["a_x", "a_x"], []),
        ([("ce_a_x", b"1"), ("ce_ax", b"2")], {"ce_ax": b"2"}, ["a_x"], []),
        ([("ce_data_schema", b"1"), ("ce_-", b"2"), ("ce_é", b"3")], {}, ["data_schema", "-", "é"], []),
        ([("CE_ID", b"1"), ("ce-id", b"2")], {"ce_id": b"2"}, [], ["CE_ID", "ce-id"]),
        (
            [("ce_specversion", b'"1.0"'), ("ce_id", b'"1"')],
            {"ce_specversion": b"1.0", "ce_id": b"1"},
            ["specversion", "id"],
            [],
        ),
        (
            [("ce_specversion", b"1.0"), ("ce_id", b'"1"')],
            {"ce_specversion": b"1.0", "ce_id": b'"1"'},
            [],
            [],
        ),
        ([("content-type", b'"a/b"')], {"content-type": b"a/b"}, ["datacontenttype"], []),
        ([("content-type", b" a/b")], {"content-type": b"a/b"}, ["datacontenttype"], []),
        ([("CE_X", b"1"), ("CE_X", b"2"), ("ce_x", b"3")], {"ce_x": b"3"}, ["CE_X", "CE_X"], []),
        ([("Content-Type", EVENTS)], {"content-type": EVENTS}, ["Content-Type"], []),
        ([("ce_datacontenttype", EVENTS)], {"content-type": EVENTS}, ["datacontenttype"], []),
        ([*CE, ("Content-Type", EVENTS)], dict(CE), ["Content-Type"], []),
        ([*CE, ("ce_datacontenttype", EVENTS)], dict(CE), ["datacontenttype"], []),
        (
            [*CE, ("ce_datacontenttype", b"\xff")],
            {**dict(CE), "content-type": b"\xff"},
            ["datacontenttype"],
            [],
        ),
    ],
    ids=lambda value: repr(value)[-50:],
)
def test_headers_get_their_exact_names(
    headers: Any, values: Any, tolerated: list[str], ambiguous: list[str]
) -> None:
    """The exact name takes precedence, variants that agree are read, and those that differ are ambiguous."""
    normalized, report = normalize_headers(headers)
    assert normalized == values
    assert [problem.attribute for problem in report.tolerated] == tolerated
    assert [problem.attribute for problem in report.refused] == ambiguous


@each(
    "types",
    [
        (EVENTS, b"application/json"),
        (EVENTS, b"text/plain", b"a/b"),
        (EVENTS, b"", b"\xff"),
        (EVENTS, b"application/cloudevents+avro"),
        (EVENTS, b"application/cloudevents-batch+json"),
        (EVENTS, b"application/cloudevents+unknown"),
        (b'"application/cloudevents+json"', b"application/json"),
    ],
)
@each("more", [[], CE])
def test_content_types_have_one_verdict_in_any_order(types: tuple[bytes, ...], more: Any) -> None:
    """The one that names an event format is read, the others are left out, and an error names them all."""
    for value, is_event in ((HEAD + b"}", True), (b"{}", False)):
        for order in permutations(types):
            record = Record(value=value, headers=[*more, *(("content-type", one) for one in order)])
            item = decode(record, lenient=True)
            assert isinstance(item, Decoded) is is_event, item
            if isinstance(item, Decoded):
                assert item.mode == "structured"
                left_out = [one.value for one in item.tolerated if isinstance(one, LeftOut)]
                assert {*left_out} == {text_or_bytes(one) for one in types[1:]}
                assert {one.attribute for one in item.tolerated} == {"content-type"}
                changed = item.event.replace(subject="x")
                again = decode(to_record(changed, like=record), lenient=True)
                assert (again.event, again.mode) == (changed, item.mode)
                assert [one for one in again.record.headers if one[1] in types[1:]] == [
                    one for one in record.headers if one[1] in types[1:]
                ]
            else:
                [*problems] = item.error.problems
                assert isinstance(item.error, BrokenEvent)
                assert problems[0].rule == "header occurs more than once"
                assert sniff(record.headers) == sniff(record.headers[::-1])


@each(
    "types",
    [
        (EVENTS, b"application/json"),
        (EVENTS, b"application/cloudevents-batch+json", b"\xff"),
        (b"application/cloudevents+unknown", b"text/plain"),
        (b"text/plain", b"\xff"),
        (EVENTS, b"application/cloudevents+avro", b"text/plain"),
    ],
)
@each("name", ["content-type", "ce_datacontenttype"])
@each("more", [[], CE[:3], CE])
def test_repeated_types_have_one_verdict_in_any_order(types: tuple[bytes, ...], name: str, more: Any) -> None:
    """The same header is read in any order, and a changed event keeps the others."""
    for value in (HEAD + b"}", b"\xff"):
        found: set[Any] = set()
        for order in permutations(types):
            record = Record(value=value, headers=[*more, *((name, one) for one in order)])
            item = decode(record, lenient=True)
            if not isinstance(item, Decoded):
                found.add((type(item.error), str(item.error)))
                continue
            left_out = {one.value for one in item.tolerated if isinstance(one, LeftOut)}
            found.add((item.mode, item.event.datacontenttype, frozenset(left_out)))
            changed = item.event.replace(subject="x")
            again = decode(to_record(changed, like=record), lenient=True)
            assert isinstance(again, Decoded)
            assert (again.event, again.mode) == (changed, item.mode)
            if item.mode == "binary":
                assert {one.value for one in again.tolerated if isinstance(one, LeftOut)} == left_out
        assert len(found) == 1, found


def test_of_several_copies_one_of_the_data_is_read() -> None:
    """If all required headers are present, no ce_datacontenttype names an event format."""
    for types in permutations((EVENTS, b"text/plain", b"\xff")):
        headers = [*CE, *(("ce_datacontenttype", one) for one in types)]
        assert from_record(Record(headers=headers), lenient=True).datacontenttype == "text/plain"


@each(
    ("first", "second", "rule"),
    [
        (EVENTS, b"a/b", "the one that names an event format was read"),
        (b"a/c", b"a/b", "the last one was read"),
        (b"a/b", b"\xff", "a content type of the data in UTF-8 was read"),
    ],
)
def test_the_rule_says_which_content_type_was_read(first: bytes, second: bytes, rule: str) -> None:
    """The order of the headers matters only if both content types are in UTF-8 and name no event format."""
    for types in ((first, second), (second, first)):
        _, report = normalize_headers([("content-type", one) for one in types])
        [problem] = report.tolerated
        assert problem.rule == f"header content-type occurs more than once: {rule}"


@each(
    ("header", "rule"),
    [
        ("ce_my_ext", "was read as myext"),
        ("ce-x", "was read as ce_x"),
        ("ce_data_schema", "an attribute name must have only a-z and 0-9: left out"),
    ],
)
def test_the_rule_has_the_name_under_which_a_header_was_read(header: str, rule: str) -> None:
    """It is the name of the attribute after ce_, or else of the header."""
    item = decode(Record(headers=[*CE, (header, b"1")]), lenient=True)
    assert isinstance(item, Decoded)
    [problem] = item.tolerated
    assert problem.rule == rule


def test_of_a_structured_record_only_the_content_type_is_reported() -> None:
    """Other headers do not affect its event; a replacement of content-type is reported under that name."""
    headers = [("ce-x", b"1"), ("ce_y", b"1"), ("ce_y", b"2"), ("CE_DATACONTENTTYPE", EVENTS)]
    _, report = normalize_headers(headers)
    reported = [problem.attribute for problem in report.tolerated]
    assert reported == ["y", "ce-x", "CE_DATACONTENTTYPE", "datacontenttype"]
    found = report.of_content_type().tolerated
    assert [(problem.attribute, problem.clause) for problem in found] == [("content-type", "K-04")]


@each(
    ("headers", "names"),
    [
        ("ce_id ce-b ce_source ce_a ce_specversion ce-type ce_c", "b a c"),
        ("ce_id ce-b ce_source ce_a ce_specversion ce_type ce_c", "b a c"),
        ("ce_id ce-b ce_source ce_a ce_specversion ce_type ce_c ce_B", "b a c"),
        ("ce_id ce-b ce_source ce_a ce_specversion ce_type ce_c ce_a CE_d CE_d", "b a c d"),
    ],
)
def test_attributes_have_the_order_of_the_record(headers: str, names: str) -> None:
    """Headers with exact and with nearly exact names are read in the order of the record."""
    record = Record(headers=[(name, b"1.0") for name in headers.split()], value=b"")
    event = from_record(record, lenient=True)
    assert [name for name in event if len(name) == 1] == names.split()


def test_members_have_the_order_of_the_record() -> None:
    """So are members of JSON."""
    value = b'{"B":"1","specversion":"1.0","a":"1","id":"1","TYPE":"t","C":"1","source":"/","d":"1"}'
    record = Record(headers=[("content-type", b"application/cloudevents+json")], value=value)
    event = from_record(record, lenient=True)
    assert [name for name in event if len(name) == 1] == ["b", "a", "c", "d"]
