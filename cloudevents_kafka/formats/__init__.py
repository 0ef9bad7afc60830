"""The event formats: they write an event as one value, for structured content mode.

Read `registry` first: it finds a format by the suffix of its media type, such as ``json`` of
``application/cloudevents+json``, and `register_format` adds one. `base` has what the built-in formats share.
`json`, `avro` and `protobuf` are the formats of the specification; `avro_compact` has two experimental
formats: ``avro-compact``, and ``avrocompact``, a variant that the Java SDK writes and that can only be read.
`json_reader` reads valid events in JSON, and `json_decoder` finds the problems of invalid ones. For Protobuf,
`_protobuf_scanner` reads valid events, `_protobuf_reader` finds problems, and `protobuf_decoder` reads
untrusted bytes. `protobuf_schema` is the message that the package protobuf writes.
"""

from cloudevents_kafka.formats.registry import Format

__all__ = ["Format"]
