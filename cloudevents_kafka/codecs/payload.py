"""Event data: the payload bytes, what kind of value they stand for, and the Python value.

An event keeps its data as bytes (`payload`) beside the content type. Where it came
as a value, the kind remembers which: a JSON value and a text stay what they are when
the event is written in another format, and bytes are never guessed at.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from cloudevents_kafka.attributes.media_type import media_type, python_codec
from cloudevents_kafka.codecs.json import decode_json, encode_json
from cloudevents_kafka.codecs.registry import call_decode, call_encode, find
from cloudevents_kafka.errors import DataError, Problem, message_without_data, preview_name


class DataKind(Enum):
    """What an event's payload stands for."""

    BYTES = "bytes"
    """Bytes as they came; the content type, if any, says what they are."""
    JSON = "json"
    """A JSON value, in its text."""
    TEXT = "text"
    """A text, in the charset of its content type."""
    PROTO = "proto"
    """A Protobuf message, as a serialized ``google.protobuf.Any``, which says its type."""


_NOTHING: Final[Mapping[str, Any]] = {}
_BYTE_ORDER_MARKS: Final = {
    "utf_16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE),
    "utf_32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE),
}
_PLAIN: Final = (dict, str, list, int, float)


def implies_json(content_type: str | None) -> bool:
    """Tell whether data that is a value is JSON: by its type, or because none is set (J-09)."""
    return content_type is None or media_type(content_type).is_json


def implies_utf8_json(content_type: str | None) -> bool:
    """Return whether data that is a value is JSON in UTF-8."""
    return implies_json(content_type) and (content_type is None or media_type(content_type).utf8)


def to_payload(
    data: Any, content_type: str | None, about: Mapping[str, Any] = _NOTHING
) -> tuple[bytes | None, DataKind]:
    """Turn a Python value into payload bytes and their kind.

    None is no data; bytes are the payload as they are. A codec that is registered for
    the content type, in an event with the attributes ``about``, takes all else. Without
    one, a Protobuf message is itself in a ``google.protobuf.Any``; text under a JSON or
    no content type is a JSON string, else it is text in the type's charset; any other
    value is JSON. Raises `DataError` with a reason where that cannot be.
    """
    if data is None:
        return None, DataKind.BYTES
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data), DataKind.BYTES
    codec = find(content_type, about)
    if codec is not None and codec.encode is not None:
        return call_encode(codec.encode, data, content_type), DataKind.BYTES
    if not isinstance(data, _PLAIN) and (message := _serialized_any(data)) is not None:
        return message, DataKind.PROTO
    if implies_json(content_type):
        return from_utf8(encode_json(data), content_type), DataKind.JSON
    if isinstance(data, str):
        return encode_text(data, content_type), DataKind.TEXT
    raise DataError(
        f"a {type(data).__name__} cannot be {preview_name(content_type)}: "
        "give text or bytes, or a JSON content type, or register a codec for this one"
    )


def _serialized_any(data: Any) -> bytes | None:
    """Serialize a message of google's package as an ``Any``, which it may be already; None for others."""
    messages = sys.modules.get("google.protobuf.message")  # who has a message has loaded the package
    if messages is None or not isinstance(data, messages.Message):
        return None
    from google.protobuf.any_pb2 import Any as AnyMessage

    try:
        if data.DESCRIPTOR.full_name == AnyMessage.DESCRIPTOR.full_name:
            return bytes(data.SerializeToString(deterministic=True))
        packed = AnyMessage()
        packed.Pack(data, deterministic=True)
    except messages.EncodeError as error:  # a required field that is not set
        raise DataError(f"a {type(data).__name__} cannot be serialized: {error}") from None
    return bytes(packed.SerializeToString(deterministic=True))


def from_payload(
    payload: bytes | None, kind: DataKind, content_type: str | None, about: Mapping[str, Any] = _NOTHING
) -> Any:
    """Turn payload bytes into a Python value: JSON, text, or the bytes themselves.

    A codec that is registered for the content type, in an event with the attributes
    ``about``, goes first.

    Raises `DataError` where they are not what the content type says.
    """
    if payload is None or kind is DataKind.PROTO:
        return payload
    codec = find(content_type, about)
    if codec is not None and codec.decode is not None:
        return call_decode(codec.decode, payload, content_type)
    media = None if content_type is None else media_type(content_type)
    if kind is DataKind.JSON or (media is not None and media.is_json):
        return decode_json(payload if media is None or media.utf8 else to_utf8(payload, content_type))
    if kind is DataKind.TEXT or (media is not None and media.is_text):
        return decode_text(payload, content_type)
    return payload


def to_utf8(payload: bytes, content_type: str | None) -> bytes:
    """Turn text from the content type's charset into UTF-8; raises `DataError`."""
    if content_type is None or media_type(content_type).utf8:
        return payload
    try:
        return decode_text(payload, content_type).encode()
    except UnicodeEncodeError:  # utf-7 and its like can say half a surrogate pair
        raise DataError(f"data is not {preview_name(content_type)}: it has a lone surrogate") from None


def from_utf8(text: bytes, content_type: str | None) -> bytes:
    """Turn UTF-8 into the content type's charset; raises `DataError`."""
    if content_type is None or media_type(content_type).utf8:
        return text
    return encode_text(text.decode(), content_type)


def encode_text(text: str, content_type: str | None) -> bytes:
    """Write text in the content type's charset, UTF-8 by default; raises `DataError`."""
    try:
        return text.encode("utf-8" if content_type is None else python_codec(media_type(content_type)))
    except (LookupError, ValueError) as error:
        raise DataError(
            f"data cannot be written as {preview_name(content_type)}: {message_without_data(error)}"
        ) from None


def decode_text(payload: bytes, content_type: str | None) -> str:
    """Read text in the content type's charset, UTF-8 by default; raises `DataError`.

    UTF-16 and UTF-32 without a byte order mark are big-endian (RFC 2781 4.3, Unicode 3.10 D101).
    """
    try:
        charset = "utf-8" if content_type is None else python_codec(media_type(content_type))
        if not payload.startswith(_BYTE_ORDER_MARKS.get(charset, b"")):
            charset += "_be"  # Python's codec would take this machine's order
        return payload.decode(charset)
    except (LookupError, ValueError) as error:
        raise DataError(f"data is not {preview_name(content_type)}: {message_without_data(error)}") from None


def data_problem(error: DataError, clause: str = "J-10") -> Problem:
    """Report data that cannot be written among an event's other problems."""
    return Problem("data", str(error), clause)
