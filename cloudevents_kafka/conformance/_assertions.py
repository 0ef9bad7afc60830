"""Compare what a case expects with what the library does; raise `CaseFailed` if they differ."""

from __future__ import annotations

import io
import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os.path import commonprefix
from typing import Any, Final

from msgspec import UNSET

from cloudevents_kafka import registry
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue
from cloudevents_kafka.binding import Decoded, Undecodable, decode, sniff
from cloudevents_kafka.conformance._vectors import DecodeCase
from cloudevents_kafka.conformance.notation import (
    BodyObject,
    Expectation,
    ExpectedEvent,
    ExpectedFaults,
    ValueObject,
    WrittenRecord,
    as_bytes,
    as_data,
    as_headers,
    as_record,
    as_value,
)
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats import protobuf_decoder
from cloudevents_kafka.record import Record

_EXCERPT: Final = 120  # characters of a value in a message


class CaseFailed(AssertionError):
    """The library does not do what a case expects; the message says what it does instead."""


def require(condition: object, message: str) -> None:
    """Raise `CaseFailed` with a message unless a condition holds."""
    if not condition:
        raise CaseFailed(message)


def require_equal(found: object, expected: object, what: str) -> None:
    """Raise `CaseFailed` if two values differ."""
    if found != expected:
        raise CaseFailed(difference(found, expected, what))


