"""Write the attributes and the data of an event of the official SDK.

The functions `accepted` and `write_binary` write a valid event in one pass. For an invalid event, this module
tries to create an `Event`, and the error of `Event` lists all problems.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.fast_validation import are_valid_texts
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.python_values import accept_values
from cloudevents_kafka.attributes.types import canonical_text
from cloudevents_kafka.binding import to_record
from cloudevents_kafka.codecs.json import encode_json
from cloudevents_kafka.codecs.payload import DataKind, as_document, implies_json, to_payload
from cloudevents_kafka.codecs.registry import find
from cloudevents_kafka.errors import DataError, InvalidEvent, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.sdk._reading import key_text

_CONTENT_TYPE: Final = "content-type"
_IMPLIED_TYPE: Final = "application/json"  # "SHOULD be set explicitly to the implied"
_JSON: Final = DataKind.JSON
_KEY: Final = "partitionkey"
_TEXT_OR_BYTES: Final = (str, bytes, bytearray, memoryview, type(None))


_headers: Final[dict[str, str]] = {}
"""A cache of the attributes' header names; a plain dictionary is the fastest to read."""


def accepted(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return attributes in canonical form as a new dictionary, or None if an attribute breaks a rule."""
    try:
        values: dict[str, Any] = attributes | {}  # type: ignore[operator]  # dict() copies a proxy slowly
    except TypeError:  # not all mappings have the operator
        values = dict(attributes)
    if type(values.get(_KEY)) is bytes:
        values[_KEY] = key_text(values[_KEY])
    return values if accept_values(values) else None


def text_headers(attributes: Mapping[str, Any]) -> dict[str, bytes] | None:
    """Return the headers of an event if all its attributes are valid texts without rules, otherwise None.

    This is the short way of the functions `accepted` and `write_binary`: it needs no copy of the attributes.
    """
    names = _headers
    try:
        headers = {names[name]: value.encode() for name, value in attributes.items()}
        content_type = attributes.get("datacontenttype")
        if content_type is not None:
            found = media_type(content_type)
            if found.cloudevents or not found.valid:
                return None
        is_valid = are_valid_texts(attributes, "".join(attributes.values()), False, True)
    except (AttributeError, KeyError, TypeError, UnicodeEncodeError):  # the long way finds the reason
        return None
    return headers if is_valid and current.table.text_names.issuperset(attributes) else None


def write_binary(
    attributes: Mapping[str, Any],
    values: dict[str, Any] | None,
    data: Any,
    quotes: bool,  # noqa: FBT001  # a call by position is faster
) -> tuple[dict[str, bytes], bytes | None]:
    """Return the headers and the value of an event in binary mode; an error lists all problems of the event.

    ``values`` is the result of the function `accepted` for ``attributes``. With ``quotes``, a text with a
    JSON content type becomes a JSON string, even if the text is valid JSON.
    """
    if values is not None:
        content_type = values.get("datacontenttype")
        try:
            if data is not None and type(data) is not bytes:
                data, kind = _payload_of(data, content_type, values, quotes=quotes)
                if kind is _JSON and content_type is None:
                    values["datacontenttype"] = content_type = _IMPLIED_TYPE
            if content_type is None or not media_type(content_type).cloudevents:
                return _headers_of(values), data
        except DataError:
            pass  # the error below also lists the problems of attributes
    if quotes and isinstance(data, str) and implies_json(attributes.get("datacontenttype")):
        data = msgspec.Raw(json_of(data))
    record = to_record(event_with(attributes, data))
    return dict(record.headers), record.value  # type: ignore[arg-type]  # no header is null


def _headers_of(attributes: Mapping[str, Any]) -> dict[str, bytes]:
    names = _headers
    try:
        return {names[name]: value.encode() for name, value in attributes.items()}
    except (AttributeError, KeyError):  # not all values are texts, or a name is not cached
        return {_header(name): canonical_text(value).encode() for name, value in attributes.items()}


def _header(name: str) -> str:
    return remember(_headers, name, _CONTENT_TYPE if name == "datacontenttype" else f"ce_{name}")


def _payload_of(
    data: Any, content_type: str | None, attributes: Mapping[str, Any], *, quotes: bool
) -> tuple[bytes | None, DataKind]:
    """Return data as a payload, and the payload's kind; raise `DataError` if the data cannot be written."""
    if isinstance(data, str):
        data = data if quotes else as_document(data, content_type, attributes)
    elif not (implies_json(content_type) or _is_writable(data, content_type, attributes)):
        data = json_bytes(data)
    return to_payload(data, content_type, attributes)


def _is_writable(data: Any, content_type: Any, attributes: Mapping[str, Any]) -> bool:
    """Return whether data is text or bytes, or whether a codec is registered for its content type."""
    return (
        isinstance(data, _TEXT_OR_BYTES) or find(content_type or "application/json", attributes) is not None
    )


def json_bytes(data: Any) -> bytes:
    """Return data as JSON in bytes; dictionary keys that are not texts are written as the SDK writes them.

    Exceptions are True, False and NaN, which become the keys ``1``, ``0`` and ``nan``.

    Raises `DataError` if JSON cannot express the data.
    """
    try:
        return encode_json(data)
    except DataError as error:
        try:
            return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError):
            raise error from error.__cause__


def json_of(data: Any) -> bytes:
    """Return data as JSON. Raises `InvalidEvent` if JSON cannot express the data."""
    try:
        return json_bytes(data)
    except DataError as error:
        raise InvalidEvent([Problem("data", str(error), "J-10")]) from error


def event_of(event: Any) -> Event:
    """Return an `Event` for an event of the SDK. Raises `InvalidEvent` if the event breaks a rule.

    A ``partitionkey`` that is not valid as an attribute is left out of the `Event`, and is used only as the
    message's key. If no codec is registered for the content type, data other than text and bytes is written
    as JSON.
    """
    attributes = event.get_attributes()
    if type(attributes.get(_KEY)) is not bytes:
        try:
            return Event.of(event)
        except InvalidEvent:
            pass  # the reason may be the key or the data, which `event_with` converts
    return event_with(attributes, event.get_data())


def event_with(attributes: Mapping[str, Any], data: Any) -> Event:
    """Return an `Event` with these attributes and this data; the rules are the same as in `event_of`."""
    changed = dict(attributes)
    if isinstance(key := changed.get(_KEY), str | bytes):
        changed[_KEY] = key_text(key)  # None if the key cannot be an attribute (K-14)
    content_type = changed.get("datacontenttype")
    if isinstance(content_type, str | None) and not _is_writable(data, content_type, changed):
        if not implies_json(content_type):
            data = json_of(data)
        else:
            with suppress(DataError):  # `Event` reports it, with the problems of the attributes
                data = msgspec.Raw(json_bytes(data))
    return Event.of(SimpleNamespace(get_attributes=lambda: changed, get_data=lambda: data))


def default_key(attributes: Mapping[str, Any]) -> str | bytes | None:
    """Return the SDK's default key, the ``partitionkey``; a value other than text or bytes becomes text."""
    key = attributes.get(_KEY)
    return key if key is None or isinstance(key, str | bytes) else str(key)
