"""Reading Protobuf events: the attributes and the data in the fields of a message.

`read_valid` uses the parser of the package protobuf; `read` uses `protobuf_decoder`, and finds every
problem.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import find_extension, type_of
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.timestamps import from_epoch
from cloudevents_kafka.attributes.types import CORE, REQUIRED, AttributeType
from cloudevents_kafka.attributes.validation import find_repeats, find_type_problem
from cloudevents_kafka.codecs.json import encode_json, is_json
from cloudevents_kafka.codecs.payload import DataKind, encode_text, from_utf8, implies_json
from cloudevents_kafka.errors import DataError, Problem, preview
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.formats import protobuf_decoder
from cloudevents_kafka.formats._base import build_event, malformed
from cloudevents_kafka.formats.protobuf_decoder import ATTR_FIELDS, AttributeField
from cloudevents_kafka.primitives.plural import pluralize

NAME: Final = "protobuf"
_STRING: Final = AttributeType.STRING
_FIELD_TYPES: Final = {field: attribute_type for attribute_type, field in ATTR_FIELDS.items()}


def read(value: bytes) -> Event:
    """Return the event of a message. Raises `InvalidEvent` with all problems."""
    try:
        required, optional, data = protobuf_decoder.read(value)
    except protobuf_decoder.MalformedMessage as error:
        raise malformed("message io.cloudevents.v1.CloudEvent", error, "P-05") from None
    attributes, problems = _read_attributes(required, optional)
    payload, kind = None, DataKind.BYTES
    try:
        if data:
            payload, kind = _read_data(data, attributes.get("datacontenttype"))
    except DataError as error:
        problems.append(Problem("data", str(error), "P-03"))
    return build_event(attributes, payload, kind, (NAME, value), problems)


@cache
def _parser() -> tuple[Callable[[bytes], Any], type[Exception]] | None:
    """Return the parser of protobuf, if it is installed, and its error."""
    try:
        from google.protobuf.message import DecodeError as ParseError

        from cloudevents_kafka.formats.protobuf_schema import ListedCloudEvent
    except ImportError:
        return None
    return ListedCloudEvent.FromString, ParseError


def read_valid(value: bytes) -> Event | None:
    """Return the event of a message, or None if it breaks a rule or `read` must read it."""
    message = _parse(value)
    if message is None:
        return None
    attributes: dict[str, Any] = {
        "id": message.id,
        "source": message.source,
        "specversion": message.spec_version,
        "type": message.type,
    }
    entries = message.attributes
    for entry in entries:
        name, attr = entry.key, entry.value
        field = attr.WhichOneof("attr")
        if field == "ce_string" and name not in _NO_STRINGS:
            attributes[name] = attr.ce_string
        elif not _add_value(attributes, name, field, attr):
            return None
    if len(attributes) != len(REQUIRED) + len(entries) or not accept(
        attributes
    ):  # N-05: an attribute occurs once
        return None
    try:
        payload, kind = _read_field(message, attributes.get("datacontenttype"))
    except DataError:
        return None
    return unchecked_event(attributes, payload, kind, (NAME, value))


def _parse(value: bytes) -> Any:
    """Return the message in a value, or None unless it is canonical.

    The parser of protobuf merges repeated fields, drops bits of numbers, and forgets the order of
    fields. A message that is serialized as the same bytes, without unknown fields, has none of that.
    """
    if (parser := _parser()) is None:
        return None
    parse, error = parser
    try:
        message = parse(value)
    except error:
        return None
    message.DiscardUnknownFields()
    return message if message.SerializeToString() == value else None


def _add_value(attributes: dict[str, Any], name: str, field: str | None, attr: Any) -> bool:
    """Add an attribute that is not any text; return whether its field is right."""
    if field is None:
        return False
    value = getattr(attr, field)
    if field == "ce_timestamp":
        value = value.seconds, value.nanos
    attributes[name], problem = _read_value(name, _FIELD_TYPES[field], value)
    return problem is None


def _read_field(message: Any, content_type: str | None) -> tuple[bytes | None, DataKind]:
    field = message.WhichOneof("data")
    if field is None:
        return None, DataKind.BYTES
    data = getattr(message, field)
    return _read_data([(field, data.encode() if field == "text_data" else data)], content_type)


def _read_attributes(
    required: list[tuple[str, str]], optional: list[AttributeField]
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the attributes by name, and the problems of their fields."""
    attributes: dict[str, Any] = dict(required)
    problems: dict[str, Problem] = {}
    for name, attribute_type, value in optional:
        if attribute_type is not _STRING or name in _NO_STRINGS:
            value, problem = _read_value(name, attribute_type, value)  # noqa: PLW2901  # the value of the field
            if problem is not None:
                problems[name] = problem
                continue
        attributes[name] = value
    if len(attributes) == len(required) + len(optional):
        return attributes, []
    names = [*(name for name, _ in required), *(name for name, _, _ in optional if name not in REQUIRED)]
    return attributes, [*find_repeats(names), *problems.values()]  # N-05: Protobuf keeps the last of two


