"""The event formats. In structured content mode, a format writes a complete event as one value.

Read the module `registry` first: it finds a format by its media type's suffix, such as ``json`` in
``application/cloudevents+json``. The function `register_format` in `registry` adds a format. The module
`base` contains the code that several built-in formats use. The modules `json`, `avro` and `protobuf`
implement the formats of the specification. The module `avro_compact` implements two experimental formats:
``avro-compact`` and ``avrocompact``. The Java SDK writes the format ``avrocompact``; this library can only
read it. For JSON, the module `json_reader` reads valid events, and the module `json_decoder` finds the
problems of invalid events. For Protobuf, the module `_protobuf_scanner` reads valid events,
`_protobuf_reader` finds the problems of invalid events, and `protobuf_decoder` decodes untrusted bytes. The
module `protobuf_schema` declares the message that is written with the package protobuf.
"""

from cloudevents_kafka.formats.registry import Format

__all__ = ["Format"]
