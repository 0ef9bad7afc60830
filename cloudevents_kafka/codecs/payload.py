"""The data of an event: the payload bytes, their kind, and the Python value.

An event stores its data as bytes, which are called the payload. If an event was read from a format that
stored the data as a JSON value or as a text, the kind of its payload is JSON or text. Other formats then also
write this payload as a JSON value or as a text. If the format stored the data as bytes, the kind is bytes;
the kind is never guessed from the bytes.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.media_type import media_type, python_codec
from cloudevents_kafka.codecs.json import JsonCodec, decode_json, encode_json, is_json
from cloudevents_kafka.codecs.json_charset import encode_json_text
from cloudevents_kafka.codecs.registry import by_key, call_decode, call_encode, find
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.primitives.preview import message_without_data, preview_name
from cloudevents_kafka.problems import DataError


class DataKind(Enum):
    """The kind of an event's data."""

    BYTES = "bytes"
    """Bytes; the content type describes the bytes, if the event has a content type."""
    JSON = "json"
    """The text of a JSON value."""
    TEXT = "text"
    """A text in the charset of its content type."""
    PROTO = "proto"
    """A Protobuf message in a serialized ``google.protobuf.Any``."""


_BYTES: Final = DataKind.BYTES
_JSON: Final = DataKind.JSON
_TEXT: Final = DataKind.TEXT
_BYTES_LIKE: Final = (bytes, bytearray, memoryview)
_NO_ATTRIBUTES: Final[Mapping[str, Any]] = {}
_BYTE_ORDER_MARKS: Final = {
    "utf_16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE),
    "utf_32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE),
}
_JSON_TYPES: Final = frozenset((dict, str, list, int, float, bool))


def implies_json(content_type: str | None) -> bool:
    """Return whether data of this content type is JSON; without a content type, data is JSON (J-09)."""
    return content_type is None or media_type(content_type).is_json


def implies_utf8_json(content_type: str | None) -> bool:
    """Return whether data of this content type is JSON in UTF-8."""
    return implies_json(content_type) and (content_type is None or media_type(content_type).utf8)


def implied_type(content_type: str | None, kind: DataKind) -> str | None:
    """Return the content type of data; JSON data without a content type has ``application/json`` (J-09)."""
    return "application/json" if content_type is None and kind is _JSON else content_type


def to_payload(
    data: Any, content_type: str | None, attributes: Mapping[str, Any] = _NO_ATTRIBUTES
) -> tuple[bytes | None, DataKind]:
    """Return the payload bytes for a Python value, and the kind of the payload.

    None means no data, and bytes are used unchanged as the payload. Other values are encoded by the codec
    that is registered for ``attributes`` and the content type. If the content type is None, a codec for
    ``application/json`` is used. If no codec is registered, a Protobuf message becomes a
    ``google.protobuf.Any``, a str becomes a JSON string or text, and other values become JSON. A str becomes
    a JSON string if the content type is JSON or None. For any other content type, it becomes text in the
    charset of the content type. Raises `DataError` if the value cannot be encoded.
    """
    if data is None or type(data) is bytes:
        return data, _BYTES
    has_json_type = type(data) in _JSON_TYPES
    if not has_json_type and isinstance(data, _BYTES_LIKE):
        return bytes(data), _BYTES
    codec = find(implied_type(content_type, _JSON), attributes) if by_key else None  # usually None
    if codec is not None and codec.encode is not None:
        payload = call_encode(codec.encode, data, content_type)
        if isinstance(codec, JsonCodec):
            payload = _in_charset(payload, content_type)
        if content_type is None and not is_json(payload):
            raise DataError("the codec for application/json must return JSON in UTF-8")
        return payload, _JSON if content_type is None else _BYTES
    if not has_json_type and (message := _serialized_any(data)) is not None:
        return message, DataKind.PROTO
    media = None if content_type is None else media_type(content_type)
    if media is None or media.is_json:  # J-09: without a content type, a value is JSON
        return encode_json(data) if media is None else json_payload(data, content_type), _JSON
    if isinstance(data, str):
        return data.encode() if media.charset is None and data.isascii() else encode_text(
            data, content_type
        ), _TEXT
    got = with_article(type(data).__name__)
    raise DataError(
        f"data of type {preview_name(content_type)} must be text or bytes, got {got}; "
        "set a JSON content type, or register a codec for this type"
    )


def json_payload(data: Any, content_type: str | None) -> bytes:
    """Return a value as JSON in the charset of a content type. Raises `DataError` if encoding fails."""
    return _in_charset(encode_json(data), content_type)


def _in_charset(text: bytes, content_type: str | None) -> bytes:
    """Return JSON text, converted from UTF-8 to the charset of a content type, which may be US-ASCII."""
    if content_type is None:
        return text
    media = media_type(content_type)
    if media.utf8 and (text.isascii() or not media.ascii):
        return text
    return _encode(text.decode(), content_type, encode_json_text)


