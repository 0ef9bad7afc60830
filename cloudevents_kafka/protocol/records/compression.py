"""The compression codecs, with a limit on the decompressed size.

gzip is in Python's standard library; snappy, lz4 and zstd need cramjam, from the extra ``protocol``. At most
``limit`` bytes are decompressed, because compressed data is untrusted input that may expand without limit.
The peak memory is at most 1.1 times the decompressed size, plus some MiB (see `_unpacked`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.protocol.errors import Malformed, Unsupported
from cloudevents_kafka.protocol.records._unpacked import LARGE, Data, Pieces, finish, new_mapping, take

LIMIT: Final = 128 * 1024 * 1024
"""The default limit for the decompressed size of a batch, in bytes."""

_GZIP: Final = 31  # zlib's wbits for the largest window and a gzip header
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"  # RFC 1952 2.3.1: ID1, ID2, and the method deflate
_GZIP_PIECE: Final = 4096
_GZIP_STEP: Final = (
    1 << 18
)  # bytes that one call decompresses: zlib joins its blocks, which takes twice the memory
_BEST_GZIP_RATIO: Final = 1033  # deflate's best is 1032
_SMALLEST_MEMBER: Final = 19  # java.util.zip.GZIPInputStream skips up to 18 bytes after a member
_ZSTD_LEVEL: Final = 3  # zstd's and Kafka's own default
_BEST_ZSTD_RATIO: Final = 32768  # a block of 4 bytes expands to at most 128 KiB

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL + struct.pack(">ii", 1, 1)
_XERIAL_SIZE: Final = struct.Struct(">i")
_XERIAL_BLOCK: Final = 32 * 1024  # xerial's block size
_BEST_SNAPPY_RATIO: Final = 22  # an element of 3 bytes expands to at most 64

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
# Version 1, independent blocks of 64 KiB, no checksums, no sizes, as in the Java client.
_LZ4_DESCRIPTOR: Final = b"\x60\x40"
_LZ4_CHECKSUM: Final = b"\x82"  # the second byte of the xxHash32 of the descriptor
_OLD_LZ4_CHECKSUM: Final = b"\x1a"  # clients before Kafka 0.10: over magic number and descriptor
_LZ4_BLOCK: Final = 64 * 1024
_LZ4_SIZE: Final = struct.Struct("<I")
_LZ4_PLAIN: Final = 1 << 31  # the bit of an uncompressed block
_BEST_LZ4_RATIO: Final = 256  # a byte expands to at most 255


class Codec(IntEnum):
    """A compression codec, whose number is the lowest three bits of the attributes.

    Examples:
        >>> from cloudevents_kafka.protocol.records import Batches, Codec, Record, encode_batch
        >>> [batch.codec for batch in Batches(encode_batch([Record(value=b"17")], Codec.GZIP))]
        [<Codec.GZIP: 1>]
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, attributes: int) -> Codec:
        """Return the codec in attributes; raise `Malformed` for the unknown codecs 5, 6 and 7."""
        number = attributes & 7  # S0-M4: "The lowest 2 bits contain the compression codec"; 3 since lz4
        if number > cls.ZSTD:
            raise Malformed(f"the codec must be 0 to 4, got {number}")
        return _CODECS[number]


_CODECS: Final = tuple(Codec)


def compress(data: bytes, codec: Codec, *, old_lz4: bool = False) -> bytes:
    """Return compressed data; with ``old_lz4``, lz4 has the header checksum of brokers before 0.10 (KIP-57).

    Raises `Unsupported` if cramjam is not installed; gzip does not need cramjam.
    """
    if codec == Codec.NONE:
        return data
    if codec == Codec.GZIP:
        packer = zlib.compressobj(wbits=_GZIP)
        return packer.compress(data) + packer.flush()
    cramjam = _cramjam(codec)
    if codec == Codec.SNAPPY:
        return _snappy(data, cramjam)
    if codec == Codec.LZ4:
        return _lz4(data, cramjam, old=old_lz4)
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def decompress(data: bytes, codec: Codec, *, limit: int = LIMIT) -> bytes:
    """Return decompressed data; raise `Malformed` for invalid data, or more than ``limit`` bytes.

    Raises `Unsupported` if cramjam is not installed; gzip does not need cramjam.
    """
    unpacked = unpack(data, codec, limit)
    return take(unpacked, 0, len(unpacked))


