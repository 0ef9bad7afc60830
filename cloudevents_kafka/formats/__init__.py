"""Event formats: how a whole event becomes one value, and back (structured mode).

`registry` finds a format by the suffix of its media type: ``json`` for
``application/cloudevents+json``. JSON, Avro and Protobuf come with the library, and two
experimental ones: ``avro-compact``, and ``avrocompact``, the same as the Java SDK has it,
which is read only. `register_format` adds others; `build` makes events of what they read.
"""

from cloudevents_kafka.formats.registry import (
    Format,
    content_type_of,
    find,
    media_type_of,
    names,
    register_format,
    registered,
    restore,
    writable,
)

__all__ = [
    "Format",
    "content_type_of",
    "find",
    "media_type_of",
    "names",
    "register_format",
    "registered",
    "restore",
    "writable",
]