def difference(found: object, expected: object, what: str) -> str:
    """Return a sentence with two values that differ; of long ones, the text around the first difference."""
    texts = [repr(expected), repr(found)]
    alike = len(commonprefix(texts))  # noqa: RUF071  # the texts are compared by character
    start = max(0, alike - _EXCERPT // 4) if max(map(len, texts)) > _EXCERPT else 0
    return f"{what} must be {_excerpt(texts[0], start)}, not {_excerpt(texts[1], start)}"


def _excerpt(text: str, start: int) -> str:
    end = start + _EXCERPT
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


# --- records that are read -------------------------------------------------------


def check_decode(case: DecodeCase) -> None:
    """Check a record that is read strictly and, if the case says so, leniently."""
    record = as_record(case.record)
    with _known_labels(case.heeds):
        check_outcome(record, case.strict, lenient=False)
        if case.lenient is not None:
            _check_lenient(record, case.lenient)
        if case.secret is not None:
            _check_redaction(record, case.secret)


@contextmanager
def _known_labels(labels: Mapping[Any, Iterable[str]]) -> Iterator[None]:
    """Refuse, in this block, attributes whose value has an entry that is not one of their labels."""
    with registry.temporarily():
        for name, known in labels.items():
            registry.register_extension(name, AttributeType.STRING, accepts=_all_in(known))
        yield


def _all_in(known: Iterable[str]) -> Callable[[AttributeValue], bool]:
    labels = frozenset(known)
    return lambda value: labels.issuperset(entry.strip() for entry in str(value).split(","))


def _check_redaction(record: Record, secret: str) -> None:
    """Search for a secret in all that a program may log of a record and its outcome."""
    for lenient in (False, True):
        outcome = decode(record, lenient=lenient)
        log = f"{record!r} {outcome!r} {outcome}"
        if isinstance(outcome, Undecodable):
            log += "".join(traceback.format_exception(outcome.error))
        at = log.find(secret)
        require(at < 0, f"{secret!r} must be redacted, but follows …{log[max(at - _EXCERPT, 0) : at]}")


def _check_lenient(record: Record, expected: Expectation) -> None:
    try:
        check_outcome(record, expected, lenient=True)
    except CaseFailed as error:
        raise CaseFailed(f"read leniently, {error}") from None


def check_outcome(record: Record, expected: Expectation, *, lenient: bool) -> None:
    """Decode a record and compare the outcome with an expectation."""
    outcome = decode(record, lenient=lenient)
    if (verdict := verdict_of(outcome)) != expected.verdict:
        found = outcome.error if isinstance(outcome, Undecodable) else outcome.event
        raise CaseFailed(f"{difference(verdict, expected.verdict, 'the verdict')}: {found}")
    require(outcome.record is record, "the outcome must contain the record")
    if isinstance(outcome, Undecodable):
        _check_faults(outcome, expected)
    elif isinstance(expected, ExpectedEvent):
        _check_decoded(outcome, expected, lenient=lenient)


def _check_decoded(outcome: Decoded, expected: ExpectedEvent, *, lenient: bool) -> None:
    event, record = outcome.event, outcome.record
    _check_event(event, expected)
    require_equal(
        event.payload == record.value, expected.mode == "binary", "whether the payload is the value"
    )
    if not lenient:
        require_equal(outcome.tolerated, (), "what is tolerated")
        require_equal(sniff(record.headers).mode, expected.mode, "the mode")
    elif expected.tolerated is not None:
        require_equal(attributes_of(outcome.tolerated), set(expected.tolerated), "what is tolerated")


def verdict_of(outcome: Decoded | Undecodable) -> str:
    """Return the verdict on a record, by its name in the vectors."""
    return outcome.error.verdict if isinstance(outcome, Undecodable) else "event"


def attributes_of(problems: Iterable[Problem]) -> set[str | None]:
    """Return the attributes that problems name."""
    return {problem.attribute for problem in problems}


def _check_faults(outcome: Undecodable, expected: Expectation) -> None:
    require(str(outcome.error), "an error must have a message")
    faults = set(expected.attributes_at_fault) if isinstance(expected, ExpectedFaults) else set()
    if faults:
        found = attributes_of(outcome.error.problems)
        message = f"{difference(found, faults, 'the attributes at fault')}: {outcome.error}"
        require(found == faults, message)


def _check_event(event: Event, expected: ExpectedEvent) -> None:
    require_equal(sorted(event.attributes), sorted(expected.attributes), "the attributes")
    for name, value in expected.attributes.items():
        check_attribute(event, name, value)
    require_equal(event.payload, as_bytes(expected.data), "the data")
    if expected.value is not UNSET:
        value = as_data(expected.value)
        require(same_json(event.data, value), difference(event.data, value, "the decoded data"))


def texts(event: Event) -> dict[str, str | None]:
    """Return the canonical texts of an event's attributes."""
    return {name: event.text(name) for name in event}


def check_attribute(event: Event, name: str, expected: Any) -> None:
    """Compare an attribute with its canonical text, or with a value of another JSON type."""
    found = event.text(name) if isinstance(expected, str) else event.get(name)
    require(same_json(found, as_value(expected)), difference(found, expected, name))


# --- records that are written ----------------------------------------------------


def check_record(record: Record, expected: WrittenRecord) -> None:
    """Compare a written record with an expectation; headers may be in any order."""
    require_equal(record.key, as_bytes(expected.key), "the key")
    headers = sorted(as_headers(expected.headers), key=repr)
    require_equal(sorted(record.headers, key=repr), headers, "the headers")
    check_value(record.value, expected.value)


def check_value(value: bytes | None, expected: str | BodyObject | list[Any] | None) -> None:
    """Compare a written value with bytes or a JSON value, or with a datum or message in any map order."""
    json_value = expected.json if isinstance(expected, BodyObject) else UNSET
    if json_value is not UNSET:
        found = _json(value)
        require(same_json(found, json_value), difference(found, json_value, "the value"))
    elif isinstance(expected, ValueObject) and isinstance(expected.avro, str):
        _check_unordered(value, expected.avro, "avro", _datum)
    elif isinstance(expected, ValueObject) and isinstance(expected.protobuf, str):
        _check_unordered(value, expected.protobuf, "protobuf", _fields)
    else:
        require_equal(value, as_bytes(expected), "the value")


def _check_unordered(
    value: bytes | None, expected: str, format_name: str, read: Callable[[bytes], Any]
) -> None:
    wanted = bytes.fromhex(expected)
    holds = value is not None and len(value) == len(wanted) and same_json(read(value), read(wanted))
    found = None if value is None else value.hex()
    require(holds, difference(found, expected, f"the {format_name} value, in any order,"))


def _json(value: bytes | None) -> Any:
    try:
        return json.loads(value or b"", object_pairs_hook=_unique_members)
    except ValueError as error:
        raise CaseFailed(f"the value must be JSON, not {value!r}: {error}") from None


def _fields(value: bytes) -> list[list[Any]]:
    try:
        return [sorted(fields, key=repr) for fields in protobuf_decoder.read(value)]
    except protobuf_decoder.Malformed as error:
        raise CaseFailed(f"the value must be a Protobuf message, not {value.hex()}: {error}") from None


def _datum(value: bytes) -> Any:
    import fastavro  # slow to import

    from cloudevents_kafka.formats.avro import SCHEMA

    try:
        return fastavro.schemaless_reader(io.BytesIO(value), SCHEMA, None)
    except (EOFError, LookupError, OverflowError, ValueError) as error:
        raise CaseFailed(f"the value must be an Avro datum, not {value.hex()}: {error}") from None


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    require(len(members) == len(pairs), f"each member must occur once, got {pairs}")
    return members


def same_json(one: Any, other: Any) -> bool:
    """Return whether values are equal, types included: ``True`` is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