def as_document(text: str, content_type: Any, attributes: Mapping[str, Any]) -> str | msgspec.Raw:
    """Return JSON text as a value that can be passed to `to_payload` as the argument ``data``.

    If the content type is JSON, the result is a `msgspec.Raw`, which `to_payload` copies. For any other
    content type, the result is the unchanged text. If a registered codec encodes the data, the result is the
    unchanged text even for a JSON content type, because a codec expects a str.
    """
    if not (content_type is None or isinstance(content_type, str)) or not implies_json(content_type):
        return text
    codec = find(implied_type(content_type, _JSON), attributes) if by_key else None  # usually None
    if codec is not None and codec.encode is not None:
        return text
    document = text.encode("utf-8", "surrogatepass")  # a surrogate is not JSON; `to_payload` reports it
    return msgspec.Raw(document) if is_json(document) else text


def _serialized_any(data: Any) -> bytes | None:
    """Return a Protobuf message serialized as an ``Any``, or None for other values."""
    messages = sys.modules.get("google.protobuf.message")  # the module is loaded if the program has messages
    if messages is None or not isinstance(data, messages.Message):
        return None
    from google.protobuf.any_pb2 import Any as AnyMessage

    try:
        if data.DESCRIPTOR.full_name == AnyMessage.DESCRIPTOR.full_name:
            return bytes(data.SerializeToString())
        packed = AnyMessage()
        packed.Pack(data, deterministic=True)  # entries of maps have one order; an Any has no map
    except messages.EncodeError as error:  # a required field is not set
        raise DataError(f"{with_article(type(data).__name__)} cannot be serialized: {error}") from None
    return bytes(packed.SerializeToString())


def from_payload(
    payload: bytes | None,
    kind: DataKind,
    content_type: str | None,
    attributes: Mapping[str, Any] = _NO_ATTRIBUTES,
) -> Any:
    """Return the Python value of payload bytes: the value of JSON, a text, or the bytes.

    A codec that is registered for the content type and ``attributes`` has precedence.
    Raises `DataError` if the payload does not match the content type.
    """
    if payload is None or kind is DataKind.PROTO:
        return payload
    codec = find(implied_type(content_type, kind), attributes) if by_key else None  # usually None
    if codec is not None and codec.decode is not None:
        if isinstance(codec, JsonCodec):
            payload = (json_in_utf8 if kind is _JSON else to_utf8)(payload, content_type)
        return call_decode(codec.decode, payload, content_type)
    media = None if content_type is None else media_type(content_type)
    if kind is _JSON:
        return decode_json(payload if media is None or media.utf8 else json_in_utf8(payload, content_type))
    if media is not None and media.is_json:
        return decode_json(payload if media.utf8 else to_utf8(payload, content_type))
    if kind is _TEXT or (media is not None and media.is_text):
        return decode_text(payload, content_type)
    return payload


def json_in_utf8(payload: bytes, content_type: str | None) -> bytes:
    """Return a payload of the kind JSON, converted to UTF-8.

    The payload is encoded in the charset of its JSON content type. If lenient reading has accepted JSON with
    another content type or with an unknown charset, the payload already is UTF-8.
    """
    if content_type is None or not media_type(content_type).is_json:
        return payload
    try:
        python_codec(media_type(content_type))
    except LookupError:
        return payload
    return to_utf8(payload, content_type)


def to_utf8(payload: bytes, content_type: str | None) -> bytes:
    """Return text, converted from the charset of a content type to UTF-8.

    Raises `DataError` if the bytes are not text in this charset.
    """
    if content_type is None or media_type(content_type).utf8:
        return payload
    try:
        return decode_text(payload, content_type).encode()
    except UnicodeEncodeError:  # such as UTF-7, which can encode a lone surrogate
        raise DataError(f"data is not {preview_name(content_type)}: it has a lone surrogate") from None


def from_utf8(text: bytes, content_type: str | None) -> bytes:
    """Return JSON text, converted from UTF-8 to the charset of a content type.

    Raises `DataError` if the charset is unknown.
    """
    if content_type is None or media_type(content_type).utf8:
        return text
    return _encode(text.decode(), content_type, encode_json_text)


def encode_text(text: str, content_type: str | None) -> bytes:
    """Return a text encoded in the charset of a content type; the default charset is UTF-8.

    Raises `DataError` if the charset cannot encode the text.
    """
    return _encode(text, content_type, str.encode)


def _encode(text: str, content_type: str | None, encode: Callable[[str, str], bytes]) -> bytes:
    try:
        return encode(text, "utf-8" if content_type is None else python_codec(media_type(content_type)))
    except (LookupError, ValueError) as error:
        raise DataError(
            f"data cannot be written as {preview_name(content_type)}: {message_without_data(error)}"
        ) from None


def decode_text(payload: bytes, content_type: str | None) -> str:
    """Return the text of bytes in the charset of a content type; the default charset is UTF-8.

    Raises `DataError` if the bytes are not text in this charset.
    """
    try:
        charset = "utf-8" if content_type is None else python_codec(media_type(content_type))
        # RFC 2781 4.3: text without a byte order mark "SHOULD be interpreted as being big-endian".
        if not payload.startswith(_BYTE_ORDER_MARKS.get(charset, b"")):
            charset += "_be"  # Python's codec assumes the byte order of the machine
        return payload.decode(charset)
    except (LookupError, ValueError) as error:
        raise DataError(f"data is not {preview_name(content_type)}: {message_without_data(error)}") from None
