"""Values of event formats written by hand: the least that can say one event without data.

So a reader is not tested with its own writer, and what no writer would write can be tried.
Attributes are text, bool, int and bytes, of any names; None is written where there is a null.
"""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import AttributeType

_FIELDS: Final = {"id": 1, "source": 2, "specversion": 3, "type": 4}
_TEXT_ARMS: Final = {AttributeType.URI: 5, AttributeType.URI_REFERENCE: 6}
_IN_COMPACT: Final = ("id", "source", "type", "datacontenttype", "dataschema", "subject")


def avro(attributes: dict[str, Any]) -> bytes:
    """Write a datum without data: one block of map entries, and the null branch."""
    entries = b"".join(_text(name) + _branch(value) for name, value in attributes.items())
    return _long(len(attributes)) + entries + b"\x00" + b"\x02"


def _branch(value: Any) -> bytes:
    if value is None:
        return b"\x00"
    if isinstance(value, bool):
        return b"\x02" + bytes([value])
    if isinstance(value, int):
        return b"\x04" + _long(value)
    if isinstance(value, bytes):
        return b"\x08" + _long(len(value)) + value
    return b"\x06" + _text(value)


def _text(text: str) -> bytes:
    raw = _utf8(text)
    return _long(len(raw)) + raw


def _long(number: int) -> bytes:
    return _varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _varint(number: int) -> bytes:
    """Write a number as Avro and Protobuf both do, seven bits a byte, the lowest first."""
    left = number
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes(written) + bytes([left])


def avro_compact(attributes: dict[str, Any]) -> bytes | None:
    """Write a datum of the compact schema; None where it cannot say what is told.

    It has places for texts alone where core attributes stand, none for specversion, and
    a number of microseconds for the time.
    """
    core = {
        name: value for name, value in attributes.items() if name in {*_IN_COMPACT, "time", "specversion"}
    }
    if core.pop("specversion", None) != "1.0" or not _all_texts(core) or "time" in core:
        return None
    if not core.keys() >= set(_IN_COMPACT[:3]):
        return None
    required = b"".join(_text(core[name]) for name in _IN_COMPACT[:3])
    optional = (b"\x02" + _text(core[name]) if name in core else b"\x00" for name in _IN_COMPACT[3:])
    entries = [
        _text(name) + _compact_branch(v)
        for name, v in attributes.items()
        if name not in (*core, "specversion")
    ]
    block = _long(len(entries)) + b"".join(entries) if entries else b""
    return required + b"".join(optional) + b"\x00" + block + b"\x00" + b"\x02"


def _compact_branch(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x00" + bytes([value])
    if isinstance(value, int):
        return b"\x02" + _long(value)
    return b"\x08" + _long(len(value)) + value if isinstance(value, bytes) else b"\x06" + _text(value)


def protobuf(attributes: dict[str, Any]) -> bytes | None:
    """Write a message without data; None where it cannot say what is told.

    The fields of required attributes take texts alone. Texts stand in ``ce_uri`` and
    ``ce_uri_ref`` where the attribute is known to be one, else in ``ce_string``. A time
    should be a number of seconds, and is written as the text it is: a reader has to refuse it.
    """
    required = {name: value for name, value in attributes.items() if name in _FIELDS}
    if not _all_texts(required):
        return None
    fields = [_field(_FIELDS[name], _utf8(text)) for name, text in required.items()]
    entries = [
        _field(5, _field(1, _utf8(name)) + _field(2, _arm(name, value)))
        for name, value in attributes.items()
        if name not in required
    ]
    return b"".join(fields + entries)


def _arm(name: str, value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x08" + bytes([value])
    if isinstance(value, int):
        return b"\x10" + _varint(value % 2**64)
    if isinstance(value, bytes):
        return _field(4, value)
    return _field(_TEXT_ARMS.get(type_of(name), 3), _utf8(value))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _all_texts(attributes: dict[str, Any]) -> bool:
    return all(isinstance(value, str) for value in attributes.values())


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
