"""What a case expects, held against what the library gives."""

from __future__ import annotations

import io
import json
from typing import Any, Final

import fastavro

from cloudevents_kafka import Decoded, Event, Record, Undecodable, decode
from cloudevents_kafka.errors import BrokenEvent, NotAnEvent, Problem, UnsupportedBatch, UnsupportedFormat
from cloudevents_kafka.formats.avro import SCHEMA
from cloudevents_kafka.sniff import sniff

from .loading import Case, as_bytes, as_data, as_headers, as_record, as_value

VERDICTS: Final = {
    NotAnEvent: "not-an-event",
    BrokenEvent: "broken-event",
    UnsupportedFormat: "unsupported-format",
    UnsupportedBatch: "batch",
}


def judge(record: Record, expected: Case, *, lenient: bool) -> None:
    """Decode a record and hold the outcome against an expectation."""
    outcome = decode(record, lenient=lenient)
    assert verdict_of(outcome) == expected["verdict"], outcome
    assert outcome.record is record
    if isinstance(outcome, Undecodable):
        _judge_faults(outcome, expected.get("attributes_at_fault", []))
        return
    judge_event(outcome.event, expected)
    assert (outcome.event.payload == record.value) is (expected["mode"] == "binary")
    if lenient and "tolerated" in expected:
        assert {problem.attribute for problem in outcome.tolerated} == set(expected["tolerated"])
    if not lenient:
        assert outcome.tolerated == ()
        assert sniff(record.headers).mode == expected["mode"]


def verdict_of(outcome: Decoded | Undecodable) -> str:
    """Name an outcome by the word that all vector files use."""
    return VERDICTS[type(outcome.error)] if isinstance(outcome, Undecodable) else "event"


def faults(problems: tuple[Problem, ...]) -> set[str | None]:
    """Name what problems are about."""
    return {problem.attribute for problem in problems}


def _judge_faults(outcome: Undecodable, expected: list[str]) -> None:
    assert str(outcome.error)
    if expected:
        assert isinstance(outcome.error, BrokenEvent)
        assert faults(outcome.error.problems) == set(expected), str(outcome.error)


def judge_event(event: Event, expected: Case) -> None:
    """Hold an event's attributes, payload and value against an expectation."""
    assert set(event.attributes) == set(expected["attributes"])
    for name, value in expected["attributes"].items():
        judge_attribute(event, name, value)
    assert event.payload == as_bytes(expected["data"])
    if "value" in expected:
        assert same_json(event.data, as_data(expected["value"]))


def judge_attribute(event: Event, name: str, expected: Any) -> None:
    """Hold an attribute against a canonical text, or a value of JSON's own."""
    found = event.text(name) if isinstance(expected, str) else event[name]
    assert same_json(found, as_value(expected)), name


def judge_record(record: Record, expected: Case) -> None:
    """Hold a written record against an expectation; the order of headers does not count."""
    assert record.key == as_bytes(expected["key"])
    assert sorted(record.headers, key=repr) == sorted(as_headers(expected["headers"]), key=repr)
    judge_value(record.value, expected["value"])


def judge_value(value: bytes | None, expected: Any) -> None:
    """Hold a written value against bytes, a JSON value, or an Avro datum in any map order."""
    if isinstance(expected, dict) and "json" in expected:
        assert value is not None
        assert same_json(json.loads(value, object_pairs_hook=_once), expected["json"]), value
    elif isinstance(expected, dict) and "avro" in expected:
        assert value is not None
        assert len(value) == len(expected["avro"]) // 2
        assert same_json(_datum(value), _datum(bytes.fromhex(expected["avro"])))
    else:
        assert value == as_bytes(expected)


def _datum(value: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(value), SCHEMA, None)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member occurs twice: {pairs}"
    return members


def same_json(one: Any, other: Any) -> bool:
    """Compare values with their types: ``True`` is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)


def judge_both(case: Case) -> None:
    """Judge a record read strictly and, where the case says so, leniently."""
    judge(as_record(case["record"]), case["strict"], lenient=False)
    if "lenient" in case:
        judge(as_record(case["record"]), case["lenient"], lenient=True)
