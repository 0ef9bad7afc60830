"""The registry of codecs, which finds a codec by media type, event type and schema.

If no codec is registered for an event's data, the module `payload` decodes JSON and text; other data stays
bytes. A registered codec has precedence over `payload`. If several codecs match, a codec for the complete
media type is used before a codec for its suffix, such as ``+avro``. Among the codecs for one media type, or
for one suffix, a codec for the event's ``type`` or ``dataschema`` is used before a codec for all events. The
parameters of the media type are ignored, and upper and lower case are not distinguished. A codec changes only
``event.data``: ``event.payload`` always contains the bytes. A codec consists of two functions::

    register_codec("application/cbor", Codec(cbor2.loads, cbor2.dumps))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.media_type import media_type as parsed
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.primitives.locks import registration_lock
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.primitives.preview import preview_name
from cloudevents_kafka.problems import DataError


class Codec(msgspec.Struct, frozen=True):
    """A codec: one function converts payload bytes to a value, and one converts a value to bytes.

    If ``decode`` is None, the codec is not used for decoding; if ``encode`` is None, it is not used for
    encoding. If one of the functions raises an exception, this library raises a `DataError` with that
    exception as its cause. The message of this `DataError` contains the text of the exception only if the
    exception itself is a `DataError`. A codec should therefore not raise a `DataError` whose text contains
    data.

    Examples:
        >>> from cloudevents_kafka import Codec, Event, register_codec
        >>> csv = Codec(lambda payload: payload.decode().split(","), lambda row: ",".join(row).encode())
        >>> register_codec("text/csv", csv)
        >>> Event(id="1", source="/shop", type="row", datacontenttype="text/csv", data=["a", "b"]).payload
        b'a,b'
    """

    decode: Callable[[bytes], Any] | None = None
    encode: Callable[[Any], bytes] | None = None


Key = tuple[str, str | None, str | None]
"""The media type or suffix, the event type, and the dataschema for which a codec is registered."""

by_key: Final[dict[Key, Codec]] = {}
"""The registered codecs. Only functions of this module change this dictionary, which is usually empty."""


def register_codec(
    media_type: str, codec: Codec, *, type: str | None = None, dataschema: str | None = None
) -> None:
    """Register a codec, in this process, for the data of a media type.

    ``media_type`` is a media type without parameters, or a suffix: for example, ``+avro`` matches all media
    types that end with ``+avro``. With ``type`` or ``dataschema``, the codec is used only for events with
    these attributes. A codec that is registered again for the same arguments replaces the earlier codec.
    Raises `ValueError` for an invalid media type, and `TypeError` for an argument of a wrong type.

    Examples:
        >>> from cloudevents_kafka import Codec, Event, register_codec
        >>> register_codec("application/x-number", Codec(int, lambda number: str(number).encode()))
        >>> Event(id="1", source="/shop", type="t", datacontenttype="application/x-number", data=b"17").data
        17
    """
    if not isinstance(codec, Codec):
        raise TypeError(f"codec must be a Codec(decode, encode), got {_kind_of(codec)}")
    for function in (codec.decode, codec.encode):
        if not (function is None or callable(function)):
            raise TypeError(f"decode and encode of a Codec must be functions, got {_kind_of(function)}")
    check_callbacks(decode=codec.decode, encode=codec.encode)
    for name, text in (("media_type", media_type), ("type", type), ("dataschema", dataschema)):
        if not (isinstance(text, str) or (text is None and name != "media_type")):
            raise TypeError(f"{name} must be a str, got {_kind_of(text)}")
    essence = f"any/any{media_type}" if media_type.startswith("+") else media_type
    media = parsed(essence)
    odd = essence.endswith("+") or "++" in essence or "*" in essence
    if not media.valid or media.essence != essence.lower() or odd:
        raise ValueError(
            f"media_type must be like 'application/avro', or a suffix like '+avro', got {media_type!r}"
        )
    with registration_lock:
        by_key[media_type.lower(), type, dataschema] = codec


def find(content_type: str | None, attributes: Mapping[str, Any]) -> Codec | None:
    """Return the codec for a content type and the attributes of an event, or None."""
    if not by_key or content_type is None:
        return None
    essence = parsed(content_type).essence
    _, plus, suffix = essence.rpartition("+")
    types, schemas = (attributes.get("type"), None), (attributes.get("dataschema"), None)
    for key in product((essence, plus + suffix), types, schemas):
        if (codec := by_key.get(key)) is not None:
            return codec
    return None


def registered() -> dict[Key, Codec]:
    """Return the registered codecs."""
    with registration_lock:
        return dict(by_key)


def restore(codecs: Mapping[Key, Codec]) -> None:
    """Register exactly the codecs in ``codecs``; remove all other codecs."""
    with registration_lock:
        by_key.update(codecs)
        for key in by_key.keys() - codecs.keys():
            del by_key[key]


def call_decode(decode: Callable[[Any], Any], source: Any, content_type: str | None) -> Any:
    """Return the result of a user's function. Raises `DataError` if the function raises any exception."""
    return _call(decode, source, "data is not {}" if content_type else "{} cannot be decoded", content_type)


def call_encode(encode: Callable[[Any], bytes], value: Any, content_type: str | None) -> bytes:
    """Return the bytes that a user's function returns.

    Raises `DataError` if the function raises an exception, or does not return bytes.
    """
    payload = _call(encode, value, f"{_kind_of(value)} cannot be written as {{}}", content_type)
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise DataError(f"the codec for {_describe(content_type)} must return bytes, got {_kind_of(payload)}")
    return bytes(payload)


def _call(function: Callable[[Any], Any], argument: Any, failure: str, content_type: str | None) -> Any:
    try:
        return function(argument)
    except DataError as error:
        raise DataError(f"{failure.format(_describe(content_type))}: {error}") from error
    except Exception as error:  # the function may be of any library
        what = failure.format(_describe(content_type))
        raise DataError(f"{what}: its codec raised {type(error).__name__}") from error


def _describe(content_type: str | None) -> str:
    return preview_name(content_type) if content_type else "data without a content type"


def _kind_of(thing: object) -> str:
    return with_article(type(thing).__name__)  # the text of an error may contain data
