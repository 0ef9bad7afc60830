"""Data codecs: how the data of a content type becomes a value of the user's, and back.

Without any, JSON and text are read and written, and all else is bytes (see `data`).
A codec that is registered for a media type takes its place: for that of one
``dataschema`` or one event ``type`` first, then for the media type, then for its
suffix (``+avro``), parameters and case aside. It gets and gives the payload as it
travels, so nothing is lost by it: ``event.payload`` is there whatever it says.

Any two functions make a codec::

    register_codec("application/cbor", Codec(cbor2.loads, cbor2.dumps))
    register_codec("application/protobuf", Codec(Order.FromString, Order.SerializeToString))
    register_codec("application/json", Codec(adapter.validate_json, adapter.dump_json), type="order.placed")

where ``Order`` is a Protobuf message and ``adapter`` a pydantic ``TypeAdapter``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import registration_lock
from cloudevents_kafka.attributes.media_type import media_type as parsed
from cloudevents_kafka.errors import DataError, preview_name


class Codec(msgspec.Struct, frozen=True):
    """Two functions, from payload bytes to a value and back.

    Where one is left out, data is read or written as without the codec. They may
    raise what they like: it becomes a `DataError`, with the error as its cause. What a
    `DataError` of theirs says is told, so it should not have any of the data in it.
    """

    decode: Callable[[bytes], Any] | None = None
    encode: Callable[[Any], bytes] | None = None


Key = tuple[str, str | None, str | None]
"""What a codec is registered for: media type or suffix, event type, dataschema."""

_codecs: Final[dict[Key, Codec]] = {}


def register_codec(
    media_type: str, codec: Codec, *, type: str | None = None, dataschema: str | None = None
) -> None:
    """Read and write the data of a media type with a codec, in this process.

    ``media_type`` is one without parameters, or a suffix: ``+avro`` is for all that
    end in it. With ``type`` or ``dataschema`` the codec is for events that have these.
    To register for the same again replaces the codec. `ValueError` for what is neither
    media type nor suffix, `TypeError` for what is no `Codec` or no text.
    """
    if not isinstance(codec, Codec):
        raise TypeError(f"a codec is a Codec(decode, encode), not a {_kind(codec)}")
    for function in (codec.decode, codec.encode):
        if not (function is None or callable(function)):
            raise TypeError(f"decode and encode of a Codec are functions, and a {_kind(function)} is none")
    optional = {"type": type, "dataschema": dataschema}
    texts = {"media type": media_type, **{what: text for what, text in optional.items() if text is not None}}
    for what, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"a {what} is a text, not a {_kind(text)}")
    essence = f"any/any{media_type}" if media_type.startswith("+") else media_type
    media = parsed(essence)
    if (
        not media.valid
        or media.essence != essence.lower()
        or essence.endswith("+")
        or "++" in essence
        or "*" in essence
    ):
        raise ValueError(
            f"{media_type!r} is no media type, such as 'application/avro', and no suffix, '+avro'"
        )
    with registration_lock:
        _codecs[media_type.lower(), type, dataschema] = codec


def find(content_type: str | None, about: Mapping[str, Any]) -> Codec | None:
    """Return the codec for data of a content type, in an event with these attributes."""
    if not _codecs or content_type is None:
        return None
    essence = parsed(content_type).essence
    _, plus, suffix = essence.rpartition("+")
    event_type, schema = about.get("type"), about.get("dataschema")
    for name in (essence, plus + suffix):
        for kind in (event_type, None):
            for of_schema in (schema, None):
                if (found := _codecs.get((name, kind, of_schema))) is not None:
                    return found
    return None


def registered() -> dict[Key, Codec]:
    """Return the codecs that were registered, by what for."""
    with registration_lock:
        return dict(_codecs)


def restore(codecs: Mapping[Key, Codec]) -> None:
    """Have these codecs registered, and no others."""
    with registration_lock:
        _codecs.update(codecs)
        for key in _codecs.keys() - codecs.keys():
            del _codecs[key]


def call_decode(decode: Callable[[Any], Any], given: Any, content_type: str | None) -> Any:
    """Have a function of the user's read data; `DataError` for whatever it raises."""
    try:
        return decode(given)
    except DataError as error:
        raise DataError(f"data is not {_named(content_type)}: {error}") from error
    except Exception as error:  # any library may stand behind it, with errors of its own
        raise DataError(f"data is not {_named(content_type)}: its codec raised {_kind(error)}") from error


def call_encode(encode: Callable[[Any], bytes], value: Any, content_type: str | None) -> bytes:
    """Have a function of the user's write data; `DataError` for whatever it raises.

    Also where it gives something else than bytes.
    """
    what = f"a {_kind(value)} cannot be written as {_named(content_type)}"
    try:
        payload = encode(value)
    except DataError as error:
        raise DataError(f"{what}: {error}") from error
    except Exception as error:  # see decoded
        raise DataError(f"{what}: its codec raised {_kind(error)}") from error
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise DataError(f"the codec for {_named(content_type)} gave a {_kind(payload)}, not bytes")
    return bytes(payload)


def _named(content_type: str | None) -> str:
    return preview_name(content_type) if content_type else "data without a content type"


def _kind(thing: object) -> str:
    return type(thing).__name__  # and no more: what an error says may have data in it


# --- ready-made ------------------------------------------------------------------