def unpack(data: bytes, codec: Codec, limit: int) -> Data:
    """Return decompressed data that can be read only once, with `take`.

    Raises the errors of `decompress`.
    """
    if codec == Codec.NONE:
        return data
    if codec == Codec.GZIP:
        return _gunzip(data, limit)
    cramjam = _cramjam(codec)
    try:
        return _DECODERS[codec](data, cramjam, limit)
    except cramjam.DecompressionError as error:
        name = Codec(codec).name.lower()
        raise Malformed(f"{name} must be valid and decompress to at most {limit:,} bytes: {error}") from error


def _gunzip(data: bytes, limit: int) -> Data:
    """Return the data of gzip members; bytes that follow the last member are skipped, as in Java."""
    view, at, out = memoryview(data), 0, Pieces("gzip", limit, _BEST_GZIP_RATIO * len(data))
    unpacker = zlib.decompressobj(wbits=_GZIP)
    while True:
        # One member of some KiB is usual. Further pieces are small: zlib copies the unused part of a piece.
        piece = view[at : at + _GZIP_PIECE] if at else view
        try:
            part = unpacker.decompress(piece, min(limit - out.size + 1, _GZIP_STEP))
        except zlib.error as error:
            raise Malformed(f"gzip must be valid: {error}") from error
        out.add(part)
        at += len(piece) - len(unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail)
        if not unpacker.eof:
            if at == len(data) and not part:
                raise Malformed("gzip must end with a complete member")
        elif len(data) - at < _SMALLEST_MEMBER or bytes(view[at : at + 3]) != _GZIP_MAGIC:
            return out.finish()
        else:
            unpacker = zlib.decompressobj(wbits=_GZIP)


def _unzstd(data: bytes, cramjam: Any, limit: int) -> Data:
    """Return the data of zstd frames, which may omit their decompressed size.

    The `mmap` has the largest possible size, but only its written pages use memory.
    """
    out = new_mapping(min(limit, _BEST_ZSTD_RATIO * len(data)))
    size = cramjam.zstd.decompress_into(data, out)
    if size > limit:
        raise Malformed(f"zstd must decompress to at most {limit:,} bytes")
    return finish(out, size)


def _cramjam(codec: Codec) -> Any:
    try:
        import cramjam
    except ImportError as error:
        raise Unsupported(f"{Codec(codec).name.lower()} needs cramjam: {pip_install('protocol')}") from error
    return cramjam


def _snappy(data: bytes, cramjam: Any) -> bytes:
    """Return compressed data: raw blocks in the frame format of xerial, the Java library that Kafka uses.

    ::

        82 53 4e 41 50 50 59 00   int32 version 1   int32 compatible 1   then (int32 size, block)...
    """
    parts = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK]))
        parts += (_XERIAL_SIZE.pack(len(block)), block)
    return b"".join(parts)


def _unsnappy(data: bytes, cramjam: Any, limit: int) -> Data:
    """Return the data of snappy blocks in xerial's frame, or of one raw block, which some clients send."""
    blocks = _xerial_blocks(data) if data.startswith(_XERIAL) else [data]
    sizes: list[int] = []
    for block in blocks:
        sizes.append(_snappy_size(block, cramjam, limit))
        limit -= sizes[-1]
    if sum(sizes) <= LARGE:
        return b"".join(map(cramjam.snappy.decompress_raw, blocks))
    out, at = new_mapping(sum(sizes)), 0
    with memoryview(out) as view:
        for block, size in zip(blocks, sizes, strict=True):
            with view[at : at + size] as target:
                cramjam.snappy.decompress_raw_into(block, target)
            at += size
    return finish(out, at)


