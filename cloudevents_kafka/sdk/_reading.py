"""The event of an SDK's message, and its attributes and data as the SDK has them.

A message is read strictly, but for deviations that both versions of the SDK read: names of headers in other
letters, a copy of the content type in a ``ce_`` header, and, unless the caller wants binary mode, a JSON
event whose content type does not say so or whose data is not of its type.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import canonical_text, is_string
from cloudevents_kafka.binding import Decoded, Undecodable, decode
from cloudevents_kafka.codecs.json import decode_json
from cloudevents_kafka.codecs.payload import DataKind, decode_text, implies_json, to_utf8
from cloudevents_kafka.errors import BrokenData, BrokenEvent, DataError, LeftOut, NotAnEvent, Problem
from cloudevents_kafka.event import Event, raw_parts
from cloudevents_kafka.record import Record

OLD: Final = "0.3"
JSON_EVENT: Final = b"application/cloudevents+json"
_CONTENT_TYPE: Final = "content-type"
_HEADERS: Final = frozenset({"K-04", "K-05"})
_STRUCTURED: Final = _HEADERS | {"K-09", "K-10", "K-15", "J-16"}


def record_of(message: Any) -> Record:
    """Return a message of the SDK as a record."""
    if type(message.headers) is dict:
        return Record(key=message.key, value=message.value, headers=[*message.headers.items()])
    return Record.of(message)


def read(
    record: Record, *, is_binary: bool | None = None, folds_names: bool = False
) -> tuple[Event | None, bool]:
    """Return the event of a record in this mode, or in either, and whether it is in binary mode.

    The event is None if its specversion is 0.3. With ``folds_names`` the names of JSON members may have
    capital letters. Raises a `DecodeError` for any other record.
    """
    structured = _STRUCTURED | {"N-01"} if folds_names else _STRUCTURED
    found = decode(record, lenient=True)
    if not isinstance(found, Undecodable):
        is_headers = raw_parts(found.event)[1] is None and not _clauses(found) - _HEADERS
        if is_binary in {None, is_headers} and (is_headers or _clauses(found) <= structured):
            return found.event, is_headers
    if is_binary is None:
        is_binary = in_binary_mode(record)
    return (_read_binary(record) if is_binary else _read_structured(record, structured)), is_binary


def _read_binary(record: Record) -> Event | None:
    if names_format(record):
        rule = "must not name an event format in binary mode; read the record with from_kafka"
        raise BrokenEvent([Problem(_CONTENT_TYPE, rule, "K-09")], record)
    return _read(record, record, _HEADERS)


def _read_structured(record: Record, accepted: frozenset[str]) -> Event | None:
    if names_format(record):
        return _read(record, record, accepted)
    headers = [(name, value) for name, value in record.headers if name.lower() == _CONTENT_TYPE]
    try:
        return _read(structs.replace(record, headers=headers), record, accepted)
    except NotAnEvent:
        reason = "the content-type does not name an event format, and the value is not a JSON event"
        raise NotAnEvent(f"not a CloudEvent: {reason} (K-11, Kafka binding 3)", record) from None


def _read(record: Record, original: Record, accepted: frozenset[str]) -> Event | None:
    """Return the event of a record whose deviations, if there are any, have these clauses."""
    found = decode(record, lenient=True)
    if isinstance(found, Undecodable) or not _clauses(found) <= accepted:
        found = decode(record)
    if isinstance(found, Undecodable):
        if _is_old(original):
            return None
        raise found.error
    return found.event


def _clauses(found: Decoded) -> set[str]:
    """Return the clauses of accepted deviations; the rules of those that the SDK does not read alike."""
    return {one.clause if _is_alike(one) else one.rule for one in found.tolerated}


def _is_alike(problem: Problem) -> bool:
    """Return whether nothing is left out, and only the letters of a header's name are other ones."""
    is_name = problem.clause not in {"K-05", "N-01"} or str(problem.attribute).lower() in problem.rule
    return is_name and not isinstance(problem, LeftOut)


def in_binary_mode(record: Record) -> bool:
    """Return whether a record is in binary mode: it has ce_ headers, and its content-type names no format."""
    return not names_format(record) and any(name.lower().startswith("ce_") for name, _ in record.headers)


def content_type_of(record: Record) -> str:
    """Return the value of the content-type header, whose name may have capital letters; "" without one."""
    values = [value for name, value in record.headers if name.lower() == _CONTENT_TYPE and value]
    return values[-1].decode("utf-8", "replace") if values else ""


def names_format(record: Record) -> bool:
    """Return whether the content-type names an event format, so the record is in structured mode (K-09)."""
    return media_type(content_type_of(record)).cloudevents


def _is_old(record: Record) -> bool:
    """Return whether a record has an event of specversion 0.3, which is left to the SDK."""
    headers = {name.lower(): value for name, value in record.headers}
    if "ce_specversion" in headers and not names_format(record):
        return headers["ce_specversion"] == OLD.encode()
    found = decode(structs.replace(record, headers=[(_CONTENT_TYPE, JSON_EVENT)]))
    problems = found.error.problems if isinstance(found, Undecodable) else ()
    return any((one.attribute, one.value) == ("specversion", repr(OLD)) for one in problems)


def texts_of(event: Event) -> dict[str, Any]:
    """Return the attributes of an event as texts, as the SDK reads headers."""
    return {
        name: one if type(one) is str else canonical_text(one) for name, one in raw_parts(event)[0].items()
    }


def members_of(event: Event) -> dict[str, Any]:
    """Return the attributes of an event as the values that JSON has."""
    attributes = raw_parts(event)[0]
    return {name: canonical_text(one) if type(one) is bytes else one for name, one in attributes.items()}


def key_text(key: str | bytes) -> str | None:
    """Return a key as the text of an attribute, or None if it cannot be one."""
    try:
        text = key.decode() if isinstance(key, bytes) else key
    except UnicodeDecodeError:
        return None
    return text if text and is_string(text) else None


def binary_data(payload: bytes | None, content_type: str | None) -> Any:
    """Return the data of a value: that of JSON, else a text, else bytes; b"" if it is empty."""
    if not payload:
        return payload
    if implies_json(content_type):
        try:
            return decode_json(to_utf8(payload, content_type))
        except DataError:
            pass  # the SDK writes a text as it stands
    return text_or_bytes(payload, content_type)


def text_or_bytes(payload: bytes, content_type: str | None) -> str | bytes:
    """Return a payload as a text in the charset of its content type, or unchanged if it cannot be one."""
    try:
        return decode_text(payload, content_type)
    except DataError:
        return payload


def structured_data(event: Event, record: Record) -> Any:
    """Return the data of a structured event: a JSON value, a text, or bytes if it was base64."""
    payload, content_type = event.payload, event.datacontenttype
    if payload is None or event.kind not in (DataKind.JSON, DataKind.TEXT):
        return payload
    try:
        if event.kind is DataKind.TEXT:
            return decode_text(payload, content_type)
        return decode_json(to_utf8(payload, content_type))
    except DataError as error:
        raise BrokenData(f"broken data: {error}", record, event) from error
