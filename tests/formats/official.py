"""The official declaration of the Protobuf messages, as generated code has it, and their wire format."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import any_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

from cloudevents_kafka import Event, InvalidEvent
from cloudevents_kafka.formats.protobuf import ProtobufFormat

_FILE = """
name: "io/cloudevents/v1/cloudevents.proto" package: "io.cloudevents.v1" syntax: "proto3"
dependency: "google/protobuf/any.proto" dependency: "google/protobuf/timestamp.proto"
message_type {
  name: "CloudEvent"
  field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "source" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "spec_version" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "type" number: 4 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "attributes" number: 5 label: LABEL_REPEATED type: TYPE_MESSAGE
          type_name: ".io.cloudevents.v1.CloudEvent.AttributesEntry" }
  field { name: "binary_data" number: 6 label: LABEL_OPTIONAL type: TYPE_BYTES oneof_index: 0 }
  field { name: "text_data" number: 7 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
  field { name: "proto_data" number: 8 label: LABEL_OPTIONAL type: TYPE_MESSAGE
          type_name: ".google.protobuf.Any" oneof_index: 0 }
  oneof_decl { name: "data" }
  nested_type {
    name: "AttributesEntry"
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".io.cloudevents.v1.CloudEvent.CloudEventAttributeValue" }
    options { map_entry: true }
  }
  nested_type {
    name: "CloudEventAttributeValue"
    field { name: "ce_boolean" number: 1 label: LABEL_OPTIONAL type: TYPE_BOOL oneof_index: 0 }
    field { name: "ce_integer" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 oneof_index: 0 }
    field { name: "ce_string" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
    field { name: "ce_bytes" number: 4 label: LABEL_OPTIONAL type: TYPE_BYTES oneof_index: 0 }
    field { name: "ce_uri" number: 5 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
    field { name: "ce_uri_ref" number: 6 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
    field { name: "ce_timestamp" number: 7 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".google.protobuf.Timestamp" oneof_index: 0 }
    oneof_decl { name: "attr" }
  }
}
"""


def _declared() -> Any:
    pool = DescriptorPool()
    for known in (any_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(Parse(_FILE, FileDescriptorProto()).SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("io.cloudevents.v1.CloudEvent"))


CloudEvent: Any = _declared()

PROTOBUF = ProtobufFormat()
# id 1, source /s, specversion 1.0, type t
MIN = bytes.fromhex("0a013112022f731a03312e30220174")


def least(**more: Any) -> Event:
    return Event(**{"id": "1", "source": "/s", "type": "t", **more})


def sized(content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([len(content)]) + content


def entry(name: str, value: bytes) -> bytes:
    """Return an entry of the map of attributes with these fields."""
    return b"\x2a" + sized(b"\x0a" + sized(name.encode()) + b"\x12" + sized(value))


def bytes_field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + sized(content)


def problems(value: bytes) -> list[tuple[str | None, str]]:
    with pytest.raises(InvalidEvent) as caught:
        PROTOBUF.decode(value)
    assert str(caught.value)
    return [(problem.attribute, problem.clause) for problem in caught.value.problems]


def outcome(value: bytes) -> Event | InvalidEvent:
    try:
        return PROTOBUF.decode(value)
    except InvalidEvent as error:
        return error
