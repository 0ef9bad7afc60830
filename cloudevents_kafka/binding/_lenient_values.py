"""Lenient reading of structured values and of attributes.

Each function appends the deviations that it accepts to ``tolerated``, and others to ``problems``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.media_type import MediaType, media_type
from cloudevents_kafka.attributes.types import (
    CORE,
    INTEGER_RANGE,
    REQUIRED,
    SPECVERSION,
    AttributeType,
    AttributeValue,
    canonical_text,
    is_name,
    is_string,
)
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.binding._headers import attribute_of
from cloudevents_kafka.binding._structured import (
    InvalidContentType,
    decode_structured,
    null_value,
)
from cloudevents_kafka.codecs.payload import DataKind, implies_json
from cloudevents_kafka.errors import DecodeError, InvalidEvent, Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats import InvalidAttributes
from cloudevents_kafka.formats.json_decoder import Envelope, InvalidEnvelope, read_data, split_envelope

_BOM: Final = b"\xef\xbb\xbf"
_EXTENSION_CLAUSES: Final = ("E-", "X-")  # of rules of extensions other than their types
_KEPT_CLAUSES: Final = ("T-10", "T-11", "R-07")  # of core attributes whose text is kept if it breaks them

Outcome = Event | InvalidEvent | DecodeError
"""The result of strict reading: an event or the error."""


def read_format(
    value: bytes | None, media: MediaType, outcome: Outcome | None, tolerated: list[Problem]
) -> Event | None:
    """Return the event in a value in its format, also if attributes break rules; None if it is unknown."""
    if isinstance(outcome, InvalidContentType):
        outcome = outcome.outcome
    if outcome is None:
        try:
            outcome = decode_structured(value, media)
        except InvalidEvent as error:
            outcome = error
    if outcome is None or isinstance(outcome, Event):
        return outcome
    if isinstance(outcome, InvalidEnvelope):
        return _correct_envelope(outcome.envelope, tolerated)
    if isinstance(outcome, InvalidAttributes):
        return _correct_event(outcome.event, tolerated)
    if media.format == "json" and value is not None and value.startswith(_BOM):
        return read_json(value, None, tolerated)
    raise outcome


def _correct_event(event: Event, tolerated: list[Problem]) -> Event:
    attributes, _ = raw_parts(event)
    problems: list[Problem] = []
    attributes = correct(_lower_case_names(attributes, tolerated, problems), problems, tolerated)
    return make_event(attributes, event.payload, event.kind, problems)


def complete_envelope(value: bytes | None) -> Envelope | None:
    """Return the members of a JSON object that has all required attributes, or None."""
    try:
        envelope = split_envelope((value or b"").removeprefix(_BOM))
    except InvalidEvent:
        return None
    attributes = envelope.attributes
    complete = not envelope.problems and all(isinstance(attributes.get(name), str) for name in REQUIRED)
    return envelope if complete and attributes["specversion"] == SPECVERSION else None


def read_json(
    value: bytes | None,
    envelope: Envelope | None,
    tolerated: list[Problem],
    content_type: str | None = None,
) -> Event:
    """Return the event in a JSON value; ``envelope`` are its members if they were split already."""
    if value is None:
        raise InvalidEvent([null_value()])
    if value.startswith(_BOM):
        tolerated.append(Problem(None, "the value starts with a byte order mark", "J-01"))
    if envelope is None:
        envelope = split_envelope(value.removeprefix(_BOM))
    if content_type and not (media_type(content_type).cloudevents or implies_json(content_type)):
        envelope.attributes.setdefault("datacontenttype", content_type)  # of the data, as it is not of JSON
    return _correct_envelope(envelope, tolerated)


def _correct_envelope(envelope: Envelope, tolerated: list[Problem]) -> Event:
    problems = [*envelope.problems]
    members = _lower_case_names(envelope.attributes, tolerated, problems)
    attributes = correct(_keep_json_texts(members, envelope.texts, tolerated), problems, tolerated)
    try:
        content_type = attributes.get("datacontenttype")
        payload, kind = _read_data(envelope.data, envelope.encoded, content_type, tolerated)
    except InvalidEvent as error:
        raise InvalidEvent([*problems, *error.problems]) from None
    return make_event(attributes, payload, kind, problems)


def _lower_case_names(
    members: dict[str, Any], tolerated: list[Problem], problems: list[Problem]
) -> dict[str, Any]:
    """Return members with their names in lower case if that makes these valid and unique."""
    named: dict[str, Any] = {}
    for name, value in members.items():
        lower = _lower(name)
        if is_name(name) or not is_name(lower) or lower in members:
            named[name] = value
        elif lower in named and not _is_same_scalar(named[lower], value):
            problems.append(Problem(name, f"is one of several members for {lower} that differ", "N-01"))
        else:
            tolerated.append(Problem(name, f"was read as {lower}", "N-01"))
            named[lower] = value
    return named


def _lower(name: str) -> str:
    """Return an ASCII name in lower case; other names have no attribute name."""
    return name.lower() if name.isascii() else ""


def _is_same_scalar(one: Any, other: Any) -> bool:
    """Return whether two scalars are equal; a nested value may be too deep to compare."""
    return type(one) is type(other) and not isinstance(one, dict | list) and bool(one == other)


def _keep_json_texts(
    members: dict[str, Any], texts: Mapping[str, msgspec.Raw], tolerated: list[Problem]
) -> dict[str, Any]:
    """Return members with the objects and lists of extensions as JSON text, without white space."""
    kept = dict(members)
    for name, value in members.items():
        if isinstance(value, dict | list) and is_name(name) and name not in CORE:
            text = (
                texts[name] if name in texts else next(texts[each] for each in texts if _lower(each) == name)
            )
            kept[name] = msgspec.json.format(bytes(text), indent=-1).decode()
            tolerated.append(Problem(name, "is an object or a list: kept as its JSON text", "J-03"))
    return kept


def _read_data(
    data: bytes | None, encoded: bytes | None, content_type: AttributeValue | None, tolerated: list[Problem]
) -> tuple[bytes | None, DataKind]:
    try:
        return read_data(data, encoded, content_type)
    except InvalidEvent as error:
        if data is None or encoded is not None or data.startswith(b'"'):
            raise
        tolerated += error.problems
        return (None, DataKind.BYTES) if data == b"null" else (data, DataKind.JSON)


def correct(
    texts: dict[str, Any], problems: list[Problem], tolerated: list[Problem]
) -> dict[str, AttributeValue]:
    """Return attributes with corrected values; report each deviation as tolerated or as a problem."""
    unread = [attribute_of(str(problem.attribute)) for problem in problems]
    attributes, found = validate(texts, problems, unread)
    for problem in found[len(problems) :]:
        count = len(attributes)
        if _tolerate(problem, attributes):
            tolerated.append(problem if len(attributes) == count else left_out(problem))
        else:
            problems.append(problem)
    return attributes


def make_event(
    attributes: dict[str, AttributeValue], payload: bytes | None, kind: DataKind, problems: list[Problem]
) -> Event:
    if problems:
        raise InvalidEvent(problems)
    return unchecked_event(attributes, payload, kind)


def _tolerate(problem: Problem, attributes: dict[str, Any]) -> bool:
    """Correct, remove or keep the attribute of a problem; return whether it is tolerated."""
    name = problem.attribute
    value = attributes.get(name) if name is not None else None
    if name is None or value is None:  # an extension requires another attribute
        return name not in REQUIRED and problem.clause.startswith(_EXTENSION_CLAUSES)
    if not is_name(name) or (value == "" and name not in REQUIRED):
        del attributes[name]
        return True
    if isinstance(value, str) and (corrected := _corrected(name, value)) is not None:
        attributes[name] = corrected
        return True
    return _keep(problem, name, value, attributes)


def _corrected(name: str, text: str) -> AttributeValue | None:
    """Return the value of a text in quotes, of a time with a space, or of True for true; else None."""
    plain = text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text
    if type_of(name) is AttributeType.TIMESTAMP and plain[10:11] == " ":
        plain = f"{plain[:10]}T{plain[11:]}"
    elif type_of(name) is AttributeType.BOOLEAN:
        plain = plain.lower()
    alone, problems = validate({name: plain})
    return None if any(problem.attribute == name for problem in problems) else alone[name]


def _keep(problem: Problem, name: str, value: Any, attributes: dict[str, Any]) -> bool:
    """Keep a value that is a String, or a scalar that has a canonical text; return whether it is."""
    if isinstance(value, str):
        return is_string(value) and (name not in CORE or problem.clause in _KEPT_CLAUSES)
    if name in CORE or not isinstance(value, bool | int | bytes):
        return False
    if isinstance(value, int) and value not in INTEGER_RANGE:
        return False
    if not problem.clause.startswith(_EXTENSION_CLAUSES):  # the value has another type
        attributes[name] = canonical_text(value)
    return True


def left_out(problem: Problem) -> Problem:
    return msgspec.structs.replace(problem, rule=f"{problem.rule}: left out")
