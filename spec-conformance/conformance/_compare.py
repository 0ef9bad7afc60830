"""Compare events, records and values with those that a case expects."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats import protobuf_decoder
from cloudevents_kafka.record import Record
from conformance._case import CaseFailed, difference, require, require_equal
from conformance.notation import Written, WrittenRecord, as_headers


def verdict_of(outcome: Decoded | Undecodable) -> str:
    """Return the verdict on a record, by its name in the vectors."""
    return outcome.error.verdict if isinstance(outcome, Undecodable) else "event"


def attributes_of(problems: Iterable[Problem]) -> set[str | None]:
    """Return the attributes that problems name."""
    return {problem.attribute for problem in problems}


def texts(event: Event) -> dict[str, str | None]:
    """Return the canonical texts of an event's attributes."""
    return {name: event.text(name) for name in event}


def check_attributes(event: Event, expected: Mapping[str, Any]) -> None:
    """Compare all attributes; see `check_attribute`."""
    require_equal(sorted(event), sorted(expected), "the attributes")
    for name, value in expected.items():
        check_attribute(event, name, value)


def check_attribute(event: Event, name: str, expected: Any) -> None:
    """Compare an attribute with its canonical text, or with a value of another type."""
    require_same(event.text(name) if isinstance(expected, str) else event.get(name), expected, name)


def check_record(record: Record, expected: WrittenRecord) -> None:
    """Compare a written record with an expectation; headers may be in any order."""
    require_equal(record.key, expected.key, "the key")
    headers = sorted(as_headers(expected.headers), key=repr)
    require_equal(sorted(record.headers, key=repr), headers, "the headers")
    check_value(record.value, expected.value)


def check_value(value: bytes | None, expected: Written | None) -> None:
    """Compare a written value with bytes or a JSON value, or with a datum or message in any map order."""
    if expected is None or expected.form == "bytes":
        require_equal(value, expected and expected.content, "the value")
    elif expected.form == "json":
        require_same(_parsed("json", value or b""), expected.content, "the value")
    else:
        form, wanted = expected.form, expected.content
        holds = value is not None and len(value) == len(wanted)
        holds = holds and same_json(_parsed(form, value or b""), _parsed(form, wanted))
        what = f"the {form} value, in any order,"
        require(holds, difference(None if value is None else value.hex(), wanted.hex(), what))


def _parsed(form: str, value: bytes) -> Any:
    """Return a JSON value, an Avro datum, or the fields of a Protobuf message, with its maps sorted."""
    import fastavro  # slow to import

    from cloudevents_kafka.formats.avro import SCHEMA

    try:
        if form == "json":
            return json.loads(value, object_pairs_hook=_unique_members)
        if form == "avro":
            return fastavro.schemaless_reader(io.BytesIO(value), SCHEMA, None)
        return [sorted(fields, key=repr) for fields in protobuf_decoder.read(value)]
    except (EOFError, LookupError, OverflowError, ValueError, protobuf_decoder.MalformedMessage) as error:
        raise CaseFailed(f"the value must be in {form}, not {value!r}: {error}") from None


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    require(len(members) == len(pairs), f"each member must occur once, got {pairs}")
    return members


def require_same(found: Any, expected: Any, what: str) -> None:
    """Raise `CaseFailed` if two values differ, by `same_json`."""
    require(same_json(found, expected), difference(found, expected, what))


def same_json(one: Any, other: Any) -> bool:
    """Return whether values are equal, types included: ``True`` is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
