"""Snappy as Kafka uses it: raw blocks in the framing of the Java library xerial.

::

    82 53 4e 41 50 50 59 00   int32 version 1   int32 compatible 1   then (int32 size, block)...

Some clients send one raw block without framing, which brokers accept, so decoding accepts both.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from cloudevents_kafka.protocol.errors import Malformed

_NAME: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _NAME + struct.pack(">ii", 1, 1)
_SIZE: Final = struct.Struct(">i")
_BLOCK: Final = 32 * 1024  # xerial's block size
_BEST_RATIO: Final = 22  # an element of 3 bytes expands to at most 64


def encode(data: bytes, cramjam: Any) -> bytes:
    """Return data compressed, with framing."""
    parts = [_HEADER]
    for at in range(0, len(data), _BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _BLOCK]))
        parts += (_SIZE.pack(len(block)), block)
    return b"".join(parts)


def decode(data: bytes, cramjam: Any, limit: int) -> bytes:
    """Return the data of framed blocks or of one raw block, at most ``limit`` bytes; raise `Malformed`."""
    if not data.startswith(_NAME):
        return _decompress(data, cramjam, limit)
    parts, at = [], len(_HEADER)
    while at < len(data):
        size = _SIZE.unpack_from(data, at)[0] if len(data) - at >= _SIZE.size else -1
        at += _SIZE.size
        if not 0 <= size <= len(data) - at:
            raise Malformed("a snappy block must fit into the remaining bytes", at=at)
        parts.append(_decompress(data[at : at + size], cramjam, limit))
        limit -= len(parts[-1])
        at += size
    return b"".join(parts)


def _decompress(block: bytes, cramjam: Any, limit: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > min(limit, _BEST_RATIO * len(block)):
        raise Malformed(
            f"a snappy block must decompress to at most {min(limit, _BEST_RATIO * len(block)):,} bytes, "
            f"got {size:,}"
        )
    return bytes(cramjam.snappy.decompress_raw(block))
