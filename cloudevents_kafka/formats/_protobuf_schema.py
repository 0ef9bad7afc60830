"""The message ``io.cloudevents.v1.CloudEvent``, declared for the package protobuf, which writes it.

It is in a descriptor pool of its own, so that users can load generated code of the official
declaration, too. ``proto_data`` and timestamps are declared by their bytes on the wire: an
Any is written as the bytes that were read, and no other declaration is loaded.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_PACKAGE: Final = "io.cloudevents.v1"
_STRING: Final = FieldDescriptorProto.TYPE_STRING
_BYTES: Final = FieldDescriptorProto.TYPE_BYTES
_VALUE: Final = "CloudEvent.CloudEventAttributeValue"
_ENTRY: Final = "CloudEvent.AttributesEntry"
_MOMENT: Final = "CloudEvent.Moment"

_Fields = dict[int, tuple[str, int | str]]


def _message(
    name: str, fields: _Fields, oneof: str = "", oneof_fields: _Fields | None = None
) -> DescriptorProto:
    """Return a message type with fields by number, and a oneof."""
    message = DescriptorProto(name=name)
    if oneof_fields:
        message.oneof_decl.add(name=oneof)
    for number, (field, kind) in {**fields, **(oneof_fields or {})}.items():
        added = message.field.add(name=field, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        if oneof_fields and number in oneof_fields:
            added.oneof_index = 0
        if isinstance(kind, str):
            added.type = FieldDescriptorProto.TYPE_MESSAGE
            added.type_name = f".{_PACKAGE}.{kind}"
        else:
            added.type = kind
    return message


def _create_class() -> Any:
    event = _message(
        "CloudEvent",
        {
            1: ("id", _STRING),
            2: ("source", _STRING),
            3: ("spec_version", _STRING),
            4: ("type", _STRING),
            5: ("attributes", _ENTRY),
        },
        "data",
        {6: ("binary_data", _BYTES), 7: ("text_data", _STRING), 8: ("proto_data", _BYTES)},
    )
    event.field[4].label = FieldDescriptorProto.LABEL_REPEATED
    entry = _message("AttributesEntry", {1: ("key", _STRING), 2: ("value", _VALUE)})
    entry.options.map_entry = True
    value = _message(
        "CloudEventAttributeValue",
        {},
        "attr",
        {
            1: ("ce_boolean", FieldDescriptorProto.TYPE_BOOL),
            2: ("ce_integer", FieldDescriptorProto.TYPE_INT32),
            3: ("ce_string", _STRING),
            4: ("ce_bytes", _BYTES),
            5: ("ce_uri", _STRING),
            6: ("ce_uri_ref", _STRING),
            7: ("ce_timestamp", _MOMENT),
        },
    )
    moment = _message(
        "Moment",
        {
            1: ("seconds", FieldDescriptorProto.TYPE_INT64),
            2: ("nanos", FieldDescriptorProto.TYPE_INT32),
        },
    )
    event.nested_type.extend([entry, value, moment])
    file = FileDescriptorProto(name="cloudevents.proto", package=_PACKAGE, syntax="proto3")
    file.message_type.append(event)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.CloudEvent"))


CloudEvent: Final = _create_class()
"""The message class."""
