"""Variable-length encoding of non-negative integers, as in Protobuf and in Kafka's compact lengths.

Each byte contains seven bits of the number, beginning with the lowest bits; the eighth bit of a byte says
whether another byte follows. Signed integers use `zigzag`.
"""

from __future__ import annotations

from typing import Final

MAX_BYTES: Final = {16: 3, 32: 5, 64: 10}
"""The maximum number of bytes of an encoding, by the number of bits of the integer."""


def encode(number: int) -> bytes:
    """Return the encoding of a non-negative integer."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def decode(data: bytes, at: int, bits: int = 64) -> tuple[int, int]:
    """Return the integer that is encoded at an index, and the index after its last byte.

    Raises `IndexError` if the data ends too early. Raises `OverflowError` if the integer has more than
    ``bits`` bits, or if its encoding has more bytes than any integer of ``bits`` bits needs.
    """
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    number, shift = byte & 0x7F, 7
    while (byte := data[at := at + 1]) > 0x7F:
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > bits:
            raise OverflowError(
                f"a variable-length integer of {bits} bits has at most {MAX_BYTES[bits]} bytes"
            )
    number |= byte << shift
    if number >> bits:
        raise OverflowError(f"a variable-length integer holds more than {bits} bits")
    return number, at + 1


def size(number: int) -> int:
    """Return the number of bytes in the encoding of an integer."""
    return max(1, -(-number.bit_length() // 7))
