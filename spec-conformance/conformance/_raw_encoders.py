"""Minimal encoders of the event formats, for events without data.

With them a reader is not tested with its own writer, and a case can use values that no
writer produces. Attributes are str, bool, int and bytes, with any names; None is written as
null.
"""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.primitives import varint, zigzag

_REQUIRED_FIELDS: Final = {"id": 1, "source": 2, "specversion": 3, "type": 4}
_URI_FIELDS: Final = {AttributeType.URI: 5, AttributeType.URI_REFERENCE: 6}
_COMPACT_FIELDS: Final = ("id", "source", "type", "datacontenttype", "dataschema", "subject")


def avro(attributes: dict[str, Any]) -> bytes:
    """Return an Avro datum without data: one block of map entries, and the null branch."""
    entries = b"".join(_string(name) + _union(value) for name, value in attributes.items())
    return zigzag.encode(len(attributes)) + entries + b"\x00" + b"\x02"


def _union(value: Any, branches: bytes = b"\x02\x04") -> bytes:
    """Return a value after its branch: null, the two of Boolean and Integer, string or bytes."""
    if value is None:
        return b"\x00"
    if isinstance(value, bool):
        return branches[:1] + bytes([value])
    if isinstance(value, int):
        return branches[1:] + zigzag.encode(value)
    if isinstance(value, bytes):
        return b"\x08" + zigzag.encode(len(value)) + value
    return b"\x06" + _string(value)


def _string(text: str) -> bytes:
    raw = _utf8(text)
    return zigzag.encode(len(raw)) + raw


def avro_compact(attributes: dict[str, Any]) -> bytes | None:
    """Return a datum of the compact schema, or None if the schema cannot express the attributes.

    Its core attributes are strings, except the time, a number of microseconds; specversion
    has no field.
    """
    fields = {*_COMPACT_FIELDS, "time", "specversion"}
    core = {name: value for name, value in attributes.items() if name in fields}
    others = {name: value for name, value in attributes.items() if name not in fields}
    if core.pop("specversion", None) != "1.0" or not _all_strings(core) or "time" in core:
        return None
    if not core.keys() >= set(_COMPACT_FIELDS[:3]):
        return None
    required = b"".join(_string(core[name]) for name in _COMPACT_FIELDS[:3])
    optional = (b"\x02" + _string(core[name]) if name in core else b"\x00" for name in _COMPACT_FIELDS[3:])
    entries = [_string(name) + _union(value, b"\x00\x02") for name, value in others.items()]
    block = zigzag.encode(len(entries)) + b"".join(entries) if entries else b""
    return required + b"".join(optional) + b"\x00" + block + b"\x00" + b"\x02"


def protobuf(attributes: dict[str, Any]) -> bytes | None:
    """Return a Protobuf message without data, or None if it cannot express the attributes.

    The fields of required attributes are strings. A text is a ``ce_uri`` or ``ce_uri_ref`` if
    the attribute has that type, else a ``ce_string``. A time, which must be a timestamp, is
    written as a ``ce_string`` too: a reader must refuse it.
    """
    required = {name: value for name, value in attributes.items() if name in _REQUIRED_FIELDS}
    if not _all_strings(required):
        return None
    fields = [_field(_REQUIRED_FIELDS[name], _utf8(text)) for name, text in required.items()]
    entries = [
        _field(5, _field(1, _utf8(name)) + _field(2, _attribute_value(name, value)))
        for name, value in attributes.items()
        if name not in required
    ]
    return b"".join(fields + entries)


def _attribute_value(name: str, value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x08" + bytes([value])
    if isinstance(value, int):
        return b"\x10" + varint.encode(value % 2**64)
    if isinstance(value, bytes):
        return _field(4, value)
    return _field(_URI_FIELDS.get(type_of(name), 3), _utf8(value))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint.encode(len(content)) + content


def _all_strings(attributes: dict[str, Any]) -> bool:
    return all(isinstance(value, str) for value in attributes.values())


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