def _xerial_blocks(data: bytes) -> list[bytes | memoryview]:
    view, blocks, at = memoryview(data), list[bytes | memoryview](), len(_XERIAL_HEADER)
    while at < len(data):
        size = _XERIAL_SIZE.unpack_from(data, at)[0] if len(data) - at >= _XERIAL_SIZE.size else -1
        at += _XERIAL_SIZE.size
        if not 0 <= size <= len(data) - at:
            raise Malformed("a snappy block must fit into the remaining bytes", at=at)
        blocks.append(view[at : at + size])
        at += size
    return blocks


def _snappy_size(block: bytes | memoryview, cramjam: Any, limit: int) -> int:
    """Return the decompressed size that a snappy block states."""
    size: int = cramjam.snappy.decompress_raw_len(block)
    if size > (most := min(limit, _BEST_SNAPPY_RATIO * len(block))):
        raise Malformed(f"a snappy block must decompress to at most {most:,} bytes, got {size:,}")
    return size


def _lz4(data: bytes, cramjam: Any, *, old: bool = False) -> bytes:
    """Return an LZ4 frame that consists of independent blocks.

    If ``old`` is true, the header checksum covers the magic number, too: brokers before 0.10 require this
    (KIP-57).
    """
    parts = [_LZ4_MAGIC, _LZ4_DESCRIPTOR, _OLD_LZ4_CHECKSUM if old else _LZ4_CHECKSUM]
    for at in range(0, len(data), _LZ4_BLOCK):
        plain = data[at : at + _LZ4_BLOCK]
        packed = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(packed) < len(plain):
            parts += (_LZ4_SIZE.pack(len(packed)), packed)
        else:
            parts += (_LZ4_SIZE.pack(len(plain) | _LZ4_PLAIN), plain)
    return b"".join([*parts, _LZ4_SIZE.pack(0)])


def _unlz4(data: bytes, cramjam: Any, limit: int) -> Data:
    """Return the data of an LZ4 frame, decoded block by block to limit the size of the data.

    The checksums of the LZ4 frame are not checked, because the checksum of the message covers the frame.
    """
    at, block_size, after_block, after_all = _lz4_header(data)
    out = Pieces("lz4", limit, _BEST_LZ4_RATIO * len(data))
    while True:
        word = _lz4_word(data, at)
        at += _LZ4_SIZE.size
        if word == 0:
            break
        size = word & ~_LZ4_PLAIN
        if size > min(block_size, len(data) - at):
            raise Malformed("an lz4 block must fit into its frame", at=at)
        block = data[at : at + size]
        if not word & _LZ4_PLAIN:
            block = _unlz4_block(block, cramjam, block_size)
        out.add(block)
        at += size + after_block
    if at + after_all != len(data):
        raise Malformed("an lz4 frame must end with its end mark and checksum", at=at)
    return out.finish()


def _lz4_header(data: bytes) -> tuple[int, int, int, int]:
    """Return the index of the first block, and the sizes of blocks, block checksums and frame checksum."""
    if len(data) < 7 or not data.startswith(_LZ4_MAGIC):
        raise Malformed("lz4 must start with 04 22 4d 18 and a frame descriptor")
    flags, sizes = data[4], data[5] >> 4 & 7
    if flags >> 6 != 1 or not flags & 0x20 or flags & 1 or sizes < 4:
        raise Malformed("lz4 must be version 1 with independent blocks and no dictionary", at=4)
    content_size = 8 if flags & 8 else 0
    return (7 + content_size, 1 << 8 + 2 * sizes, 4 if flags & 16 else 0, 4 if flags & 4 else 0)


def _unlz4_block(block: bytes, cramjam: Any, block_size: int) -> Any:
    """Return an LZ4 block's data; cramjam requires a prefix with the size of the data, or an upper bound."""
    most = min(block_size, _BEST_LZ4_RATIO * len(block))
    return cramjam.lz4.decompress_block(_LZ4_SIZE.pack(most) + block)


def _lz4_word(data: bytes, at: int) -> int:
    if len(data) - at < _LZ4_SIZE.size:
        raise Malformed("lz4 must end with its end mark", at=at)
    word: int = _LZ4_SIZE.unpack_from(data, at)[0]
    return word


_DECODERS: Final[dict[Codec, Callable[[bytes, Any, int], Data]]] = {
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
