"""Cases of records that are read: sniffed, decoded, as JSON batches and by media type."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

from msgspec import UnsetType

from cloudevents_kafka import registry
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue
from cloudevents_kafka.binding import Decoded, Undecodable, decode, sniff
from cloudevents_kafka.errors import InvalidEvent
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record
from conformance._case import MODES, CaseFailed, difference, kind, require, require_equal
from conformance._compare import attributes_of, check_attributes, require_same, verdict_of
from conformance.notation import (
    Expected,
    HeaderPairs,
    RecordNotation,
    as_headers,
    as_record,
)

_JSON: Final = "application/cloudevents+json"
_BATCH: Final = "application/cloudevents-batch+json"
_BEFORE_SECRET: Final = 120  # characters of a log in a message


@kind("decode", accepts=lambda case: case.strict.verdict == "event")
def check_decode(
    record: RecordNotation,
    strict: Expected,
    lenient: Expected | None = None,
    secret: str | None = None,
    heeds: dict[Literal["dataclassification", "dataregulation", "datacategory"], list[str]] | None = None,
) -> None:
    """Read a record strictly and, if the case says so, leniently; check what is logged of it."""
    read = as_record(record)
    with _known_labels(heeds or {}):
        _check_outcome(read, strict, lenient=False)
        if lenient is not None:
            try:
                _check_outcome(read, lenient, lenient=True)
            except CaseFailed as error:
                raise CaseFailed(f"read leniently, {error}") from None
        if secret is not None:
            _check_redaction(read, secret)


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


def _check_outcome(record: Record, expected: Expected, *, lenient: bool) -> None:
    outcome = decode(record, lenient=lenient)
    if (verdict := verdict_of(outcome)) != expected.verdict:
        found = outcome.error if isinstance(outcome, Undecodable) else outcome.event
        raise CaseFailed(f"{difference(verdict, expected.verdict, 'the verdict')}: {found}")
    require(outcome.record is record, "the outcome must contain the record")
    if isinstance(outcome, Undecodable):
        _check_faults(outcome, expected)
    else:
        _check_decoded(outcome, expected, lenient=lenient)


def _check_faults(outcome: Undecodable, expected: Expected) -> None:
    require(str(outcome.error), "an error must have a message")
    found, faults = attributes_of(outcome.error.problems), set(expected.attributes_at_fault)
    message = f"{difference(found, faults, 'the attributes at fault')}: {outcome.error}"
    require(not faults or found == faults, message)


def _check_decoded(outcome: Decoded, expected: Expected, *, lenient: bool) -> None:
    event, record = outcome.event, outcome.record
    check_attributes(event, expected.attributes)
    require_equal(event.payload, expected.data, "the data")
    if not isinstance(expected.value, UnsetType):
        require_same(event.data, expected.value.value, "the decoded data")
    is_binary = expected.mode == "binary"
    require_equal(event.payload == record.value, is_binary, "whether the payload is the value")
    if not lenient:
        require_equal(outcome.tolerated, (), "what is tolerated")
        require_equal(sniff(record.headers).mode, expected.mode, "the mode")
    elif expected.tolerated is not None:
        require_equal(attributes_of(outcome.tolerated), set(expected.tolerated), "what is tolerated")


def _check_redaction(record: Record, secret: str) -> None:
    """Search for a secret in all that a program may log of a record and its outcome."""
    for lenient in (False, True):
        outcome = decode(record, lenient=lenient)
        log = f"{record!r} {outcome!r} {outcome}"
        if isinstance(outcome, Undecodable):
            log += "".join(traceback.format_exception(outcome.error))
        at = log.find(secret)
        require(at < 0, f"{secret!r} must be redacted, but follows …{log[max(at - _BEFORE_SECRET, 0) : at]}")


@kind("sniff", accepts=lambda case: case.mode in MODES)
def check_sniff(
    headers: HeaderPairs,
    mode: Literal["structured", "binary", "not-an-event", "unsupported-format", "batch"],
) -> None:
    """Check the mode of headers."""
    require_equal(sniff(as_headers(headers)).mode, mode, "the mode")


@kind("media-type", accepts=lambda case: case.is_json)
def check_media_type(media_type: str, *, is_json: bool) -> None:
    """Check that data is any JSON value with a JSON type, and a string with another (J-12)."""
    attributes: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    attributes |= {"datacontenttype": media_type, "data": {"a": 1}}
    verdict = verdict_of(decode(_structured(_JSON, json.dumps(attributes))))
    require_equal(verdict, "event" if is_json else "broken-event", "the verdict on an object as data")
    try:
        event = Event(**attributes)
    except InvalidEvent as error:
        require(not is_json, f"must be a JSON type: {error}")
    else:
        require(is_json, f"must not be a JSON type, but {event} was constructed")


@kind("json-batch", accepts=lambda case: case.accepted)
def check_json_batch(batch: str, *, accepted: bool) -> None:
    """Check that a batch is refused on Kafka (K-01), and is valid if its elements are events."""
    require_equal(verdict_of(decode(_structured(_BATCH, batch))), "batch", "the verdict")
    require_equal(_is_valid_batch(batch), accepted, "whether the batch is valid")


def _is_valid_batch(text: str) -> bool:
    try:
        elements = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(elements, list) and all(
        isinstance(decode(_structured(_JSON, json.dumps(element))), Decoded) for element in elements
    )


def _structured(content_type: str, text: str) -> Record:
    return Record(value=text.encode(), headers=[("content-type", content_type.encode())])
