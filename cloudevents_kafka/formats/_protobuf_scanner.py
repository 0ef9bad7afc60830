"""A reader of ``io.cloudevents.v1.CloudEvent`` messages whose fields are in serializers' usual order.

Serializers write first the required attributes in the order of their field numbers, then the entries of the
map, and then the data. The function `read_valid` reads a message with this order of fields in one pass. The
function `_protobuf_reader.read` reads all other messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import find_extension, type_of
from cloudevents_kafka.attributes.fast_validation import accept, is_scalar
from cloudevents_kafka.attributes.timestamps import from_epoch
from cloudevents_kafka.attributes.types import CORE, REQUIRED, SPECVERSION, AttributeType
from cloudevents_kafka.attributes.validation import has_type
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.formats._protobuf_reader import NAME, allowed_types, read_data
from cloudevents_kafka.formats.protobuf_decoder import ATTR_TYPES, ATTRIBUTES, DATA, signed
from cloudevents_kafka.primitives import varint
from cloudevents_kafka.primitives.bounded import remember

_ID: Final = 0x0A
_SOURCE: Final = 0x12
_SPECVERSION_AND_TYPE: Final = f'\x1a{chr(len(SPECVERSION))}{SPECVERSION}"'
_KEY: Final = 0x0A
_VALUE: Final = 0x12
_SECONDS: Final = 0x08
_NANOS: Final = 0x10
_SECONDS_SIZE: Final = 6  # bytes of the seconds in the years 1978 to 3058

# A cache of entries of the map. The key is the part of an entry before the text of its value. The cached
# value is the name, the number of bytes in the text, and the type. The records of a topic have only a few
# different keys.
_entries: Final[dict[str, tuple[str, int, AttributeType | None]]] = {}
_times: Final[dict[bytes, str]] = {}  # a cache from seconds to their text


def read_valid(value: bytes) -> Event | None:
    """Return the event in a Protobuf message.

    Return None if the message breaks a rule, or if its fields are not in the usual order.
    """
    try:
        return _scan(value, value.decode("latin-1"))
    except (ValueError, KeyError, IndexError, OverflowError):
        return None  # raised where the message is not as expected


def _scan(value: bytes, text: str) -> Event | None:
    """Return the event in a message; ``text`` is the message, decoded as Latin-1."""
    attributes, at = _read_required(value, text)
    typed, at = _read_entries(value, text, at, attributes)
    joined = _join_checked(attributes, typed) if typed else "".join(attributes.values())
    if not joined.isascii():
        joined = _decode_texts(attributes, typed)
    if not accept(attributes, joined, valid_time=True):
        return None
    if at == len(value):
        return unchecked_event(attributes, None, encoded=(NAME, value))
    size, start = varint.decode(value, at + 1)
    if start + size != len(value):
        return None
    payload, kind = read_data([(DATA[value[at]], value[start:])], attributes.get("datacontenttype"))
    return unchecked_event(attributes, payload, kind, (NAME, value))


def _read_required(value: bytes, text: str) -> tuple[dict[str, Any], int]:
    """Return the required attributes, and the index after the last required attribute."""
    start, id_end = _text_at(value, 1)
    source_start, source_end = _text_at(value, id_end + 1)
    type_at = source_end + len(_SPECVERSION_AND_TYPE)
    if value[0] != _ID or value[id_end] != _SOURCE or text[source_end:type_at] != _SPECVERSION_AND_TYPE:
        raise ValueError("the required attributes must come first")
    type_start, end = _text_at(value, type_at)
    return {
        "id": text[start:id_end],
        "source": text[source_start:source_end],
        "specversion": SPECVERSION,
        "type": text[type_start:end],
    }, end


def _read_entries(
    value: bytes, text: str, at: int, attributes: dict[str, Any]
) -> tuple[dict[str, AttributeType], int]:
    """Read the attributes in the map, and add them to the dictionary ``attributes``.

    Return the types of extensions by name, and the index after the map. The returned types do not include
    extensions that are in the field ce_string.
    """
    typed: dict[str, AttributeType] = {}
    count, end = len(attributes), len(value)
    while at < end and value[at] == ATTRIBUTES:
        start = at + 8 + value[at + 3]  # 8: tags and lengths of the entry, name, value and text
        entry = _entries.get(text[at:start])
        if entry is None:
            name, attribute_type, start, at = _read_entry(value, at, start)
        else:
            name, size, attribute_type = entry
            at = start + size
        count += 1
        if attribute_type is None:
            attributes[name] = text[start:at]
        else:
            attributes[name] = _READERS[attribute_type](value, start, at)
            if name != "time":
                typed[name] = attribute_type
    if len(attributes) != count:
        raise ValueError("an attribute must occur once (N-05)")
    return typed, at


def _text_at(value: bytes, at: int) -> tuple[int, int]:
    """Return the start and the end of a text; its length is encoded at the index ``at``."""
    size = value[at]
    if size > 0x7F:
        size, at = varint.decode(value, at)
        return at, at + size
    return at + 1, at + 1 + size


def _join_checked(attributes: dict[str, Any], typed: dict[str, AttributeType]) -> str:
    """Return all texts as one string; raise `ValueError` if an extension is in a wrong field."""
    for name, attribute_type in typed.items():
        if not _is_right(name, attributes[name], attribute_type):
            raise ValueError("an extension must be in a field of its type")
    return "".join([text for text in attributes.values() if type(text) is str])


def _decode_texts(attributes: dict[str, Any], typed: dict[str, AttributeType]) -> str:
    """Decode the texts that are not ASCII; return all texts as one string."""
    for name, text in attributes.items():
        if name not in typed and not text.isascii():
            attributes[name] = text.encode("latin-1").decode()
    return "".join([text for text in attributes.values() if type(text) is str])


def _is_right(name: str, value: Any, attribute_type: AttributeType) -> bool:
    """Return whether an extension with this name and value may be in a field of this type."""
    if type(value) is not str:
        return is_scalar(name, value)
    if find_extension(name) is None:
        return has_type(value, attribute_type)
    return attribute_type in allowed_types(name)


# --- entries of the map ----------------------------------------------------------


def _read_entry(value: bytes, at: int, text_at: int) -> tuple[str, AttributeType | None, int, int]:
    """Return the name and the type of a map entry, and the start and the end of its text.

    If the entry contains a number, the returned start is the index after the number's first byte. The
    returned type is None for a String and for ``dataschema``, because the value of these attributes is the
    text of the entry. The entry is cached only if its text starts at the index ``text_at``.
    """
    entry_at = at
    size, at = varint.decode(value, at + 1)
    end = at + size
    size, start = varint.decode(value, at + 1)
    name = value[start : start + size].decode("ascii")
    size, tag = varint.decode(value, start + size + 1)
    if value[at] != _KEY or value[start + len(name)] != _VALUE or tag + size != end:
        raise ValueError("an entry must have a name and a value")
    attribute_type = ATTR_TYPES[value[tag]]
    at = tag + 2
    if attribute_type not in _NUMBERS:
        size, at = varint.decode(value, tag + 1)
        if at + size != end:
            raise ValueError("a value must have one field")
    if name in REQUIRED or (name in CORE and type_of(name) is not attribute_type):
        raise ValueError("an attribute must be in its own field")
    is_text = attribute_type is AttributeType.STRING or name == "dataschema"
    known = name, end - at, None if is_text else attribute_type
    if at == text_at:
        remember(_entries, value[entry_at:at].decode("latin-1"), known)
    return name, known[2], at, end


def _read_boolean(value: bytes, start: int, end: int) -> bool:
    if start != end or value[start - 1] > 1:
        raise ValueError("a Boolean must be one byte")
    return value[start - 1] == 1


def _read_integer(value: bytes, start: int, end: int) -> int:
    number, at = varint.decode(value, start - 1)
    if at != end:
        raise ValueError("an Integer must be one number")
    return signed(number)


def _read_binary(value: bytes, start: int, end: int) -> bytes:
    return value[start:end]


def _read_uri(value: bytes, start: int, end: int) -> str:
    return value[start:end].decode()


def _read_timestamp(value: bytes, start: int, end: int) -> str:
    at = start + _SECONDS_SIZE
    text = _times.get(value[start:at])
    if text is None or at > end:
        text, at = _read_seconds(value, start, end)
    nanos = 0
    if at < end and value[at] == _NANOS:
        nanos, at = varint.decode(value, at + 1)
    if at != end or nanos >= 10**9:
        raise ValueError("a Timestamp must have seconds and nanoseconds")
    return f"{text[:-1]}.{nanos:09}".rstrip("0") + "Z" if nanos else text


def _read_seconds(value: bytes, start: int, end: int) -> tuple[str, int]:
    """Return the seconds of a Timestamp as text, and the index after the seconds."""
    if start == end or value[start] != _SECONDS:
        return from_epoch(0, 0), start
    seconds, at = varint.decode(value, start + 1)
    text = from_epoch(signed(seconds), 0)
    if at - start == _SECONDS_SIZE:
        remember(_times, value[start:at], text)
    return text, at


_NUMBERS: Final = (AttributeType.BOOLEAN, AttributeType.INTEGER)
_READERS: Final[dict[AttributeType, Callable[[bytes, int, int], Any]]] = {
    AttributeType.BOOLEAN: _read_boolean,
    AttributeType.INTEGER: _read_integer,
    AttributeType.BINARY: _read_binary,
    AttributeType.URI: _read_uri,
    AttributeType.URI_REFERENCE: _read_uri,
    AttributeType.TIMESTAMP: _read_timestamp,
}
