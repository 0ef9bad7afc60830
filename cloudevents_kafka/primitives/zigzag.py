"""Variable-length encoding of signed integers, as in Avro and in the records of Kafka's batches.

Zigzag maps 0, -1, 1, -2, 2 to 0, 1, 2, 3, 4, so that integers near 0 have short encodings; the resulting
number is written as a `varint`.
"""

from __future__ import annotations

from cloudevents_kafka.primitives import varint


def fold(value: int) -> int:
    """Return the zigzag number of an integer."""
    return value << 1 if value >= 0 else (~value << 1) | 1


def encode(value: int) -> bytes:
    """Return the encoding of an integer."""
    return varint.encode(fold(value))


def decode(data: bytes, at: int, bits: int = 64) -> tuple[int, int]:
    """Return the integer at an index, and the index after it. Raises the exceptions of `varint.decode`."""
    number, end = data[at], at + 1
    if number > 0x7F:
        number, end = varint.decode(data, at, bits)
    return (number >> 1) ^ -(number & 1), end


def size(value: int) -> int:
    """Return the number of bytes in the encoding of an integer."""
    return varint.size(fold(value))
