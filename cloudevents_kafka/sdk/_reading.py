"""The attributes and the data of a message, as the SDK reads them.

The SDK checks at most a few attributes, so the functions `texts_in` (binary mode) and `members_in`
(structured mode) check nothing: they return the text of each attribute's header, or the value of each member.
If `texts_in` or `members_in` returns None, the module `binding` reads the message. The module `binding` knows
all event formats, and its errors say what is wrong with a message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, media_type
from cloudevents_kafka.attributes.types import REQUIRED, SPECVERSION, canonical_text, is_string, parse_binary
from cloudevents_kafka.binding import Decoded, decode, from_record
from cloudevents_kafka.codecs.json import decode_json
from cloudevents_kafka.codecs.payload import DataKind, decode_text, implies_json, to_utf8
from cloudevents_kafka.errors import BrokenData, BrokenEvent, DataError, DecodeError, NotAnEvent, Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.record import Headers, Record, to_bytes

OLD: Final = "0.3"
JSON_EVENT: Final = b"application/cloudevents+json"
_CONTENT_TYPE: Final = "content-type"
_NOT_CE: Final = (None, "datacontenttype")
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError)
_decode_json: Final = msgspec.json.Decoder().decode


class _Names(dict[str, str | None]):
    """A cache of the attribute's name for a header's name in any case; None if there is no attribute."""

    def __missing__(self, header: str) -> str | None:
        folded = str(header).lower()
        name = "datacontenttype" if folded == _CONTENT_TYPE else folded.removeprefix("ce_")
        return remember(self, header, name if name and name != folded else None)


_names: Final = _Names()


def record_of(message: Any) -> Record:
    """Return a message of the SDK as a `Record`."""
    if type(message.headers) is dict:
        return Record(key=message.key, value=message.value, headers=[*message.headers.items()])
    return Record.of(message)


def headers_of(message: Any) -> dict[str, Any]:
    """Return the headers of a message as a dictionary; the message may have a list of pairs, or None."""
    return message.headers if type(message.headers) is dict else dict(Record.of(message).headers)


def texts_in(headers: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the texts of the attributes in headers, or None if a value is not UTF-8.

    A header whose value is null means that the attribute is absent. If several header names differ only in
    case, the header with the spelling of the Kafka binding is used.
    """
    texts: dict[str, str] = {}
    names = _names
    try:
        for header, value in headers.items():
            name = names[header]
            if name is not None:
                texts[name] = value.decode()
    except (AttributeError, UnicodeDecodeError):  # a value is null, is a text or is not UTF-8
        return _select_texts(headers)
    return texts if len(texts) == len(headers) else _select_texts(headers)


