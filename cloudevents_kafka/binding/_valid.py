"""The reader of valid records, which makes one pass over the headers and one pass over the value.

Strict and lenient reading share this reader. This module decides only whether a record is valid. For invalid
records, the steps of `_decode` find out what is wrong.
"""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.extension_checks import Check
from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.fast_validation import are_valid_texts
from cloudevents_kafka.attributes.media_type import MediaType, media_type
from cloudevents_kafka.attributes.types import REQUIRED
from cloudevents_kafka.binding._binary import read_headers
from cloudevents_kafka.binding._headers import CONTENT_TYPE, CONTENT_TYPE_COPY, exact_name
from cloudevents_kafka.binding._structured import decode_structured, json_format
from cloudevents_kafka.errors import InvalidEvent
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.formats.json_decoder import Envelope
from cloudevents_kafka.formats.json_reader import NAME
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember
from cloudevents_kafka.record import Headers, Record


class _EventTypes(dict[bytes, MediaType | None]):
    """A cache that maps content-type headers to media types.

    The cache maps a content-type that is not a CloudEvents media type to None.
    """

    def __missing__(self, value: bytes) -> MediaType | None:
        media = _structured_type([(CONTENT_TYPE, value)])
        return remember(self, value, media) if len(value) <= MAX_KEY_LENGTH else media


Unread = dict[str, Any] | Envelope | InvalidEvent | None
"""What could be read of an invalid record: attributes in headers, JSON members, or a format's error."""
_event_types: Final = _EventTypes()


def read_valid(record: Record, lenient: bool) -> Event | Unread:  # noqa: FBT001  # a call by position is faster
    """Return the event of a valid record, or the readable parts of an invalid record.

    With ``lenient``, a header whose name nearly matches a header name of binary mode also makes a record
    invalid. Strict reading ignores a header with a nearly matching name, but lenient reading treats the
    header as an attribute. Each value is decoded at most once.
    """
    headers = record.headers
    match headers:  # faster than len()
        case [header]:  # most records in structured mode have one header
            name, text = header
            if name == CONTENT_TYPE and type(text) is bytes and (media := _event_types[text]) is not None:
                return _read_structured(record.value, media)
    found = read_headers(headers, current.table, lenient)
    if found is None:
        media = _structured_type(headers)  # other headers do not affect a structured event (K-17)
        if media is None or (lenient and _has_other_content_type(headers)):
            return None
        return _read_structured(record.value, media)
    attributes, checks = found
    valid_type = False
    if "datacontenttype" in attributes:
        media = media_type(attributes["datacontenttype"])
        if media.cloudevents:  # K-09: "prefixed with the CloudEvents media type"
            return _read_structured(record.value, media)
        valid_type = media.valid
    if (
        "source" in attributes  # else the record is not in binary mode
        and are_valid_texts(attributes, "".join(attributes.values()), False, valid_type)
        and (checks is None or _keep_rules(attributes, checks))
    ):
        return unchecked_event(attributes, record.value)
    return attributes if attributes.keys() >= set(REQUIRED) else None


def _read_structured(value: bytes | None, media: MediaType) -> Event | Unread:
    """Return the result of `read_valid` for a value with this media type."""
    if type(value) is not bytes or not media.utf8:
        return None
    form = json_format() if media.format == NAME else None
    if form is not None:
        return form.read(value)
    try:
        return decode_structured(value, media)
    except InvalidEvent as error:
        return error


def _keep_rules(attributes: dict[str, Any], checks: list[Check]) -> bool:
    """Return whether attributes pass all checks; replace texts by values if an attribute's type is known."""
    for check in checks:  # noqa: SIM110  # a generator would take longer
        if not check(attributes):
            return False
    return True


def _has_other_content_type(headers: Headers) -> bool:
    """Return whether a header is nearly named content-type, or ce_datacontenttype occurs more than once."""
    names = [name for name, _ in headers]
    return names.count(CONTENT_TYPE_COPY) > 1 or any(
        name != CONTENT_TYPE and exact_name(name) == CONTENT_TYPE for name in names
    )


def _structured_type(headers: Headers) -> MediaType | None:
    """Return the media type in the content-type header if it is a CloudEvents media type, else None.

    None is also returned if there are several content-type headers.
    """
    values = [value for name, value in headers if name == CONTENT_TYPE and value is not None]
    try:
        media = media_type(values[0].decode()) if len(values) == 1 else None
    except (AttributeError, UnicodeDecodeError):  # the value is not bytes, or not UTF-8
        return None
    return media if media is not None and media.cloudevents else None
