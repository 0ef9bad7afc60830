"""The Avro event format, ``application/cloudevents+avro``.

A structured value is one datum of the official schema, without a container file, a single-object header or
the prefix of a schema registry. fastavro only writes the datum. If fastavro read the datum, a hostile datum
could end the process, because fastavro recurses in C without a limit. If an attribute occurred twice,
fastavro would also drop one of its values. The schema is small and fixed, so `read` decodes the datum itself,
with limits.
"""

from __future__ import annotations

import io
import struct
from typing import Any, Final

import fastavro

from cloudevents_kafka.attributes.types import AttributeValue
from cloudevents_kafka.attributes.validation import find_repeats
from cloudevents_kafka.codecs.avro_binary import (
    MalformedDatum,
    Reader,
    read_attributes,
    read_boolean,
    read_bytes,
    read_count,
    read_datum,
    read_long,
    read_null,
    read_text,
    union_reader,
)
from cloudevents_kafka.codecs.json import decode_json
from cloudevents_kafka.codecs.payload import DataKind, encode_text, implies_json, json_payload
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.base import BaseFormat, build_event, malformed
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.primitives.preview import preview_name
from cloudevents_kafka.problems import DataError, EncodeError, Problem

__all__ = ["AvroFormat"]

_NAME: Final = "AvroCloudEventData"
_MAP: Final = {"type": "map", "values": _NAME}
_ARRAY: Final = {"type": "array", "items": _NAME}
_MEMBERS: Final = {"type": "map", "values": ["null", "boolean", _MAP, _ARRAY, "double", "string"]}
_NODE: Final = {"type": "record", "name": _NAME, "fields": [{"name": "value", "type": _MEMBERS}]}
_OBJECT: Final = {"type": "map", "values": ["null", "boolean", _NODE, "double", "string"]}
_ATTRIBUTES: Final = {"type": "map", "values": ["null", "boolean", "int", "string", "bytes"]}
SCHEMA: Final[dict[str, Any]] = {
    "namespace": "io.cloudevents",
    "type": "record",
    "name": "AvroCloudEvent",
    "version": "1.0",
    "fields": [
        {"name": "attribute", "type": _ATTRIBUTES},
        {"name": "data", "type": ["bytes", "null", "boolean", _OBJECT, _ARRAY, "double", "string"]},
    ],
}
MAX_DEPTH: Final = 64
"""The maximum nesting of objects in data; the limit is needed because reading and writing recurse."""

_MAX_EXACT: Final = 2**53  # integers up to here are exact as doubles
_PARSED: Final = fastavro.parse_schema(SCHEMA)
_read_double: Final = struct.Struct("<d").unpack_from
_Datum = tuple[list[tuple[str, AttributeValue | None]], Any]


class AvroFormat(BaseFormat):
    """The Avro format with the official schema ``io.cloudevents.AvroCloudEvent``.

    If the event has a content type, its data is written as bytes. JSON data without a content type is written
    with the unions of the schema if they can represent the value exactly: in the unions, numbers are doubles,
    and lists contain only objects.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.formats.avro import AvroFormat
        >>> avro = AvroFormat()
        >>> avro.decode(avro.encode(Event(id="1", source="/shop", type="order.placed"))).type
        'order.placed'
    """

    name = "avro"

    def _encode(self, event: Event, attributes: dict[str, AttributeValue]) -> bytes:
        out = io.BytesIO()
        # specversion and the extensions are in the same map.
        fastavro.schemaless_writer(out, _PARSED, {"attribute": attributes, "data": _to_union(event)})
        return out.getvalue()

    def _decode(self, value: bytes) -> Event:
        try:
            entries, data = read(value)
        except MalformedDatum as error:
            raise malformed("datum of the schema io.cloudevents.AvroCloudEvent", error, "A-01") from None
        attributes = {name: entry for name, entry in entries if entry is not None}  # null is absent
        # N-05: a map of Avro may have a key twice.
        problems = [] if len(attributes) == len(entries) else find_repeats(name for name, _ in entries)
        payload, kind = None, DataKind.BYTES
        try:
            payload, kind = _from_union(data, attributes.get("datacontenttype"))
        except DataError as error:
            problems.append(Problem("data", str(error), "A-06"))
        return build_event(attributes, payload, kind, (self.name, value), problems)

    def read_data(self, value: bytes, content_type: str | None) -> tuple[bytes | None, DataKind]:
        """Return the data in a datum, read with another content type."""
        return _from_union(read(value)[1], content_type)


# --- writing -------------------------------------------------------------------


