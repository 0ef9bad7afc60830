"""Lenient reading: accept and report the deviations of known producers.

Each accepted deviation is a `Problem` in the list that is returned with the event. Nothing is
invented: a missing attribute stays absent, and ambiguous records are refused here too. This module
reads headers; `_lenient_values` reads values and corrects attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.extension_types import find_extension, parse_values
from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, media_type
from cloudevents_kafka.attributes.types import AttributeValue
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.binding._headers import CONTENT_TYPE, name_in
from cloudevents_kafka.binding._lenient_headers import (
    NormalizedHeaders,
    content_type_problems,
    normalize_headers,
)
from cloudevents_kafka.binding._lenient_values import (
    Outcome,
    complete_envelope,
    correct,
    left_out,
    make_event,
    read_format,
    read_json,
)
from cloudevents_kafka.binding._sniffer import Verdict, decode_error, sniff
from cloudevents_kafka.binding._structured import check_charset
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent, Problem, preview
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.record import Record


def read_lenient(record: Record, verdict: Verdict, outcome: Outcome) -> tuple[Event, tuple[Problem, ...]]:
    """Return the event of a record, and the problems that were accepted.

    ``verdict`` and ``outcome`` are the results of strict reading, so that headers are not sniffed
    and values not parsed again. Raises `InvalidEvent` or a `DecodeError`.
    """
    headers = normalize_headers(record.headers)
    if isinstance(outcome, Event):
        return _add_headers(outcome, record, verdict, headers)
    was_structured = verdict.mode == "structured"
    if headers.tolerated or headers.ambiguous:
        verdict = sniff(headers.values.items())
    if verdict.mode == "binary":
        return _read_binary(record, headers)
    return _read_structured(record, verdict, headers, outcome if was_structured else None)


# --- headers -------------------------------------------------------------------


def _add_headers(
    event: Event, record: Record, verdict: Verdict, headers: NormalizedHeaders
) -> tuple[Event, tuple[Problem, ...]]:
    """Return a valid event with the attributes of headers with nearly exact names.

    Its mode, attributes and data stay; headers that would break a rule are left out.
    """
    tolerated = headers.tolerated
    if headers.ambiguous:
        names = {problem.attribute for problem in headers.ambiguous}
        tolerated = [left_out(problem) for problem in headers.ambiguous]
        headers = normalize_headers([pair for pair in record.headers if pair[0] not in names])
        tolerated += headers.tolerated
    if not tolerated:
        return event, ()
    if verdict.mode == "structured":
        return event, tuple(content_type_problems(tolerated))
    attributes, _ = raw_parts(event)
    unreadable: list[Problem] = []
    missing = {name: text for name, text in headers.values.items() if name_in(name) not in attributes}
    texts = _decode_texts(missing, unreadable)
    tolerated += map(left_out, unreadable)
    if more := _select_valid(attributes, texts, tolerated):
        event = unchecked_event(parse_values({**attributes, **more}), event.payload, event.kind)
    return event, tuple(tolerated)


def _select_valid(
    attributes: dict[str, AttributeValue], more: dict[str, Any], tolerated: list[Problem]
) -> dict[str, Any]:
    """Return those of more attributes that leave an event valid; report the others."""
    _, found = validate({**attributes, **more})
    broken = {problem.attribute: problem for problem in found}
    if not (more and broken):
        return more
    faults = {name: broken[each] for name in more for each in (name, *_needs(name)) if each in broken}
    faults = faults or dict.fromkeys(more, next(iter(broken.values())))
    for name, problem in faults.items():
        rule = problem.rule if problem.attribute == name else f"{problem.attribute} {problem.rule}"
        tolerated.append(left_out(Problem(name, rule, problem.clause, problem.value)))
    return _select_valid(attributes, {name: more[name] for name in more if name not in faults}, tolerated)


def _needs(name: str) -> Sequence[str]:
    extension = find_extension(name)
    return () if extension is None else extension.needs


def _decode_texts(headers: dict[str, bytes], problems: list[Problem]) -> dict[str, Any]:
    """Return the texts of headers by attribute; report those that are not UTF-8."""
    texts: dict[str, Any] = {}
    for header, content in headers.items():
        try:
            texts[name_in(header)] = content.decode()
        except UnicodeDecodeError:
            problems.append(Problem(header, "header value must be UTF-8", "K-06", preview(content)))
    return texts


# --- modes ---------------------------------------------------------------------


def _read_binary(record: Record, headers: NormalizedHeaders) -> tuple[Event, tuple[Problem, ...]]:
    tolerated, problems = headers.tolerated, headers.ambiguous
    attributes = correct(_decode_texts(headers.values, problems), problems, tolerated)
    return make_event(attributes, record.value, DataKind.BYTES, problems), tuple(tolerated)


def _read_structured(
    record: Record, verdict: Verdict, headers: NormalizedHeaders, outcome: Outcome | None
) -> tuple[Event, tuple[Problem, ...]]:
    """Read a structured record, or one whose value is a complete event in JSON.

    ``outcome`` is the result of strict reading if it has read the value in its format.
    """
    tolerated = content_type_problems(headers.tolerated)
    envelope = complete_envelope(record.value) if verdict.mode == "not-an-event" else None
    if verdict.mode == "batch" or (verdict.mode == "not-an-event" and envelope is None):
        raise decode_error(verdict, record)
    _check_content_type(headers.values.get(CONTENT_TYPE, b""), content_type_problems(headers.ambiguous))
    event: Event | None = None
    if verdict.mode == "structured":
        event = read_format(record.value, media_type(str(verdict.media_type)), outcome, tolerated)
    elif _is_read_as_json(verdict.media_type, tolerated):
        event = read_json(record.value, envelope, tolerated, verdict.media_type)
    if event is None:
        raise decode_error(verdict, record)
    return event, tuple(tolerated)


def _check_content_type(content_type: bytes, problems: list[Problem]) -> None:
    """Raise `InvalidEvent` for a content-type that is ambiguous, not UTF-8, or has another charset."""
    texts = _decode_texts({CONTENT_TYPE: content_type}, problems)
    if problems:
        raise InvalidEvent(problems)
    media = media_type(texts["datacontenttype"])
    if media.essence == CLOUDEVENTS or media.format in formats.names():
        check_charset(media)


def _is_read_as_json(content_type: str | None, tolerated: list[Problem]) -> bool:
    """Return whether a record is read as JSON although its content-type does not name a format here."""
    media = media_type(content_type or "")
    if media.cloudevents and media.essence != CLOUDEVENTS:
        return False
    rule, clause = "does not name an event format: the value was read as a JSON event", "K-15"
    if content_type is None:
        rule, clause = "header is missing: the value was read as a JSON event", "K-09"
    elif media.essence == CLOUDEVENTS:
        rule, clause = "does not name an event format: the value was read as JSON", "K-10"
    seen = None if content_type is None else preview(content_type)
    tolerated.append(Problem(CONTENT_TYPE, rule, clause, seen))
    return True
