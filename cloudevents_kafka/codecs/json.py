"""Strict JSON in UTF-8 (RFC 8259); reading and writing refuse NaN and infinities.

Some valid JSON cannot be decoded to a Python value, because it contains a lone surrogate, or is nested too
deeply for the parser's stack. When an event is written, the text of such JSON is copied unchanged. An error
is raised only when the JSON text is decoded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from cloudevents_kafka.codecs.json_grammar import find_lone_surrogate, is_json_text
from cloudevents_kafka.codecs.registry import Codec
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.primitives.preview import message_without_data
from cloudevents_kafka.problems import DataError

_decode_json: Final = msgspec.json.Decoder().decode
_check_json: Final = msgspec.json.Decoder(msgspec.Raw).decode
# In MessagePack a NaN or infinity is a double (byte cb) whose exponent has only ones.
_find_non_finite: Final = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]").search
_SCALAR_TYPES: Final = frozenset((str, int, float, bool, type(None)))
_FINITE_TYPES: Final = (str, int, bytes, msgspec.Raw, type(None))
_SUBCLASSED: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__index__),
    (float, float.__float__),
)
_NAMES_ONLY: Final = (tuple, frozenset, type(None))  # they reach `_to_builtin` only as keys
_CANNOT: Final = "data cannot be written as JSON: "


def _to_builtin(value: Any) -> Any:
    """Convert a value whose class msgspec does not know to a value that msgspec can encode.

    The value must be a pydantic model, or an instance of a subclass of str, int or float, such as
    ``numpy.float64``. For any other value, `TypeError` is raised. The fields of a model are written under
    their aliases, because pydantic reads them under their aliases.
    """
    for base, convert in _SUBCLASSED:
        if isinstance(value, base):
            return convert(value)
    kind = type(value)
    if not (hasattr(kind, "__pydantic_core_schema__") and hasattr(kind, "model_dump")):
        got = f"the class {value.__name__}" if isinstance(value, type) else with_article(kind.__name__)
        if isinstance(value, _NAMES_ONLY):
            raise TypeError(f"the keys of a dict must be text or numbers, got {got}")
        raise TypeError(
            "its values must be JSON values, dataclasses, msgspec Structs or pydantic models, "
            f"got {got}; convert it, or pass bytes"
        )
    try:
        return value.model_dump(mode="json", by_alias=True)
    except Exception as error:  # a user's serializer; its message may contain data
        raise DataError(
            f"{with_article(kind.__name__)} has a serializer that raised {type(error).__name__}"
        ) from error


_encode_json: Final = msgspec.json.Encoder(enc_hook=_to_builtin).encode
_pack: Final = msgspec.msgpack.Encoder(enc_hook=_to_builtin).encode


def encode_json(value: Any) -> bytes:
    """Return a value as JSON in UTF-8. Raises `DataError` for values such as NaN, which JSON cannot express.

    Dataclasses, msgspec Structs and pydantic models are written as JSON objects. The text in a `msgspec.Raw`
    must be JSON, which is copied unchanged.
    """
    try:
        text = _encode_json(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(_CANNOT + message_without_data(error)) from error.__cause__
    # The value may contain a Raw, which is copied unchecked. Checking all text is faster than finding it.
    if type(value) not in _SCALAR_TYPES:
        try:  # the first steps of `is_json`, since its calls take half of the time
            _check_json(text)
            valid = text.isascii() or is_utf8(text)
        except (msgspec.MsgspecError, RecursionError):
            valid = is_json(text)
        if not valid:
            raise DataError(_CANNOT + "a msgspec.Raw in it must be JSON in UTF-8")
    # The encoder writes NaN and infinities as null.
    if type(value) is not str and text.find(b"null") >= 0 and _has_non_finite(value):
        raise DataError(_CANNOT + "it has a NaN or infinite number")
    return text


def decode_json(text: bytes) -> Any:
    """Return the Python value of UTF-8 JSON. Raises `DataError` if bytes are not JSON or have no value."""
    try:
        return _decode_json(text)
    except UnicodeDecodeError as error:
        raise DataError(f"data is not JSON: {message_without_data(error)}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        why = explain_error(text, error)
    kind = "JSON without a Python value" if is_json(text) else "not JSON"
    raise DataError(f"data is {kind}: {why}; event.payload has its text")


def explain_error(text: bytes, error: Exception) -> str:
    """Return why the parser refuses a JSON text; the message of the parser itself may name the wrong byte."""
    if isinstance(error, RecursionError):
        return "it is nested too deep for the parser"
    end = find_lone_surrogate(text) if isinstance(error, msgspec.DecodeError) else None
    return str(error) if end is None else f"the escape before byte {end} is a lone surrogate"


def is_parsable(text: bytes) -> bool:
    """Return whether the bytes are JSON in UTF-8 that can be decoded to a Python value."""
    try:
        _check_json(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return text.isascii() or is_utf8(text)


def is_json(text: bytes) -> bool:
    """Return whether the bytes are one JSON text in UTF-8; the text may have no Python value."""
    return is_parsable(text) or (is_utf8(text) and is_json_text(text))


def is_utf8(text: bytes) -> bool:
    """Return whether the bytes are UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_non_finite(value: Any) -> bool:
    """Return whether a value contains NaN or an infinity; the value must be one that can be encoded."""
    try:
        if _find_non_finite(_pack(value)) is None:  # twenty times as fast as the search below
            return False
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass  # such as an integer of more than 64 bits
    values = [value]
    while values:
        value = values.pop()
        if isinstance(value, float):
            if not math.isfinite(value):
                return True
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list | tuple | set | frozenset):
            values += value
        elif not isinstance(value, _FINITE_TYPES):
            values.append(msgspec.to_builtins(value, enc_hook=_to_builtin))  # such as a dataclass
    return False


class JsonCodec(Codec, frozen=True):
    """A codec whose functions read and write JSON in UTF-8.

    The module `payload` converts this JSON from and to the charset of the content type.
    """


def typed_json(type: Any) -> Codec:
    """Return a codec for JSON data of one type: a msgspec Struct, a dataclass or a TypedDict.

    The JSON is read and written in the charset of the content type.

    Examples:
        >>> from dataclasses import dataclass
        >>> from cloudevents_kafka import Event, codecs, register_codec
        >>> @dataclass
        ... class Order:
        ...     total: str
        >>> register_codec("application/json", codecs.typed_json(Order), type="order.placed")
        >>> event = Event(id="1", source="/shop", type="order.placed", datacontenttype="application/json")
        >>> event.replace(data=b'{"total": "9.50"}').data
        Order(total='9.50')
    """
    return JsonCodec(msgspec.json.Decoder(type).decode, encode_json)
