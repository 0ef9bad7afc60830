"""Records: sniffed, decoded, encoded, forwarded, put into another form, and keyed."""

from __future__ import annotations

import pytest

from cloudevents_kafka import (
    EncodeError,
    InvalidEvent,
    attribute_key,
    from_record,
    partition_key,
    sniff,
    to_record,
)
from cloudevents_kafka.keys import KeyMapper

from .judging import judge_both, judge_record
from .loading import Case, as_bytes, as_event, as_headers, as_record, cases


@cases("sniff")
def test_sniff(case: Case) -> None:
    """Headers alone tell what a record is."""
    assert sniff(as_headers(case["headers"])).mode == case["mode"]


@cases("decode")
def test_decode(case: Case) -> None:
    """A record reads as the case says, strictly and, where it says so, leniently."""
    judge_both(case)


@cases("encode")
def test_encode(case: Case) -> None:
    """An event is written as the record of the case, or refused."""
    options = {
        "mode": case["mode"],
        "format": case.get("format"),
        "headers": as_headers(case.get("headers", [])),
    }
    if case.get("refused"):
        with pytest.raises((EncodeError, InvalidEvent)):
            to_record(as_event(case["event"]), **options)
        return
    judge_record(to_record(as_event(case["event"]), **options), case["record"])


@cases("transcode")
def test_transcode(case: Case) -> None:
    """A record that was read in one form is written in another."""
    event = from_record(as_record(case["record"]))
    judge_record(to_record(event, mode=case["mode"], format=case.get("format")), case["result"])


@cases("relay")
def test_relay(case: Case) -> None:
    """A record that is forwarded unchanged is the same in every byte."""
    record = as_record(case["record"])
    again = to_record(from_record(record), like=record)
    assert (again.key, again.value, again.headers) == (record.key, record.value, record.headers)


@cases("key")
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_key(case: Case, mode: str) -> None:
    """The record key is the user's or the mapper's, and the event goes out as it was."""
    event = as_event(case["event"])
    before = (dict(event.attributes), event.payload)
    record = to_record(event, mode=mode, key=as_bytes(case["key"]), key_mapper=_mapper(case["mapper"]))
    assert record.key == as_bytes(case["record_key"])
    assert (dict(event.attributes), event.payload) == before
    again = from_record(record)
    assert {name: again.text(name) for name in again} == {name: event.text(name) for name in event}


def _mapper(notation: str | dict[str, str] | None) -> KeyMapper | None:
    if isinstance(notation, dict):
        return attribute_key(notation["attribute"])
    return {None: None, "partitionkey": partition_key}[notation]
