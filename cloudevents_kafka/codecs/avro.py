"""A codec for Avro data of the user's schema."""

from __future__ import annotations

import io
from typing import Any

from cloudevents_kafka.codecs._avro_limits import AvroLimits
from cloudevents_kafka.codecs.registry import Codec


def avro(schema: Any) -> Codec:
    """Make a codec of an Avro schema: bare datums, read with the schema they were written with.

    Data of a schema that is recursive, or has decimals or arrays of what takes no bytes, is
    refused beyond the bounds of `avro_bounds`, by a `DataError`: strangers may have written it.
    """
    import fastavro  # takes a while to load

    named: dict[str, Any] = {}
    known = fastavro.parse_schema(schema, named)
    bounds = AvroLimits(known, named)

    def decode(payload: bytes) -> Any:
        bounds.check_datum(payload)
        stream = io.BytesIO(payload)
        value = fastavro.schemaless_reader(stream, known, None)
        if stream.read(1):
            raise ValueError("there are bytes after the datum")
        return value

    def encode(value: Any) -> bytes:
        bounds.check_value(value)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, known, value, strict=True)
        bounds.check_datum(out.getvalue())  # what is written can be read
        return out.getvalue()

    return Codec(decode, encode)
