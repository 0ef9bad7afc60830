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
_TYPES: Final = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
}
_EVENT: Final = "string id, string source, string spec_version, string type, AttributesEntry attributes"
_DATA: Final = "bytes binary_data, string text_data, bytes proto_data"
_VALUE: Final = (
    "bool ce_boolean, int32 ce_integer, string ce_string, bytes ce_bytes, string ce_uri, string ce_uri_ref, "
    "Moment ce_timestamp"
)


def _message(name: str, fields: str, oneof: str = "", oneof_fields: str = "") -> DescriptorProto:
    """Return a message type whose fields are numbered in their order, those of a oneof last."""
    message = DescriptorProto(name=name)
    if oneof:
        message.oneof_decl.add(name=oneof)
    plain = fields.split(", ") if fields else []
    in_oneof = oneof_fields.split(", ") if oneof_fields else []
    for number, declaration in enumerate([*plain, *in_oneof], 1):
        kind, field = declaration.split()
        added = message.field.add(name=field, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        if number > len(plain):
            added.oneof_index = 0
        if kind in _TYPES:
            added.type = _TYPES[kind]
        else:
            added.type = FieldDescriptorProto.TYPE_MESSAGE
            added.type_name = f".{_PACKAGE}.CloudEvent.{kind}"
    return message


def _create_class() -> Any:
    event = _message("CloudEvent", _EVENT, "data", _DATA)
    event.field[4].label = FieldDescriptorProto.LABEL_REPEATED
    entry = _message("AttributesEntry", "string key, CloudEventAttributeValue value")
    entry.options.map_entry = True
    value = _message("CloudEventAttributeValue", "", "attr", _VALUE)
    event.nested_type.extend([entry, value, _message("Moment", "int64 seconds, int32 nanos")])
    file = FileDescriptorProto(name="cloudevents.proto", package=_PACKAGE, syntax="proto3")
    file.message_type.append(event)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.CloudEvent"))


CloudEvent: Final = _create_class()
"""The message class."""
