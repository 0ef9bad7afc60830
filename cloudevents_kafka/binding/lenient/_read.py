"""Read the event in a record in spite of known deviations; return each deviation as a `Problem`.

No value is invented: a missing attribute stays absent. Like strict reading, lenient reading refuses ambiguous
records.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, MediaType, media_type
from cloudevents_kafka.attributes.types import SPECVERSION, AttributeValue
from cloudevents_kafka.binding._headers import CONTENT_TYPE, decode_text
from cloudevents_kafka.binding._sniffer import ContentMode, decode_error, sniff
from cloudevents_kafka.binding._structured import (
    charset_problem,
    decode_structured,
    json_format,
    repeated_type,
)
from cloudevents_kafka.binding._valid import Unread, read_valid
from cloudevents_kafka.binding.lenient._headers import (
    REQUIRED_HEADERS,
    add_headers,
    decode_texts,
    normalize_headers,
)
from cloudevents_kafka.binding.lenient._json import (
    complete_envelope,
    correct_envelope,
    correct_named,
    find_problems,
    read_json,
    rename,
    without_format,
)
from cloudevents_kafka.binding.lenient._values import correct, is_right, make_event
from cloudevents_kafka.binding.lenient.rules import Leniency, leave_out
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent, Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.base import BaseFormat, InvalidAttributes
from cloudevents_kafka.formats.json_decoder import Envelope, InvalidEnvelope
from cloudevents_kafka.formats.json_reader import NAME
from cloudevents_kafka.problems import DataError
from cloudevents_kafka.record import Headers, Record

_DATA_TYPE: Final = "datacontenttype"
_BEFORE_TYPES: Final = frozenset(('"', " ", "\t"))  # a content type in quotation marks, or after a blank
Found = tuple[Event, tuple[Problem, ...]]
"""An event and the problems that lenient reading accepted."""


def lenient_mode(headers: Headers) -> ContentMode:
    """Return the content mode in which lenient reading reads the event of a record with these headers."""
    values, _ = normalize_headers(headers)
    is_binary = marked_type(values) is None and values.keys() >= REQUIRED_HEADERS
    return "binary" if is_binary else "structured"


def lenient_format(headers: Headers) -> str | None:
    """Return the name of the event format in which lenient reading reads a record, or None in binary mode."""
    values, _ = normalize_headers(headers)
    media = marked_type(values)
    if media is None and values.keys() >= REQUIRED_HEADERS:
        return None
    return NAME if media is None or media.format is None else media.format


def type_of_data(headers: Headers) -> str | None:
    """Return the content-type if lenient reading reads it as the type of a JSON event's data, or None."""
    values, _ = normalize_headers(headers)
    return without_format[values.get(CONTENT_TYPE)][1]


def marked_type(headers: dict[str, bytes]) -> MediaType | None:
    """Return the media type in normalized headers if it is a CloudEvents media type, otherwise None."""
    content_type = headers.get(CONTENT_TYPE)
    media = None if content_type is None else media_type(content_type.decode("utf-8", "replace"))
    return media if media is not None and media.cloudevents else None


def read_leniently(record: Record, unread: Unread) -> Found:
    """Return the event in a record, and the accepted problems; raise the same errors as strict reading."""
    if unread is not None and not isinstance(unread, InvalidEvent) and not _may_be_quoted(unread):
        return _correct_known(record.value, unread)
    headers, report = normalize_headers(record.headers)
    content_type = headers[CONTENT_TYPE] if CONTENT_TYPE in headers else None  # noqa: SIM401  # without a call
    media = None if content_type is None else media_type(content_type.decode("utf-8", "replace"))
    marked = media if media is not None and media.cloudevents else None
    if marked is None and headers.keys() >= REQUIRED_HEADERS:
        return _read_binary(record, headers, report), tuple(report.tolerated)
    names: Headers = [*headers.items()] if report.tolerated or report.refused else record.headers
    report = report.of_content_type()  # the other headers do not affect the event
    if marked is None:
        event = _read_unmarked(record, names, content_type, report)
    else:
        refused = unread if isinstance(unread, InvalidEvent) else None
        try:
            event = _read_marked(record, names, content_type or b"", report, refused)
        except InvalidEvent as error:
            types = [value for name, value in record.headers if name == CONTENT_TYPE and value is not None]
            if (repeated := repeated_type(types)) is None:
                raise
            raise InvalidEvent([repeated, *error.problems]) from error.__cause__
    return event, tuple(report.tolerated)


def _may_be_quoted(unread: dict[str, Any] | Envelope) -> bool:
    """Return whether a header value in quotation marks shows that all header values may be quoted."""
    if type(unread) is not dict or unread["specversion"] != SPECVERSION:
        return type(unread) is dict and unread["specversion"][:1] == '"'
    return "datacontenttype" in unread and unread["datacontenttype"][:1] in _BEFORE_TYPES


