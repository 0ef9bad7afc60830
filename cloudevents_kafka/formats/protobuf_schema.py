"""Declares the message ``io.cloudevents.v1.CloudEvent``; the package protobuf writes this message.

The message is declared in its own descriptor pool, so that users can also load the generated code of the
official declaration. ``proto_data`` is declared as bytes, so a ``google.protobuf.Any`` is written with the
same bytes that were read. The declaration includes its own message for timestamps, so it needs no other
declarations.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

_FILE: Final = """
name: "cloudevents.proto" package: "io.cloudevents.v1" syntax: "proto3" message_type {
  name: "CloudEvent" oneof_decl { name: "data" }
  field { number: 1 type: TYPE_STRING name: "id" }
  field { number: 2 type: TYPE_STRING name: "source" }
  field { number: 3 type: TYPE_STRING name: "spec_version" }
  field { number: 4 type: TYPE_STRING name: "type" }
  field { number: 5 type: TYPE_MESSAGE name: "attributes" type_name: "AttributesEntry" label: LABEL_REPEATED }
  field { number: 6 type: TYPE_BYTES name: "binary_data" oneof_index: 0 }
  field { number: 7 type: TYPE_STRING name: "text_data" oneof_index: 0 }
  field { number: 8 type: TYPE_BYTES name: "proto_data" oneof_index: 0 }
  nested_type {
    name: "AttributesEntry" options { map_entry: true }
    field { number: 1 type: TYPE_STRING name: "key" }
    field { number: 2 type: TYPE_MESSAGE name: "value" type_name: "CloudEventAttributeValue" }
  }
  nested_type {
    name: "CloudEventAttributeValue" oneof_decl { name: "attr" }
    field { number: 1 type: TYPE_BOOL name: "ce_boolean" oneof_index: 0 }
    field { number: 2 type: TYPE_INT32 name: "ce_integer" oneof_index: 0 }
    field { number: 3 type: TYPE_STRING name: "ce_string" oneof_index: 0 }
    field { number: 4 type: TYPE_BYTES name: "ce_bytes" oneof_index: 0 }
    field { number: 5 type: TYPE_STRING name: "ce_uri" oneof_index: 0 }
    field { number: 6 type: TYPE_STRING name: "ce_uri_ref" oneof_index: 0 }
    field { number: 7 type: TYPE_MESSAGE name: "ce_timestamp" type_name: "Moment" oneof_index: 0 }
  }
  nested_type {
    name: "Moment"
    field { number: 1 type: TYPE_INT64 name: "seconds" }
    field { number: 2 type: TYPE_INT32 name: "nanos" }
  }
}
"""


_pool: Final = DescriptorPool()
_pool.AddSerializedFile(Parse(_FILE, FileDescriptorProto()).SerializeToString())
CloudEvent: Final[Any] = GetMessageClass(_pool.FindMessageTypeByName("io.cloudevents.v1.CloudEvent"))
"""The class of the message ``io.cloudevents.v1.CloudEvent``."""
