"""Misnamed headers: what they are read as, what counts, and what is not clear."""

from __future__ import annotations

from typing import Any

import pytest
import strategies as make

from cloudevents_kafka.binding._lenient_headers import content_type_problems, normalize_headers
from cloudevents_kafka.errors import Problem

CE = make.required_headers
EVENTS = b"application/cloudevents+json"


@pytest.mark.parametrize(
    ("headers", "kept", "tolerated", "unclear"),
    [
        ([], {}, [], []),
        ([("foo", b"1"), ("ce_", b"2"), ("ce_x", None), ("CE_X", None), (5, b"")], {}, [], []),
        ([("ce_x", b"1"), ("ce_x", b"2")], {"ce_x": b"2"}, ["x"], []),
        ([("ce-x", b"1")], {"ce_x": b"1"}, ["ce-x"], []),
        ([("cloudEvents:X", b"1"), ("ce_x", None)], {"ce_x": b"1"}, ["cloudEvents:X"], []),
        ([("CE_X", b"1"), ("ce_x", b"2")], {"ce_x": b"2"}, ["CE_X"], []),
        ([("CE_X", b"1"), ("ce-x", b"1")], {"ce_x": b"1"}, ["CE_X", "ce-x"], []),
        ([("CE_X", b"1"), ("ce-x", b"2")], {"ce_x": b"2"}, [], ["CE_X", "ce-x"]),
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
def test_headers_get_the_names_that_they_are_to_have(
    headers: Any, kept: Any, tolerated: list[str], unclear: list[str]
) -> None:
    """The very name wins, those that agree count, and what is not clear is told apart."""
    passed: list[Problem] = []
    differing: list[Problem] = []
    assert normalize_headers(headers, passed, differing) == kept
    assert [problem.attribute for problem in passed] == tolerated
    assert [problem.attribute for problem in differing] == unclear


def test_of_a_structured_record_only_its_content_type_is_told() -> None:
    """Other headers say nothing about its event; what stood in for content-type goes by that name."""
    told: list[Problem] = []
    normalize_headers(
        [("ce-x", b"1"), ("ce_y", b"1"), ("ce_y", b"2"), ("CE_DATACONTENTTYPE", EVENTS)], told, []
    )
    assert [problem.attribute for problem in told] == ["y", "ce-x", "CE_DATACONTENTTYPE", "datacontenttype"]
    assert [(p.attribute, p.clause) for p in content_type_problems(told)] == [("content-type", "K-04")]
