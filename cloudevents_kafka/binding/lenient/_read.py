"""The event of a record whose deviations are accepted: each is a `Problem` that is returned with it.

Nothing is invented: a missing attribute stays absent, and ambiguous records are refused here too.
"""

from __future__ import annotations

from typing import Any

from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, MediaType, media_type
from cloudevents_kafka.binding._headers import CONTENT_TYPE, decode_text
from cloudevents_kafka.binding._sniffer import Mode, decode_error, sniff
from cloudevents_kafka.binding._structured import charset_problem, decode_structured, json_format
from cloudevents_kafka.binding._valid import read_valid
from cloudevents_kafka.binding.lenient._headers import (
    REQUIRED_HEADERS,
    Report,
    add_headers,
    decode_texts,
    normalize_headers,
)
from cloudevents_kafka.binding.lenient._json import (
    complete_envelope,
    correct_envelope,
    lower_case_names,
    read_json,
    read_marked_json,
    without_format,
)
from cloudevents_kafka.binding.lenient._values import correct, is_right, make_event
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent, Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.base import InvalidAttributes
from cloudevents_kafka.formats.json_decoder import InvalidEnvelope
from cloudevents_kafka.formats.json_reader import NAME
from cloudevents_kafka.record import Headers, Record

Found = tuple[Event, tuple[Problem, ...]]
"""An event and the accepted problems."""


def lenient_mode(headers: Headers) -> Mode:
    """Return the content mode in which lenient reading reads the event of a record with these headers."""
    mode = sniff(headers).mode
    if mode == "not-an-event":
        exact, _ = normalize_headers(headers)
        mode = sniff(exact).mode
    return "binary" if mode == "binary" else "structured"


def read_leniently(record: Record, refused: InvalidEvent | None) -> Found:
    """Return the event of a record and the accepted problems; raise errors as strict reading does.

    ``refused`` is the error that the format raised if `read_valid` has decoded the value.
    """
    headers, report = normalize_headers(record.headers)
    content_type = headers.get(CONTENT_TYPE)
    media = None if content_type is None else media_type(content_type.decode("utf-8", "replace"))
    is_marked = media is not None and media.cloudevents
    is_binary = not is_marked and headers.keys() >= REQUIRED_HEADERS
    if report.may_be_valid and (is_binary or (report.refused and sniff(record.headers).mode == "binary")):
        event = read_valid(record, False)  # its other headers are those with nearly exact names
        if event is not None:
            return add_headers(event, record, headers, report), tuple(report.tolerated)
    if is_binary:
        return _read_binary(record, headers, report), tuple(report.tolerated)
    names: Headers = [*headers.items()] if report.tolerated or report.refused else record.headers
    report = report.of_content_type()  # the other headers do not affect the event
    if is_marked:
        event = _read_marked(record, names, content_type or b"", report, refused)
    else:
        event = _read_unmarked(record, names, content_type, report)
    return event, tuple(report.tolerated)


def _read_binary(record: Record, headers: dict[str, bytes], report: Report) -> Event:
    """Return the event of headers that have all required names."""
    texts: dict[str, Any] = decode_texts(headers, report.refused)
    attributes = texts if report.tolerated and is_right(texts, report) else correct(texts, report)
    return make_event(attributes, record.value, DataKind.BYTES, report)


def _read_unmarked(record: Record, names: Headers, content_type: bytes | None, report: Report) -> Event:
    """Return the event of a record whose value is a complete event in JSON."""
    value, form = record.value, json_format()
    problem, of_data = without_format[content_type]
    event = envelope = None
    if of_data is None and value is not None and form is not None:
        event = form.read(value)  # only its content-type may be wrong
    if event is None and (envelope := complete_envelope(value)) is None:
        raise decode_error(sniff(names), record)
    if content_type is not None:
        _check_content_type(content_type, report)
    report.tolerated.append(problem)
    if event is None:
        return read_json(value, envelope, report, of_data)
    return unchecked_event(raw_parts(event)[0], event.payload, event.kind)


def _read_marked(
    record: Record, names: Headers, content_type: bytes, report: Report, refused: InvalidEvent | None
) -> Event:
    """Return the event of a record whose content-type starts like that of CloudEvents."""
    media = media_type(content_type.decode("utf-8", "replace"))
    if media.batch:
        raise decode_error(sniff(names), record)
    _check_content_type(content_type, report)
    if media.format in formats.names():
        event = _read_format(record.value, media, report, refused)
        if event is not None:
            return event
    elif media.essence == CLOUDEVENTS:
        problem, of_data = without_format[content_type]
        report.tolerated.append(problem)
        return read_json(record.value, None, report, of_data)
    raise decode_error(sniff(names), record)


def _check_content_type(content_type: bytes, report: Report) -> None:
    """Raise `InvalidEvent` if the content-type is ambiguous, not UTF-8, or has another charset."""
    media = media_type(decode_text(CONTENT_TYPE, content_type, report.refused) or "")
    is_foreign = media.essence != CLOUDEVENTS and media.format not in formats.names()
    if report.refused or not (media.utf8 or is_foreign):
        raise InvalidEvent(report.refused or [charset_problem(media)])


def _read_format(
    value: bytes | None, media: MediaType, report: Report, refused: InvalidEvent | None
) -> Event | None:
    """Return the event in a value in its format, also if attributes break rules; None if it is unknown."""
    if media.format == NAME and value is not None and json_format():
        return read_marked_json(value, report)
    try:
        if refused is not None:
            raise refused
        return decode_structured(value, media)
    except InvalidEnvelope as error:
        return correct_envelope(error.envelope, report)
    except InvalidAttributes as error:
        attributes = correct(lower_case_names(raw_parts(error.event)[0], report), report)
        return make_event(attributes, error.event.payload, error.event.kind, report)