def _correct_known(value: bytes | None, known: dict[str, Any] | Envelope) -> Found:
    """Return the event of a record whose header names are exact, but whose attributes break rules."""
    report = Leniency()
    if isinstance(known, Envelope):
        return correct_envelope(known, report), tuple(report.tolerated)
    return make_event(correct(known, report), value, DataKind.BYTES, report), tuple(report.tolerated)


def _read_binary(record: Record, headers: dict[str, bytes], report: Leniency) -> Event:
    """Return the event in headers that include all required headers of binary mode."""
    count = len(report.tolerated)
    texts: dict[str, Any] = decode_texts(headers, report)
    unreadable = report.tolerated[count:]
    if unreadable or report.is_repeated or not (report.may_be_valid and is_right(texts, report)):
        event = read_valid(record, False) if report.may_be_valid else None
        if isinstance(event, Event):  # the record's other headers have nearly exact names
            del report.tolerated[count:]
            return add_headers(event, headers, report)
        texts = correct(texts, report)
    return make_event(texts, record.value, DataKind.BYTES, report)


def _read_unmarked(record: Record, names: Headers, content_type: bytes | None, report: Leniency) -> Event:
    """Return the event of a record whose value is a complete event in JSON."""
    value, form = record.value, json_format()
    problem, of_data = without_format[content_type]
    found: Event | Envelope | None = None
    if value is not None and form is not None:  # maybe only its content-type is wrong
        found = form.read(value) if of_data is None else form.members(value)
    if not isinstance(found, Event):
        found = complete_envelope(value, found)
    if found is None:
        raise decode_error(sniff(names), record, lenient=True, problems=find_problems(value))
    if content_type is not None:
        _check_content_type(content_type, report)
    report.tolerated.append(problem)
    if not isinstance(found, Event):
        return read_json(value, found, report, of_data)
    return unchecked_event(raw_parts(found)[0], found.payload, found.kind)


def _read_marked(
    record: Record, names: Headers, content_type: bytes, report: Leniency, refused: InvalidEvent | None
) -> Event:
    """Return the event of a record whose content-type starts like a CloudEvents media type."""
    media = media_type(content_type.decode("utf-8", "replace"))
    if media.batch:
        raise decode_error(sniff(names), record, lenient=True)
    _check_content_type(content_type, report)
    if media.format in formats.names():
        event = _read_format(record.value, media, report, refused)
        if event is not None:
            return event
    elif media.essence == CLOUDEVENTS:
        problem, of_data = without_format[content_type]
        report.tolerated.append(problem)
        return read_json(record.value, None, report, of_data)
    raise decode_error(sniff(names), record, lenient=True)


def _check_content_type(content_type: bytes, report: Leniency) -> None:
    """Raise `InvalidEvent` if the content-type is ambiguous, is not UTF-8, or has a wrong charset."""
    media = media_type(decode_text(CONTENT_TYPE, content_type, report.refused) or "")
    is_foreign = media.essence != CLOUDEVENTS and media.format not in formats.names()
    if report.refused or not (media.utf8 or is_foreign):
        raise InvalidEvent(report.refused or [charset_problem(media)])


def _read_format(
    value: bytes | None, media: MediaType, report: Leniency, refused: InvalidEvent | None
) -> Event | None:
    """Return the event in a value, even if attributes break rules; return None if the format is unknown."""
    if media.format == NAME and value is not None and json_format():
        count = len(report.tolerated)
        event = read_json(value, None, report)
        wire = None if len(report.tolerated) > count else (NAME, value)
        return unchecked_event(raw_parts(event)[0], event.payload, event.kind, wire)
    try:
        if refused is not None:
            raise refused
        return decode_structured(value, media)
    except InvalidEnvelope as error:
        return correct_envelope(error.envelope, report)
    except InvalidAttributes as error:
        for problem in error.form_problems:
            is_lost = error.received[str(problem.attribute)] is None
            report.tolerated.append(leave_out(problem, None) if is_lost else problem)
        given = {name: value for name, value in error.received.items() if value is not None}
        attributes = raw_parts(error.event)[0] | given
        attributes = correct_named(*rename(attributes, report), report)
        return make_event(attributes, *_data_of(value, media, error, attributes), report)


def _data_of(
    value: bytes | None, media: MediaType, error: InvalidAttributes, attributes: Mapping[str, AttributeValue]
) -> tuple[bytes | None, DataKind]:
    """Return the data in a value, read with the content type of the corrected attributes.

    If the content type is left out, its parameters, such as the charset, are left out, too.
    """
    came = {**raw_parts(error.event)[0], **error.received}.get(_DATA_TYPE)
    content_type = attributes.get(_DATA_TYPE, came.partition(";")[0] if isinstance(came, str) else None)
    form = formats.find(media.format)
    if content_type != came and isinstance(form, BaseFormat):
        text = content_type if isinstance(content_type, str) else None
        with suppress(DataError):  # the data stays as it was read
            found = form.read_data(value or b"", text)
            if found is not None:
                return found
    return error.event.payload, error.event.kind