def _select_texts(headers: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the result of `texts_in` for headers of any kind; this function is slower than `texts_in`."""
    texts: dict[str, str] = {}
    exact = {header for header, value in headers.items() if value is not None and header == _exact(header)}
    for header, value in headers.items():
        name = _names[header]
        if name is None or value is None or (header not in exact and _exact(header) in exact):
            continue
        try:
            texts[name] = (to_bytes(value) or b"").decode()
        except UnicodeDecodeError:
            return None
    return texts


def _exact(header: str) -> str:
    """Return the Kafka binding's spelling of a header; for ce_datacontenttype, return content-type (K-04)."""
    name = _names[header]
    return _CONTENT_TYPE if name == "datacontenttype" else f"ce_{name}"


def members_in(value: Any) -> dict[str, Any] | None:
    """Return the members of a JSON object, without members that are null; return None for other values."""
    try:
        members = _decode_json(value)
    except _UNREADABLE:
        text = in_utf8(value) if isinstance(value, bytes) else None
        try:
            members = None if text is None else _decode_json(text)
        except _UNREADABLE:
            return None
    if type(members) is not dict:
        return None
    if None in members.values():
        members = {name: member for name, member in members.items() if member is not None}
    return members


def in_utf8(value: bytes) -> bytes | None:
    """Return JSON bytes in UTF-8 if ``value`` is in UTF-16 or UTF-32, or has a byte order mark.

    Returns None for other bytes.

    The encoding is detected as in `json.loads`, which the SDK calls.
    """
    encoding = json.detect_encoding(value)
    try:
        return None if encoding == "utf-8" else value.decode(encoding).encode()
    except UnicodeDecodeError:
        return None


def is_complete(attributes: Mapping[str, Any]) -> bool:
    """Return whether attributes include all required names, and the specversion is 1.0."""
    return (
        attributes.get("specversion") == SPECVERSION
        and "id" in attributes
        and "source" in attributes
        and "type" in attributes
    )


def split(members: dict[str, Any]) -> tuple[dict[str, Any], Any] | None:
    """Return the attributes and the data in the members of a JSON event.

    The result is None if ``data`` and ``data_base64`` both occur, or if ``data_base64`` is not base64.
    """
    data = members.pop("data", None)
    if "data_base64" not in members:
        return members, data
    text = members.pop("data_base64")
    if data is not None or not isinstance(text, str):
        return None
    try:
        return members, parse_binary(text)
    except ValueError:
        return None


def content_type_in(headers: Mapping[str, Any]) -> str | None:
    """Return the value of the content-type header, or None; the header's name may have capital letters."""
    value = headers.get(_CONTENT_TYPE)
    if value is None:
        values = [
            value for name, value in headers.items() if name.lower() == _CONTENT_TYPE and value is not None
        ]
        value = values[-1] if values else None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def in_binary_mode(headers: Mapping[str, Any], content_type: str | None) -> bool:
    """Return whether a message has ce_ headers, and no content type of an event format (binary mode)."""
    names = _names
    return not names_format(content_type) and any(names[name] not in _NOT_CE for name in headers)


def names_format(content_type: str | None) -> bool:
    """Return whether a content type names an event format; the message is then in structured mode (K-09)."""
    return content_type is not None and media_type(content_type).cloudevents


def is_for_json(content_type: str | None) -> bool:
    """Return whether to read a value as a JSON event.

    The result is false if the content type names another event format.
    """
    media = media_type(content_type or "")
    return not media.cloudevents or media.format == "json" or media.essence == CLOUDEVENTS


def read_binary(record: Record) -> Event | None:
    """Return the event that `binding` reads from a record in binary mode, or None if the specversion is 0.3.

    Raises a `DecodeError`, which contains this record, if the record is not a valid event.
    """
    headers = {_exact(name): value for name, value in record.headers if _names[name]}
    headers |= {name: value for name, value in record.headers if name in headers and value is not None}
    if names_format(_text(headers.get(_CONTENT_TYPE))):
        rule = "must not name an event format in binary mode; read the record with from_kafka"
        raise BrokenEvent([Problem(_CONTENT_TYPE, rule, "K-09")], record)
    if headers.get("ce_specversion") == OLD.encode():
        return None
    return _read(record, [*headers.items()])


def read_structured(record: Record, content_type: str | None) -> Event | None:
    """Return the event that `binding` reads from a record's value, or None if the specversion is 0.3.

    Raises a `DecodeError`, which contains this record, if the record is not a valid event, and `BrokenData`
    if only its data cannot be read.
    """
    named = JSON_EVENT if is_for_json(content_type) else str(content_type).encode()
    try:
        return _read(record, [(_CONTENT_TYPE, named)])
    except BrokenEvent as error:
        if any((one.attribute, one.value) == ("specversion", repr(OLD)) for one in error.problems):
            return None
        if names_format(content_type) or not any(map(_is_of_another_value, error.problems)):
            # The SDK reads some attributes that break a rule; the reason may be the data.
            item = decode(structs.replace(record, headers=[(_CONTENT_TYPE, named)]), lenient=True)
            if isinstance(item, Decoded):
                structured_data(item.event, record)
            raise
        why = error.problems[0]
    reason = "the content-type does not name an event format, and the value is not a JSON event"
    raise NotAnEvent(f"not a CloudEvent: {reason} (K-11, Kafka binding 3): {why}", record)


def _read(record: Record, headers: Headers) -> Event:
    """Return the event of a record with replaced headers; an error contains the original record."""
    try:
        return from_record(structs.replace(record, headers=headers))
    except DecodeError as error:
        error.record = record
        raise


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _is_of_another_value(problem: Problem) -> bool:
    """Return whether a problem shows that a value was not meant as an event."""
    return problem.attribute is None or (problem.attribute, problem.clause) == ("specversion", "R-01")


def texts_of(event: Event) -> dict[str, Any]:
    """Return the attributes of an event as texts, in the form in which the SDK reads headers."""
    return {
        name: one if type(one) is str else canonical_text(one) for name, one in raw_parts(event)[0].items()
    }


def members_of(event: Event) -> dict[str, Any]:
    """Return the attributes of an event as JSON values."""
    attributes = raw_parts(event)[0]
    return {name: canonical_text(one) if type(one) is bytes else one for name, one in attributes.items()}


def key_text(key: Any) -> str | None:
    """Return a key as the text of an attribute, or None if the key is not a valid text."""
    try:
        text = key.decode() if isinstance(key, bytes) else key
    except UnicodeDecodeError:
        return None
    return text if text and is_string(text) else None


def binary_data(payload: bytes | None, content_type: str | None) -> Any:
    """Return the data in a payload.

    If the content type implies JSON, and the payload is JSON, the data is the JSON value. In other cases, the
    data is a text, or bytes if the payload cannot be decoded as text. The data of an empty payload is empty
    bytes.
    """
    if not payload:
        return payload
    if implies_json(content_type):
        try:
            return json_value(payload, content_type)
        except DataError:
            pass  # the SDK writes a text unchanged, not as a JSON string
    return text_or_bytes(payload, content_type)


def json_value(payload: bytes, content_type: str | None) -> Any:
    """Return the JSON value of a payload.

    The payload is read in the charset of the content type, or if it is not JSON in this charset, in UTF-8.
    UTF-8 is tried because the SDK writes UTF-8 even if the content type names another charset. Raises
    `DataError` if the payload is not JSON.
    """
    try:
        return decode_json(to_utf8(payload, content_type))
    except DataError:
        if content_type is None or media_type(content_type).utf8:
            raise
        return decode_json(payload)


def text_or_bytes(payload: bytes, content_type: str | None) -> str | bytes:
    """Return a payload decoded in the charset of a content type; if this fails, return the payload itself."""
    try:
        return decode_text(payload, content_type)
    except DataError:
        return payload


def structured_data(event: Event, record: Record) -> Any:
    """Return the data of a structured event: a JSON value, a text, or bytes if the data was in base64."""
    payload, content_type = event.payload, event.datacontenttype
    if payload is None or event.kind not in (DataKind.JSON, DataKind.TEXT):
        return payload
    try:
        if event.kind is DataKind.TEXT:
            return decode_text(payload, content_type)
        return decode_json(to_utf8(payload, content_type))
    except DataError as error:
        raise BrokenData(f"broken data: {error}", record, event) from error


def event_for_errors(record: Record, attributes: Mapping[str, Any]) -> Event:
    """Return an event, possibly with invalid attributes, for a record whose data cannot be read."""
    found = decode(record, lenient=True)
    if isinstance(found, Decoded):
        return found.event
    return unchecked_event({name: str(attributes[name]) for name in REQUIRED}, record.value)
