"""Events: constructed, compared, sent through every mode, and taken from batches."""

from __future__ import annotations

import json

import pytest

from cloudevents_kafka import Event, InvalidEvent, Record, decode, from_record, to_record

from .judging import faults, verdict_of
from .loading import Case, as_event, cases

JSON = [("content-type", b"application/cloudevents+json")]
BATCH = [("content-type", b"application/cloudevents-batch+json")]
MODES = [("binary", None), ("structured", "json"), ("structured", "avro")]


@cases("construct")
def test_construct(case: Case) -> None:
    """Attributes make an event, or every bad one is named."""
    if case["accepted"]:
        as_event(case["event"])
        return
    with pytest.raises(InvalidEvent) as caught:
        as_event(case["event"])
    assert faults(caught.value.problems) == set(case["faults"])


@cases("equal")
def test_equal(case: Case) -> None:
    """Events are equal where their values are."""
    one, other = map(as_event, case["events"])
    assert (one == other) is case["equal"]


@cases("round-trip")
@pytest.mark.parametrize(("mode", "form"), MODES)
def test_round_trip(case: Case, mode: str, form: str | None) -> None:
    """What is written in a mode reads as the same event, attribute types included."""
    event = as_event(case["event"])
    assert from_record(to_record(event, mode=mode, format=form)) == event


@cases("media-type")
def test_media_type(case: Case) -> None:
    """Under a JSON type data is any JSON value; under another it is a string."""
    envelope = {
        "specversion": "1.0",
        "id": "1",
        "source": "/s",
        "type": "t",
        "datacontenttype": case["media_type"],
    }
    value = json.dumps({**envelope, "data": {"a": 1}}).encode()
    outcome = decode(Record(value=value, headers=JSON))
    assert verdict_of(outcome) == ("event" if case["is_json"] else "broken-event")
    if case["is_json"]:
        assert Event(**envelope, data={"a": 1}).data == {"a": 1}
    else:
        with pytest.raises(InvalidEvent):
            Event(**envelope, data={"a": 1})


@cases("json-batch")
def test_json_batch(case: Case) -> None:
    """A batch is refused on Kafka as a batch; its elements are events or the batch is bad."""
    batch = case["batch"].encode()
    assert verdict_of(decode(Record(value=batch, headers=BATCH))) == "batch"
    assert _is_good_batch(json.loads(batch)) is case["accepted"]


def _is_good_batch(elements: object) -> bool:
    if not isinstance(elements, list):
        return False
    records = [Record(value=json.dumps(element).encode(), headers=JSON) for element in elements]
    return all(verdict_of(decode(record)) == "event" for record in records)
