"""The event formats: an event as one value, in structured content mode.

Read `registry` first: it finds a format by the suffix of its media type, such as ``json``
of ``application/cloudevents+json``, and `register_format` adds one. `base` has what the
built-in formats share. `json`, `avro` and `protobuf` are the formats of the specification;
`avro_compact` has two experimental ones, ``avro-compact`` and ``avrocompact``, its read-only
form of the Java SDK. `json_reader` reads valid events in JSON, and `json_decoder` names the problems of
invalid events. `_protobuf_scanner` and `_protobuf_reader` do so for Protobuf; `protobuf_decoder`
reads untrusted bytes. `protobuf_schema` is the message that the package protobuf writes.
"""

from cloudevents_kafka.formats.registry import Format

__all__ = ["Format"]