def _to_union(event: Event) -> Any:
    if event.kind is not DataKind.JSON or event.datacontenttype is not None:
        return event.payload  # bytes, or null for no data
    try:  # a value without a content type is JSON
        data = decode_json(event.payload or b"")  # not event.data, which the user may have changed
    except DataError as error:
        raise _unsupported(f"this data: {error}") from None
    if data is None:
        raise _unsupported("a JSON null, which would be read as no data")
    if isinstance(data, dict):
        return {
            name: _record(value, 1) if isinstance(value, dict) else _to_scalar(value)
            for name, value in data.items()
        }
    return [_record(item, 1) for item in data] if isinstance(data, list) else _to_scalar(data)


# The outermost object is a map; every other object is a record with a map. Below the outermost object, maps
# and arrays contain only records.


def _record(value: Any, depth: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unsupported(f"{with_article(type(value).__name__)} where the schema has only objects")
    if depth > MAX_DEPTH:
        raise _unsupported(f"data nested deeper than {MAX_DEPTH} objects")
    return {"value": {name: _record_value(entry, depth + 1) for name, entry in value.items()}}


def _record_value(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return {name: _record(entry, depth) for name, entry in value.items()}
    return [_record(item, depth) for item in value] if isinstance(value, list) else _to_scalar(value)


def _to_scalar(value: Any) -> Any:
    if isinstance(value, list):
        raise _unsupported("a list inside the outermost object")
    if isinstance(value, int) and not isinstance(value, bool):
        if not -_MAX_EXACT <= value <= _MAX_EXACT:
            raise _unsupported("an integer beyond 2^53, which is not exact as a double")
        return float(value)
    return value


def _unsupported(what: str) -> EncodeError:
    return EncodeError(
        f"the Avro format cannot express {what}; set a datacontenttype, so that the data is written as "
        "bytes (A-06, Avro format 3)"
    )


# --- reading -------------------------------------------------------------------


def _from_union(data: Any, content_type: Any) -> tuple[bytes | None, DataKind]:
    if data is None or isinstance(data, bytes):
        return data, DataKind.BYTES
    if not isinstance(content_type, str):
        content_type = None
    if implies_json(content_type):
        return json_payload(data, content_type), DataKind.JSON
    if isinstance(data, str):
        return encode_text(data, content_type), DataKind.TEXT
    raise DataError(f"must be bytes or a string if datacontenttype is {preview_name(content_type)}")


def read(datum: bytes) -> _Datum:
    """Return the names and values of all attributes, and the data.

    The attributes are in order, and a name may occur twice. The returned data is bytes, None or a JSON value.
    Raises `MalformedDatum` if the bytes are not a datum of the schema.
    """
    return read_datum(datum, _read_fields)


def _read_fields(datum: bytes) -> tuple[_Datum, int]:
    attributes, at = read_attributes(datum, 0, _attribute)
    data, at = _data(datum, at, 0)
    return (attributes, data), at


def _double(datum: bytes, at: int, _: int) -> tuple[float, int]:
    """Return a double, or an int if the double is integral, because 1 in JSON must not become 1.0."""
    number: float = _read_double(datum, at)[0]
    return int(number) if number.is_integer() and abs(number) <= _MAX_EXACT else number, at + 8


def _map(read_value: Reader[Any]) -> Reader[dict[str, Any]]:
    def read_map(datum: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        count, at = read_count(datum, at)
        while count:
            for _ in range(count):
                name, at = read_text(datum, at)
                if name in values:
                    raise MalformedDatum("it has a map with a repeated key")
                values[name], at = read_value(datum, at, depth)
            count, at = read_count(datum, at)
        return values, at

    return read_map


def _array(read_item: Reader[Any]) -> Reader[list[Any]]:
    def read_array(datum: bytes, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        count, at = read_count(datum, at)
        while count:
            for _ in range(count):
                item, at = read_item(datum, at, depth)
                items.append(item)
            count, at = read_count(datum, at)
        return items, at

    return read_array


def _object(datum: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    """Return the map of an ``AvroCloudEventData``, a record whose only field is the map."""
    if depth >= MAX_DEPTH:
        raise MalformedDatum(f"its data is nested deeper than {MAX_DEPTH} objects")
    return _members(datum, at, depth + 1)


_attribute: Final = union_reader(read_null, read_boolean, read_long, read_text, read_bytes)
_members: Final = _map(
    union_reader(read_null, read_boolean, _map(_object), _array(_object), _double, read_text)
)
_data: Final = union_reader(
    read_bytes,
    read_null,
    read_boolean,
    _map(union_reader(read_null, read_boolean, _object, _double, read_text)),
    _array(_object),
    _double,
    read_text,
)
