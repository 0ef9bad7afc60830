"""Lenient reading: accept and report the deviations of known producers.

Each accepted deviation is a `Problem` in the list that is returned with the event. Nothing is
invented: a missing attribute stays absent, and ambiguous records are refused here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, MediaType, media_type
from cloudevents_kafka.attributes.types import REQUIRED
from cloudevents_kafka.binding._corrections import correct, corrections, make_event
from cloudevents_kafka.binding._headers import CONTENT_TYPE, PREFIX, decode_text
from cloudevents_kafka.binding._lenient_headers import (
    Report,
    add_headers,
    decode_texts,
    normalize_headers,
    read_nearly_exact,
)
from cloudevents_kafka.binding._lenient_json import (
    NO_CONTENT_TYPE,
    Found,
    complete_envelope,
    correct_envelope,
    find_json,
    read_json,
    read_marked_json,
    read_marked_value,
    read_unmarked_json,
    unmarked,
)
from cloudevents_kafka.binding._lenient_names import lower_case_names
from cloudevents_kafka.binding._sniffer import Mode, Verdict, decode_error, sniff
from cloudevents_kafka.binding._structured import charset_problem, decode_structured
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent, Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats import InvalidAttributes
from cloudevents_kafka.formats.json_decoder import InvalidEnvelope
from cloudevents_kafka.formats.json_reader import NAME
from cloudevents_kafka.record import Headers, Record

_REQUIRED: Final = frozenset(REQUIRED)
_REQUIRED_HEADERS: Final = frozenset(PREFIX + name for name in REQUIRED)


def lenient_mode(headers: Headers) -> Mode:
    """Return the content mode in which lenient reading reads the event of a record with these headers."""
    mode = sniff(headers).mode
    if mode == "not-an-event":
        exact, _ = normalize_headers(headers)
        mode = sniff(exact).mode
    return "binary" if mode == "binary" else "structured"


Outcome = Event | InvalidEvent
"""The result of strict reading: an event or the error of its value."""


def read_texts(value: bytes | None, texts: dict[str, Any], media: MediaType | None) -> Found | None:
    """Return the event of a record and the accepted problems, or None if `read_lenient` decides.

    ``texts`` are its headers, whose names are exact, and ``media`` is their content-type. They
    are not those of a valid event in binary mode. With fewer than an event needs, JSON in the value
    has been tried. Raises `InvalidEvent` if lenient reading refuses them.
    """
    if media is not None and media.cloudevents:
        return None
    if texts.keys() >= _REQUIRED:
        report = Report()
        attributes = correct(texts, report, expected=corrections.values)
        corrections.values = bool(report.tolerated)
        return make_event(attributes, value, DataKind.BYTES, report), tuple(report.tolerated)
    return None if len(texts) < len(_REQUIRED) else read_unmarked_json(value, texts.get("datacontenttype"))


def read_misspelled(record: Record) -> Found | None:
    """Return the event of headers with nearly exact names, and the accepted problems.

    Return None if something else may be wrong: `read_lenient` decides.
    """
    found = read_nearly_exact(record.headers)
    if found is None:
        return None
    attributes, problems = found
    content_type = attributes.get("datacontenttype")
    if content_type is not None and media_type(content_type).cloudevents:
        return None
    if len(attributes) < len(_REQUIRED) or not accept(attributes, "".join(attributes.values())):
        return None
    corrections.names = bool(problems)
    return unchecked_event(attributes, record.value), tuple(problems)


def read_lenient(record: Record, read_valid: Callable[[Record], Event | None]) -> Found:
    """Return the event of a record and the accepted problems; raise errors as strict reading does.

    ``read_valid`` returns the event if strict reading accepts the record.
    """
    headers, report = normalize_headers(record.headers)
    corrections.names = not report.exact or bool(report.tolerated)
    content_type = headers.get(CONTENT_TYPE)
    media = None if content_type is None else media_type(content_type.decode("utf-8", "replace"))
    is_marked = media is not None and media.cloudevents
    if not is_marked and headers.keys() >= _REQUIRED_HEADERS:
        return _read_binary(record, headers, report, read_valid)
    if report.refused and report.may_be_valid and sniff(record.headers).mode == "binary":
        event = read_valid(record)
        if event is not None:  # only ambiguous headers name an event format
            return add_headers(event, record, headers, report), tuple(report.tolerated)
    names = headers.items() if report.tolerated or report.refused else record.headers
    report = report.of_content_type()  # the other headers do not affect the event
    if not report.refused:
        found = _read_json_quickly(record.value, content_type, tuple(report.tolerated))
        if found is not None:
            return found
    is_strict = is_marked and not (media is not None and media.format == NAME and find_json())
    outcome = _read_strict(record, read_valid) if is_strict else None
    event = _read_structured(record, sniff(names), content_type or b"", report, outcome)
    return event, tuple(report.tolerated)


def _read_strict(record: Record, read_valid: Callable[[Record], Event | None]) -> Outcome | None:
    """Return the event in a value, the error of its format, or None if other problems prevent reading it."""
    try:
        return read_valid(record)
    except InvalidEvent as error:
        return error


def _read_binary(
    record: Record, headers: dict[str, bytes], report: Report, read_valid: Callable[[Record], Event | None]
) -> Found:
    """Return the event of headers that have all required names after correction."""
    if report.may_be_valid and (event := read_valid(record)) is not None:
        return add_headers(event, record, headers, report), tuple(report.tolerated)
    attributes: dict[str, Any] = decode_texts(headers, report.refused)
    if report.refused or not accept(attributes):
        attributes = correct(attributes, report)
    return make_event(attributes, record.value, DataKind.BYTES, report), tuple(report.tolerated)


def _read_json_quickly(
    value: bytes | None, content_type: bytes | None, tolerated: tuple[Problem, ...]
) -> Found | None:
    """Return the event in a value, and the accepted problems, or None if a slower reader decides."""
    if content_type is None:
        return read_unmarked_json(value, None, tolerated)
    try:
        text = content_type.decode()
    except UnicodeDecodeError:
        return None
    media = media_type(text)
    if media.cloudevents:
        return read_marked_json(value, media, tolerated)
    return read_unmarked_json(value, text, tolerated)


def _read_structured(
    record: Record, sniffed: Verdict, content_type: bytes, report: Report, outcome: Outcome | None
) -> Event:
    """Return the event of a structured record, or of one whose value is a complete event in JSON.

    ``outcome`` is the result of strict reading if it has read the value in its format.
    """
    envelope = complete_envelope(record.value) if sniffed.mode == "not-an-event" else None
    if sniffed.mode == "batch" or (sniffed.mode == "not-an-event" and envelope is None):
        raise decode_error(sniffed, record)
    _check_content_type(content_type, report)
    if sniffed.mode == "structured":
        event = _read_format(record.value, media_type(str(sniffed.media_type)), outcome, report)
        if event is not None:
            return event
    elif _is_read_as_json(sniffed.media_type, report.tolerated):
        return read_json(record.value, envelope, report, sniffed.media_type)
    raise decode_error(sniffed, record)


def _check_content_type(content_type: bytes, report: Report) -> None:
    """Raise `InvalidEvent` if the content-type is ambiguous, not UTF-8, or has another charset."""
    media = media_type(decode_text(CONTENT_TYPE, content_type, report.refused) or "")
    is_event = media.essence == CLOUDEVENTS or media.format in formats.names()
    if report.refused or (is_event and not media.utf8):
        raise InvalidEvent(report.refused or [charset_problem(media)])


def _is_read_as_json(content_type: str | None, tolerated: list[Problem]) -> bool:
    """Return whether a record is read as JSON although its content-type does not name a format here."""
    media = media_type(content_type or "")
    if media.cloudevents and media.essence != CLOUDEVENTS:
        return False
    tolerated.append(NO_CONTENT_TYPE if content_type is None else unmarked[content_type])
    return True


def _read_format(
    value: bytes | None, media: MediaType, outcome: Outcome | None, report: Report
) -> Event | None:
    """Return the event in a value in its format, also if attributes break rules; None if it is unknown."""
    if outcome is None and media.format == NAME and value is not None and find_json():
        return read_marked_value(value, report)
    if outcome is None:
        try:
            return decode_structured(value, media)
        except InvalidEvent as error:
            outcome = error
    match outcome:
        case Event():
            return outcome
        case InvalidEnvelope():
            return correct_envelope(outcome.envelope, report)
        case InvalidAttributes(event=event):
            attributes = correct(lower_case_names(raw_parts(event)[0], report), report)
            return make_event(attributes, event.payload, event.kind, report)
    raise outcome
