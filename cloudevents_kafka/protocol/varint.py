"""Integers of variable length: seven bits a byte, lowest first, the eighth says that more follow.

Two encodings of the same Java integers (KIP-482, KIP-625, and the records of batches).
*Unsigned* writes the two's complement pattern as it is, which is short for small
numbers from 0 up, and longest for all negative ones. *Signed* (zigzag) first folds
negative numbers between the positive ones, 0, -1, 1, -2, ..., so it is short around 0.
The words are about the encoding: the integers are signed in both.

``bits`` is 16, 32 or 64: at most 3, 5 or 10 bytes.
"""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unencodable

MOST_BYTES: Final = {16: 3, 32: 5, 64: 10}
"""The longest encoding, by bits."""


def encode_unsigned(value: int, bits: int = 32) -> bytes:
    """Encode an integer of that many bits by its two's complement; `Unencodable` beyond them."""
    _check(value, bits)
    return _groups(value & ((1 << bits) - 1))


def encode_signed(value: int, bits: int = 32) -> bytes:
    """Encode an integer of that many bits by zigzag; `Unencodable` beyond them."""
    _check(value, bits)
    return _groups(fold(value))


def decode_unsigned(data: bytes, at: int = 0, bits: int = 32) -> tuple[int, int]:
    """Read an integer; return it and the position after it. `Truncated`, `Malformed`."""
    pattern, end = _pattern(data, at, bits)
    return pattern - (1 << bits) if pattern >> (bits - 1) else pattern, end


def decode_signed(data: bytes, at: int = 0, bits: int = 32) -> tuple[int, int]:
    """Read a zigzag integer; return it and the position after it. `Truncated`, `Malformed`."""
    pattern, end = _pattern(data, at, bits)
    return unfold(pattern), end


def decode_length(data: bytes, at: int = 0) -> tuple[int, int]:
    """Read a 32-bit pattern as it is, never negative: the form of compact lengths and tags."""
    return _pattern(data, at, 32)


def size_unsigned(value: int, bits: int = 32) -> int:
    """Return how many bytes the unsigned encoding takes."""
    return max(1, -(-(value & ((1 << bits) - 1)).bit_length() // 7))


def size_signed(value: int) -> int:
    """Return how many bytes the zigzag encoding takes."""
    return max(1, -(-fold(value).bit_length() // 7))


def fold(value: int) -> int:
    """Return the zigzag number of an integer: 0, 1, 2, 3, 4 for 0, -1, 1, -2, 2."""
    return value << 1 if value >= 0 else (~value << 1) | 1


def unfold(number: int) -> int:
    """Return the integer of a zigzag number."""
    return (number >> 1) ^ -(number & 1)


def _check(value: int, bits: int) -> None:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise Unencodable(f"{value} does not fit into {bits} bits")


def _groups(pattern: int) -> bytes:
    out = bytearray()
    while pattern > 0x7F:
        out.append(pattern & 0x7F | 0x80)
        pattern >>= 7
    out.append(pattern)
    return bytes(out)


def _pattern(data: bytes, at: int, bits: int) -> tuple[int, int]:
    pattern = 0
    for count in range(MOST_BYTES[bits]):
        if at + count >= len(data):
            raise Truncated(1, at=at + count)
        byte = data[at + count]
        pattern |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            if pattern >> bits:
                raise Malformed(f"a variable-length integer holds more than {bits} bits", at=at)
            return pattern, at + count + 1
    raise Malformed(f"a variable-length integer of {bits} bits has at most {MOST_BYTES[bits]} bytes", at=at)
