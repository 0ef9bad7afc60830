"""Kafka's integers of variable length; the functions raise the errors of the protocol.

There are two encodings of the same signed Java integers (KIP-482, KIP-625, and the records of batches). The
*unsigned* encoding writes the two's complement as a `primitives.varint`: small positive integers are short,
and all negative integers have the greatest length. The *signed* encoding writes a `primitives.zigzag`: small
positive and small negative integers are short.

``bits`` is 16, 32 or 64. Decoding raises `Truncated` or `Malformed`.
"""

from __future__ import annotations

from collections.abc import Callable

from cloudevents_kafka.primitives import varint, zigzag
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unencodable


def encode_unsigned(value: int, bits: int = 32) -> bytes:
    """Return the two's complement of an integer; raise `Unencodable` if ``bits`` bits are too few."""
    _check(value, bits)
    return varint.encode(value & ((1 << bits) - 1))


def encode_signed(value: int, bits: int = 32) -> bytes:
    """Return the zigzag encoding of an integer; raise `Unencodable` if ``bits`` bits are too few."""
    _check(value, bits)
    return zigzag.encode(value)


def decode_unsigned(data: bytes, at: int = 0, bits: int = 32) -> tuple[int, int]:
    """Return the two's complement integer at index ``at``, and the index after the integer."""
    pattern, end = _decode(varint.decode, data, at, bits)
    # S3-E4: "Java int and long are always signed"
    return pattern - (1 << bits) if pattern >> (bits - 1) else pattern, end


def decode_signed(data: bytes, at: int = 0, bits: int = 32) -> tuple[int, int]:
    """Return the zigzag integer at index ``at``, and the index after the integer."""
    return _decode(zigzag.decode, data, at, bits)


def decode_length(data: bytes, at: int = 0) -> tuple[int, int]:
    """Return the non-negative integer at index ``at``, and the index after the integer.

    Use this function for compact lengths, tags and the sizes of tagged fields.
    """
    return _decode(varint.decode, data, at, 32)


def _decode(
    decode: Callable[[bytes, int, int], tuple[int, int]], data: bytes, at: int, bits: int
) -> tuple[int, int]:
    try:
        return decode(data, at, bits)
    except IndexError:
        raise Truncated(1, at=max(at, len(data))) from None
    except OverflowError as error:
        raise Malformed(str(error), at=at) from None


def _check(value: int, bits: int) -> None:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise Unencodable(f"{value} does not fit into {bits} bits")
