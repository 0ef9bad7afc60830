"""The event formats, which write a complete event as one value for structured content mode.

Read `registry` first: it finds a format by the suffix of its media type, such as ``json`` in
``application/cloudevents+json``; its function `register_format` adds a format. `base` contains the code that
the built-in formats share. `json`, `avro` and `protobuf` implement the formats of the specification;
`avro_compact` implements two experimental formats: ``avro-compact``, and ``avrocompact``, a variant that the
Java SDK writes and that this library can only read. `json_reader` reads valid events in JSON, and
`json_decoder` finds the problems of invalid events. For Protobuf, `_protobuf_scanner` reads valid events,
`_protobuf_reader` finds the problems of invalid events, and `protobuf_decoder` decodes untrusted bytes.
`protobuf_schema` declares the message that the package protobuf writes.
"""

from cloudevents_kafka.formats.registry import Format

__all__ = ["Format"]
