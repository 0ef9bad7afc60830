"""Functions that read the attributes and the data of an event from the fields of a Protobuf message.

The function `read` uses `protobuf_decoder`, and reports every problem of the event. The module
`_protobuf_scanner` reads valid events.
"""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import find_extension, type_of
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import from_epoch
from cloudevents_kafka.attributes.types import CORE, REQUIRED, AttributeType, canonical_text
from cloudevents_kafka.attributes.validation import find_repeats, find_type_problem
from cloudevents_kafka.codecs.json import encode_json, is_json
from cloudevents_kafka.codecs.payload import DataKind, encode_text, from_utf8
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats import protobuf_decoder
from cloudevents_kafka.formats.base import build_event, malformed
from cloudevents_kafka.formats.protobuf_decoder import ATTR_FIELDS, AttributeField
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.problems import DataError, Problem

NAME: Final = "protobuf"
_STRING: Final = AttributeType.STRING


def read(value: bytes) -> Event:
    """Return the event in a message. Raises `InvalidEvent` with all problems."""
    try:
        required, optional, data = protobuf_decoder.read(value)
    except protobuf_decoder.MalformedMessage as error:
        raise malformed("message io.cloudevents.v1.CloudEvent", error, "P-05") from None
    attributes, problems, received = _read_attributes(required, optional)
    payload, kind = None, DataKind.BYTES
    try:
        if data:
            content_type = attributes.get("datacontenttype", received.get("datacontenttype"))
            # Lenient reading keeps the text of a value in a wrong field.
            payload, kind = read_data(data, None if content_type is None else canonical_text(content_type))
    except DataError as error:
        problems.append(Problem("data", str(error), "P-03"))
    return build_event(attributes, payload, kind, (NAME, value), problems, received=received)


def _read_attributes(
    required: list[tuple[str, str]], optional: list[AttributeField]
) -> tuple[dict[str, Any], list[Problem], dict[str, Any]]:
    """Return the attributes by name, the problems of wrong fields, and the values of wrong fields.

    The value of a wrong field is returned only if the attribute is optional, if the oneof of the field has at
    most one field, and if no attribute of the event is repeated.
    """
    attributes: dict[str, Any] = dict(required)
    received: dict[str, Any] = {}
    problems: dict[str, Problem] = {}
    for name, attribute_type, value in optional:
        if attribute_type is not _STRING or name in _NO_STRINGS:
            known, problem = _read_value(name, attribute_type, value)
            if problem is not None:
                problems[name] = problem
                if name not in REQUIRED and (attribute_type is not None or value == 0):
                    received[name] = _as_received(attribute_type, value)
                continue
            value = known  # noqa: PLW2901  # the value of the field
        attributes[name] = value
    if len(attributes) == len(required) + len(optional):
        return attributes, [], {}
    names = [*(name for name, _ in required), *(name for name, _, _ in optional if name not in REQUIRED)]
    repeats = find_repeats(names)  # N-05: Protobuf keeps the last of two
    return attributes, [*repeats, *problems.values()], {} if repeats else received


_NO_STRINGS: Final = (*REQUIRED, *(name for name in CORE if type_of(name) is not _STRING))


def _read_value(name: str, attribute_type: AttributeType | None, value: Any) -> tuple[Any, Problem | None]:
    """Return the attribute's value from its field, or the problem of the field."""
    if name in REQUIRED:
        return None, Problem(name, "must be in its own field, not in the map attributes", "P-01")
    if name == "time" and attribute_type is AttributeType.TIMESTAMP:
        return _read_time(name, value)
    if attribute_type is None:
        return None, Problem(name, "must have one field of the oneof attr", "P-02", pluralize(value, "field"))
    allowed = allowed_types(name)
    if allowed and attribute_type not in allowed:
        fields = " or ".join(ATTR_FIELDS[allowed_type] for allowed_type in allowed)
        return None, Problem(name, f"must be in the field {fields}", "P-02", ATTR_FIELDS[attribute_type])
    if attribute_type is AttributeType.TIMESTAMP:
        return _read_time(name, value)
    return value, None if allowed else find_type_problem(name, value, attribute_type)


def _as_received(attribute_type: AttributeType | None, value: Any) -> Any:
    """Return the value of a field as an attribute value, or None if the field's oneof is empty."""
    if attribute_type is AttributeType.TIMESTAMP:
        time, _ = _read_time("", value)
        return str(value) if time is None else time
    return None if attribute_type is None else value


def _read_time(name: str, epoch: tuple[int, int]) -> tuple[str | None, Problem | None]:
    try:
        return from_epoch(*epoch), None
    except ValueError as error:
        return None, Problem(name, str(error), "P-02", preview(epoch))


def allowed_types(name: str) -> tuple[AttributeType, ...]:
    """Return the types of fields that may contain an attribute; an empty result means any type.

    A URI may be stored in the field for URI-references, because the Java SDK does not distinguish the two
    types.
    """
    attribute_type = type_of(name)
    if name in CORE:
        return (attribute_type,)
    if find_extension(name) is None:
        return ()
    if attribute_type is AttributeType.URI_REFERENCE:
        return (attribute_type, AttributeType.URI, _STRING)
    return (_STRING,) if attribute_type is _STRING else (attribute_type, _STRING)


def read_data(data: list[tuple[str, bytes]], content_type: str | None) -> tuple[bytes, DataKind]:
    if len(data) > 1:
        fields = ", ".join(sorted({field for field, _ in data}))
        raise DataError(f"must be one field of the oneof data, got {len(data)}: {fields}")
    field, value = data[0]
    if field == "binary_data":
        return value, DataKind.BYTES
    if field == "text_data":
        return _read_text(value, content_type)
    if not protobuf_decoder.is_any(value):
        raise DataError("proto_data must be a google.protobuf.Any")
    return value, DataKind.PROTO


def _read_text(raw: bytes, content_type: str | None) -> tuple[bytes, DataKind]:
    media = None if content_type is None else media_type(content_type)
    if media is not None and media.is_json and is_json(raw):
        return raw if media.utf8 else from_utf8(raw, content_type), DataKind.JSON
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise DataError("text_data must be UTF-8") from None
    if media is None:  # text, not JSON: it becomes a JSON string
        return encode_json(text), DataKind.JSON
    if media.is_json:
        return raw if media.utf8 else encode_text(text, content_type), DataKind.BYTES
    return encode_text(text, content_type), DataKind.TEXT
