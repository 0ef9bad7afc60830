"""LZ4 frames, as far as Kafka uses them: independent blocks of at most 4 MiB.

The frame is read and written here block by block, so that no frame can unpack to more
than is allowed. Brokers before 0.10 compute the header's checksum wrongly, over the
magic number too, and want it so in magic 0 (KIP-57). As the message's own checksum
covers the whole frame, those inside it are passed over when reading: right or wrong.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from cloudevents_kafka.protocol.errors import Malformed

_MAGIC: Final = b"\x04\x22\x4d\x18"
# Version 1, independent blocks, no checksums, no sizes; blocks of 64 KiB: what Java writes.
_DESCRIPTOR: Final = b"\x60\x40"
_CHECKSUM: Final = b"\x82"  # second byte of xxHash32 of the descriptor
_OLD_CHECKSUM: Final = b"\x1a"  # the same, of magic number and descriptor
_BLOCK: Final = 64 * 1024
_SIZE: Final = struct.Struct("<I")
_PLAIN: Final = 1 << 31  # the bit that says that a block is not compressed

_BEST_RATIO: Final = 256  # no byte of the format makes more than 255


def encode(data: bytes, cramjam: Any, *, old: bool = False) -> bytes:
    """Write a frame; ``old`` with the checksum that brokers before 0.10 want."""
    parts = [_MAGIC, _DESCRIPTOR, _OLD_CHECKSUM if old else _CHECKSUM]
    for at in range(0, len(data), _BLOCK):
        plain = data[at : at + _BLOCK]
        packed = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(packed) < len(plain):
            parts += (_SIZE.pack(len(packed)), packed)
        else:
            parts += (_SIZE.pack(len(plain) | _PLAIN), plain)
    return b"".join([*parts, _SIZE.pack(0)])


def decode(data: bytes, cramjam: Any, limit: int) -> bytes:
    """Read a frame of at most ``limit`` bytes; `Malformed`."""
    at, block_size, after_block, after_all = _header(data)
    parts = []
    while True:
        word = _word(data, at)
        at += _SIZE.size
        if word == 0:
            break
        size = word & ~_PLAIN
        if size > min(block_size, len(data) - at):
            raise Malformed("a block of lz4 does not fit into its frame", at=at)
        block = data[at : at + size]
        if not word & _PLAIN:
            block = _unpacked(block, cramjam, block_size)
        parts.append(block)
        limit -= len(block)
        if limit < 0:
            raise Malformed("lz4 holds more bytes than allowed here", at=at)
        at += size + after_block
    if at + after_all != len(data):
        raise Malformed("lz4 ends too early, or bytes follow its end", at=at)
    return b"".join(parts)


def _header(data: bytes) -> tuple[int, int, int, int]:
    """Return where blocks begin, their largest size, and how many bytes of checksum follow each, and all."""
    if len(data) < 7 or not data.startswith(_MAGIC):
        raise Malformed("lz4 begins with its magic number, 04 22 4d 18, and a descriptor")
    flags, sizes = data[4], data[5] >> 4 & 7
    if flags >> 6 != 1 or not flags & 0x20 or flags & 1 or sizes < 4:
        raise Malformed("of lz4 frames, Kafka has version 1 with independent blocks and no dictionary", at=4)
    content_size = 8 if flags & 8 else 0
    return (
        7 + content_size,
        1 << 8 + 2 * sizes,
        4 if flags & 16 else 0,
        4 if flags & 4 else 0,
    )


def _unpacked(block: bytes, cramjam: Any, block_size: int) -> bytes:
    """Unpack a block; cramjam wants to read the size in front of it, where an upper bound will do."""
    most = min(block_size, _BEST_RATIO * len(block))
    return bytes(cramjam.lz4.decompress_block(_SIZE.pack(most) + block))


def _word(data: bytes, at: int) -> int:
    if len(data) - at < _SIZE.size:
        raise Malformed("lz4 ends before its end mark", at=at)
    word: int = _SIZE.unpack_from(data, at)[0]
    return word
