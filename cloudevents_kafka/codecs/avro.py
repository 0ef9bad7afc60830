"""A codec for Avro data."""

from __future__ import annotations

import io
from typing import Any

from cloudevents_kafka.codecs._avro_limits import AvroLimits
from cloudevents_kafka.codecs.registry import Codec


def avro(schema: Any) -> Codec:
    """Return a codec for data that is one datum of an Avro schema, without a header.

    Data is untrusted input: beyond the limits of `_avro_limits`, which are for recursive
    schemas, decimals, and arrays of items without bytes, decoding raises `DataError`.
    """
    import fastavro  # slow to import

    named: dict[str, Any] = {}
    parsed = fastavro.parse_schema(schema, named)
    limits = AvroLimits(parsed, named)

    def decode(payload: bytes) -> Any:
        limits.check_datum(payload)
        stream = io.BytesIO(payload)
        value = fastavro.schemaless_reader(stream, parsed, None)
        if stream.read(1):
            raise ValueError("the payload must be one datum, but bytes follow it")
        return value

    def encode(value: Any) -> bytes:
        limits.check_value(value)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value, strict=True)
        limits.check_datum(out.getvalue())  # so that decode accepts it
        return out.getvalue()

    return Codec(decode, encode)
