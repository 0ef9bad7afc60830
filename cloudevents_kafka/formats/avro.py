"""The Avro event format, ``application/cloudevents+avro``, as a bare datum.

The schema is the official one: the order of its union branches is the wire format.
No container file, no single-object marker and no registry prefix goes before the
datum. This module says which branch a value takes; fastavro writes the bytes.
"""

from __future__ import annotations

import io
from typing import Any, Final

import fastavro

from cloudevents_kafka.attributes.validation import find_repeats
from cloudevents_kafka.codecs.avro_binary import Malformed
from cloudevents_kafka.codecs.json import decode_json, encode_json
from cloudevents_kafka.codecs.payload import DataKind, encode_text, from_utf8, implies_json
from cloudevents_kafka.errors import DataError, EncodeError, InvalidEvent, Problem, preview_name
from cloudevents_kafka.event import Event, raw_parts
from cloudevents_kafka.formats import avro_decoder
from cloudevents_kafka.formats.build import build_event
from cloudevents_kafka.record import to_bytes

_NODE: Final = {
    "type": "record",
    "name": "AvroCloudEventData",
    "fields": [
        {
            "name": "value",
            "type": {
                "type": "map",
                "values": [
                    "null",
                    "boolean",
                    {"type": "map", "values": "AvroCloudEventData"},
                    {"type": "array", "items": "AvroCloudEventData"},
                    "double",
                    "string",
                ],
            },
        }
    ],
}
SCHEMA: Final[dict[str, Any]] = {
    "namespace": "io.cloudevents",
    "type": "record",
    "name": "AvroCloudEvent",
    "version": "1.0",
    "fields": [
        {
            "name": "attribute",
            "type": {"type": "map", "values": ["null", "boolean", "int", "string", "bytes"]},
        },
        {
            "name": "data",
            "type": [
                "bytes",
                "null",
                "boolean",
                {"type": "map", "values": ["null", "boolean", _NODE, "double", "string"]},
                {"type": "array", "items": "AvroCloudEventData"},
                "double",
                "string",
            ],
        },
    ],
}
_EXACT: Final = 2**53  # whole numbers up to here are the same as doubles
_PARSED: Final = fastavro.parse_schema(SCHEMA)


class AvroFormat:
    """Avro by the official schema ``io.cloudevents.AvroCloudEvent``.

    Data with a content type goes as its bytes. A JSON value without one goes through
    the unions, where they can hold it exactly: they have no place for lists of
    anything but objects, and numbers are doubles.
    """

    name: Final = "avro"

    def encode(self, event: Event) -> bytes:
        """Write an event as one datum; raises `EncodeError`."""
        attributes, wire = raw_parts(event)
        if wire is not None and wire[0] == self.name:
            return wire[1]
        out = io.BytesIO()
        fastavro.schemaless_writer(out, _PARSED, {"attribute": attributes, "data": _to_union(event)})
        return out.getvalue()

    def decode(self, value: bytes) -> Event:
        """Read one event from one datum; raises `InvalidEvent`, naming every problem."""
        if type(value) is not bytes:
            value = to_bytes(value) or b""
        try:
            entries, data = avro_decoder.read(value)
        except Malformed as error:
            raise InvalidEvent([_malformed(error)]) from None
        attributes = {name: entry for name, entry in entries if entry is not None}  # a null is an absent one
        problems = [] if len(attributes) == len(entries) else find_repeats(name for name, _ in entries)
        payload, kind = None, DataKind.BYTES
        try:
            payload, kind = _from_union(data, attributes.get("datacontenttype"))
        except DataError as error:
            problems.append(Problem("data", str(error), "A-06"))
        return build_event(attributes, payload, kind, (self.name, value), problems)


def _malformed(error: Malformed) -> Problem:
    rule = f"the value must be one datum of the schema io.cloudevents.AvroCloudEvent, but {error}"
    return Problem(None, rule, "A-01")


def _to_union(event: Event) -> Any:
    if event.kind is not DataKind.JSON or event.datacontenttype is not None:
        return event.payload
    try:
        data = decode_json(event.payload or b"")  # not event.data, which a reader may have changed
    except DataError as error:
        raise _unfit(f"this data: {error}") from None
    if data is None:
        raise _unfit("a JSON null, which would read as no data")
    if isinstance(data, dict):
        return {name: _in_top(value) for name, value in data.items()}
    return _objects(data) if isinstance(data, list) else _scalar(data)


# The unions of the schema, one function each. An object is a record around a map, but
# for the outermost; below that a map or an array holds records only, that is, objects.


def _in_top(value: Any) -> Any:
    if isinstance(value, dict):
        return _record(value, 1)
    if isinstance(value, list):
        raise _unfit("a list inside the outermost object")
    return _scalar(value)


def _record(value: Any, depth: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unfit(f"a {type(value).__name__} where only objects can stand")
    if depth > avro_decoder.MAX_DEPTH:
        raise _unfit("data nested so deep")
    return {"value": {name: _in_record(entry, depth + 1) for name, entry in value.items()}}


def _in_record(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return {name: _record(entry, depth) for name, entry in value.items()}
    return _objects(value, depth) if isinstance(value, list) else _scalar(value)


def _objects(items: list[Any], depth: int = 1) -> list[dict[str, Any]]:
    return [_record(item, depth) for item in items]


def _scalar(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        if not -_EXACT <= value <= _EXACT:
            raise _unfit("a whole number beyond 2^53, which a double would change")
        return float(value)
    return value


def _unfit(what: str) -> EncodeError:
    return EncodeError(
        f"the Avro format has no place for {what}; set a datacontenttype, and the data goes as bytes "
        "(A-06, Avro format 3)"
    )


def _from_union(data: Any, content_type: Any) -> tuple[bytes | None, DataKind]:
    if data is None or isinstance(data, bytes):
        return data, DataKind.BYTES
    if not isinstance(content_type, str):
        content_type = None
    if implies_json(content_type):
        return from_utf8(encode_json(data), content_type), DataKind.JSON
    if isinstance(data, str):
        return encode_text(data, content_type), DataKind.TEXT
    raise DataError(f"must be bytes or a string where datacontenttype is {preview_name(content_type)}")
