"""Snappy as Kafka stores it: raw blocks in the frame of the Java library xerial.

::

    82 53 4e 41 50 50 59 00   int32 version 1   int32 compatible 1   then (int32 size, block)...

Some clients send one raw block without any frame, which brokers take too, so both are read.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from cloudevents_kafka.protocol.errors import Malformed

_NAME: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _NAME + struct.pack(">ii", 1, 1)
_SIZE: Final = struct.Struct(">i")
_BLOCK: Final = 32 * 1024  # what xerial writes
_BEST_RATIO: Final = 22  # no element of the format makes more than 64 bytes from 3


def encode(data: bytes, cramjam: Any) -> bytes:
    """Write the frame."""
    parts = [_HEADER]
    for at in range(0, len(data), _BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _BLOCK]))
        parts += (_SIZE.pack(len(block)), block)
    return b"".join(parts)


def decode(data: bytes, cramjam: Any, limit: int) -> bytes:
    """Read a frame, or one raw block, of at most ``limit`` bytes; `Malformed`."""
    if not data.startswith(_NAME):
        return _unpacked(data, cramjam, limit)
    parts, at = [], len(_HEADER)
    while at < len(data):
        size = _SIZE.unpack_from(data, at)[0] if len(data) - at >= _SIZE.size else -1
        at += _SIZE.size
        if not 0 <= size <= len(data) - at:
            raise Malformed("a block of snappy does not fit into what is left", at=at)
        parts.append(_unpacked(data[at : at + size], cramjam, limit))
        limit -= len(parts[-1])
        at += size
    return b"".join(parts)


def _unpacked(block: bytes, cramjam: Any, limit: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > min(limit, _BEST_RATIO * len(block)):
        raise Malformed(f"snappy promises {size} bytes, more than allowed here or than its bytes can hold")
    return bytes(cramjam.snappy.decompress_raw(block))
