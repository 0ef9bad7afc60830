"""Misspelled headers: the attribute that they carry, their precedence, and ambiguous ones."""

from __future__ import annotations

from typing import Any

from cloudevents_kafka import Record, from_record
from cloudevents_kafka.binding.lenient._headers import normalize_headers
from tests.support import strategies as make
from tests.support.cases import each

CE = make.required_headers
EVENTS = b"application/cloudevents+json"


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
