"""The sniffer: the mode of a record by its headers, with the reason, for any headers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import sniff
from tests.support import strategies as make

CE = make.required_headers


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("name", [b"ce_id", 5, None, (), "\ud800"])
def test_odd_header_names_are_ignored(name: Any) -> None:
    """A header whose name is not a str or not UTF-8 is ignored."""
    assert sniff([(name, b"x")]).mode == "not-an-event"
    assert sniff([*CE, (name, b"x")]).mode == "binary"