_NO_STRINGS: Final = (*REQUIRED, *(name for name in CORE if type_of(name) is not _STRING))


def _read_value(name: str, attribute_type: AttributeType | None, value: Any) -> tuple[Any, Problem | None]:
    """Return the value of an attribute's field, or the problem of the field."""
    if name in REQUIRED:
        return None, Problem(name, "must be in its own field, not in the map attributes", "P-01")
    if name == "time" and attribute_type is AttributeType.TIMESTAMP:
        return _read_time(name, value)
    if attribute_type is None:
        return None, Problem(name, "must have one field of the oneof attr", "P-02", pluralize(value, "field"))
    allowed = _allowed_types(name)
    if allowed and attribute_type not in allowed:
        fields = " or ".join(ATTR_FIELDS[allowed_type] for allowed_type in allowed)
        return None, Problem(name, f"must be in the field {fields}", "P-02", ATTR_FIELDS[attribute_type])
    if attribute_type is AttributeType.TIMESTAMP:
        return _read_time(name, value)
    return value, None if allowed else find_type_problem(name, value, attribute_type)


def _read_time(name: str, epoch: tuple[int, int]) -> tuple[str | None, Problem | None]:
    try:
        return from_epoch(*epoch), None
    except ValueError as error:
        return None, Problem(name, str(error), "P-02", preview(epoch))


def _allowed_types(name: str) -> tuple[AttributeType, ...]:
    """Return the types of the fields that an attribute may be in, or none if it may be in any.

    A URI is a URI-reference, too: the Java SDK does not distinguish them.
    """
    attribute_type = type_of(name)
    if name in CORE:
        return (attribute_type,)
    if find_extension(name) is None:
        return ()
    if attribute_type is AttributeType.URI_REFERENCE:
        return (attribute_type, AttributeType.URI, _STRING)
    return (_STRING,) if attribute_type is _STRING else (attribute_type, _STRING)


def _read_data(data: list[tuple[str, bytes]], content_type: Any) -> tuple[bytes, DataKind]:
    if len(data) > 1:
        fields = ", ".join(sorted({field for field, _ in data}))
        raise DataError(f"must be one field of the oneof data, got {len(data)}: {fields}")
    field, value = data[0]
    if field == "binary_data":
        return value, DataKind.BYTES
    if field == "text_data":
        return _read_text(value, content_type if isinstance(content_type, str) else None)
    if not protobuf_decoder.is_any(value):
        raise DataError("proto_data must be a google.protobuf.Any")
    return value, DataKind.PROTO


def _read_text(raw: bytes, content_type: str | None) -> tuple[bytes, DataKind]:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise DataError("text_data must be UTF-8") from None
    if content_type is None:  # text, not JSON: it becomes a JSON string
        return encode_json(text), DataKind.JSON
    if implies_json(content_type):
        return from_utf8(raw, content_type), DataKind.JSON if is_json(raw) else DataKind.BYTES
    return encode_text(text, content_type), DataKind.TEXT
