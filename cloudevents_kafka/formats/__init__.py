"""The event formats; a format writes a complete event as one value for structured content mode.

Read the module `registry` first: it finds a format by the suffix of the format's media type, such as ``json``
in ``application/cloudevents+json``. The function `register_format` in `registry` adds a format. The module
`base` contains the code that the built-in formats share. The modules `json`, `avro` and `protobuf` implement
the formats of the specification. The module `avro_compact` implements two experimental formats:
``avro-compact`` and ``avrocompact``. The Java SDK writes ``avrocompact``, and this library can only read this
format. The module `json_reader` reads valid events in JSON, and the module `json_decoder` finds the problems
of invalid events. For Protobuf, the module `_protobuf_scanner` reads valid events, `_protobuf_reader` finds
the problems of invalid events, and `protobuf_decoder` decodes untrusted bytes. The module `protobuf_schema`
declares the message that the package protobuf writes.
"""

from cloudevents_kafka.formats.registry import Format

__all__ = ["Format"]
