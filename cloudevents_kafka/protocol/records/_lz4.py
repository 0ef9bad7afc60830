"""LZ4 frames as Kafka uses them: independent blocks of at most 4 MiB.

Frames are decoded block by block, to limit the decompressed size. Brokers before 0.10 include the magic
number in the header checksum, and require this in magic 0 (KIP-57). Decoding does not check the checksums
of a frame, because the checksum of the message covers the frame.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from cloudevents_kafka.protocol.errors import Malformed

_MAGIC: Final = b"\x04\x22\x4d\x18"
# Version 1, independent blocks of 64 KiB, no checksums, no sizes, as the Java client.
_DESCRIPTOR: Final = b"\x60\x40"
_CHECKSUM: Final = b"\x82"  # the second byte of the xxHash32 of the descriptor
_OLD_CHECKSUM: Final = b"\x1a"  # the same, over magic number and descriptor
_BLOCK: Final = 64 * 1024
_SIZE: Final = struct.Struct("<I")
_PLAIN: Final = 1 << 31  # the bit of an uncompressed block

_BEST_RATIO: Final = 256  # a byte expands to at most 255


def encode(data: bytes, cramjam: Any, *, old: bool = False) -> bytes:
    """Return a frame; ``old`` uses the checksum of brokers before 0.10."""
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
    """Return the data of a frame, at most ``limit`` bytes; raise `Malformed`."""
    at, block_size, after_block, after_all = _header(data)
    parts, decompressed = [], 0
    while True:
        word = _word(data, at)
        at += _SIZE.size
        if word == 0:
            break
        size = word & ~_PLAIN
        if size > min(block_size, len(data) - at):
            raise Malformed("an lz4 block must fit into its frame", at=at)
        block = data[at : at + size]
        if not word & _PLAIN:
            block = _decompress(block, cramjam, block_size)
        parts.append(block)
        decompressed += len(block)
        if decompressed > limit:
            raise Malformed(f"lz4 must decompress to at most {limit:,} bytes", at=at)
        at += size + after_block
    if at + after_all != len(data):
        raise Malformed("an lz4 frame must end with its end mark and checksum", at=at)
    return b"".join(parts)


def _header(data: bytes) -> tuple[int, int, int, int]:
    """Return the index of the first block, the block size, and the checksum sizes of block and frame."""
    if len(data) < 7 or not data.startswith(_MAGIC):
        raise Malformed("lz4 must start with 04 22 4d 18 and a frame descriptor")
    flags, sizes = data[4], data[5] >> 4 & 7
    if flags >> 6 != 1 or not flags & 0x20 or flags & 1 or sizes < 4:
        raise Malformed("lz4 must be version 1 with independent blocks and no dictionary", at=4)
    content_size = 8 if flags & 8 else 0
    return (
        7 + content_size,
        1 << 8 + 2 * sizes,
        4 if flags & 16 else 0,
        4 if flags & 4 else 0,
    )


def _decompress(block: bytes, cramjam: Any, block_size: int) -> bytes:
    """Return the data of a block; cramjam requires its size, or an upper bound, before it."""
    most = min(block_size, _BEST_RATIO * len(block))
    return bytes(cramjam.lz4.decompress_block(_SIZE.pack(most) + block))


def _word(data: bytes, at: int) -> int:
    if len(data) - at < _SIZE.size:
        raise Malformed("lz4 must end with its end mark", at=at)
    word: int = _SIZE.unpack_from(data, at)[0]
    return word
