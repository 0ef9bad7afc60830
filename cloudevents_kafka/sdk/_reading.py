"""The event of an SDK's message, and its attributes and data as the SDK has them.

A message is read strictly. What the SDK reads as well, and what is not ambiguous, is accepted too: names of
headers in other letters, a copy of the content type in a ``ce_`` header, and, unless the caller wants
binary mode, a JSON event whose content type does not say so or whose data is not of its type.
"""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import structs

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import canonical_text, is_string
from cloudevents_kafka.binding import Undecodable, decode
from cloudevents_kafka.codecs.json import decode_json
from cloudevents_kafka.codecs.payload import DataKind, decode_text, implies_json, to_utf8
from cloudevents_kafka.errors import BrokenData, BrokenEvent, DataError, NotAnEvent, Problem
from cloudevents_kafka.event import Event, raw_parts
from cloudevents_kafka.record import Record

OLD: Final = "0.3"
_CONTENT_TYPE: Final = "content-type"
_HEADERS: Final = frozenset({"K-04", "K-05"})
_STRUCTURED: Final = _HEADERS | {"K-09", "K-10", "K-15", "J-16"}


def read_binary(record: Record) -> Event | None:
    """Return the event of a record in binary mode, or None if its specversion is 0.3.

    Raises a `DecodeError` for any other record.
    """
    if _names_format(record):
        rule = "must not name an event format in binary mode; read the record with from_kafka"
        raise BrokenEvent([Problem(_CONTENT_TYPE, rule, "K-09")], record)
    return _read(record, record, _HEADERS)


def read_structured(record: Record) -> Event | None:
    """Return the event in the value of a record, or None if its specversion is 0.3.

    Raises a `DecodeError` for any other record.
    """
    if _names_format(record):
        return _read(record, record, _STRUCTURED)
    headers = [(name, value) for name, value in record.headers if name.lower() == _CONTENT_TYPE]
    try:
        return _read(structs.replace(record, headers=headers), record, _STRUCTURED)
    except NotAnEvent:
        reason = "the content-type does not name an event format, and the value is not a JSON event"
        raise NotAnEvent(f"not a CloudEvent: {reason} (K-11, Kafka binding 3)", record) from None


def is_binary(record: Record) -> bool:
    """Return whether a record is in binary mode: it has ce_ headers, and its content-type names no format."""
    return not _names_format(record) and any(name.lower().startswith("ce_") for name, _ in record.headers)


def _read(record: Record, original: Record, accepted: frozenset[str]) -> Event | None:
    """Return the event of a record whose deviations, if there are any, have these clauses."""
    found = decode(record)
    if isinstance(found, Undecodable):
        again = decode(record, lenient=True)
        if isinstance(again, Undecodable) or not accepted.issuperset(one.clause for one in again.tolerated):
            if _is_old(original):
                return None
            raise found.error
        found = again
    return found.event


def data_type_of(record: Record) -> str | None:
    """Return the content type of a record unless it names an event format, as version 1 writes it."""
    if _names_format(record):
        return None
    values = [value for name, value in record.headers if name.lower() == _CONTENT_TYPE and value]
    return values[-1].decode("utf-8", "replace") if values else None


def _names_format(record: Record) -> bool:
    """Return whether the content-type names an event format, so the record is in structured mode (K-09)."""
    return any(
        name.lower() == _CONTENT_TYPE
        and value is not None
        and media_type(value.decode("utf-8", "replace")).cloudevents
        for name, value in record.headers
    )


def _is_old(record: Record) -> bool:
    """Return whether a record has an event of specversion 0.3, which is left to the SDK."""
    if not _names_format(record):
        for name, value in record.headers:
            if name.lower() == "ce_specversion":
                return value == OLD.encode()
    if record.value is None or OLD.encode() not in record.value:
        return False
    try:
        envelope = json.loads(record.value)
    except (ValueError, RecursionError):
        return False
    return isinstance(envelope, dict) and envelope.get("specversion") == OLD


def texts_of(event: Event) -> dict[str, Any]:
    """Return the attributes of an event as texts, as the SDK reads headers."""
    return {name: canonical_text(value) for name, value in raw_parts(event)[0].items()}


def members_of(event: Event) -> dict[str, Any]:
    """Return the attributes of an event as the values that JSON has."""
    attributes = raw_parts(event)[0]
    return {name: canonical_text(one) if type(one) is bytes else one for name, one in attributes.items()}


def add_key(attributes: dict[str, Any], key: str | bytes | None) -> None:
    """Add a message's key as ``partitionkey``, unless the event has one: a text, or bytes that are none."""
    if key and "partitionkey" not in attributes:
        attributes["partitionkey"] = key_text(key) or key


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
    """Return a payload as a text in the charset of its content type, or itself if it is none."""
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
