"""The compression codecs, with a limit on the decompressed size.

gzip is in Python; snappy, lz4 and zstd need cramjam, of the extra ``protocol``. At most ``limit`` bytes are
decompressed, because compressed data is untrusted input that may expand without bound.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from cloudevents_kafka.protocol.errors import Malformed, Unsupported
from cloudevents_kafka.protocol.records import _lz4 as lz4_frame
from cloudevents_kafka.protocol.records import _snappy as xerial

LIMIT: Final = 128 * 1024 * 1024
"""The default limit of the decompressed size of a batch, in bytes."""

_GZIP: Final = 31  # zlib's wbits for the largest window and a gzip header
_ZSTD_LEVEL: Final = 3  # zstd's and Kafka's own default
_BEST_ZSTD_RATIO: Final = 32768  # a block of 4 bytes expands to at most 128 KiB


class Codec(IntEnum):
    """A compression codec: the lowest three bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, attributes: int) -> Codec:
        """Return the codec of attributes; raise `Malformed` for 5, 6 and 7."""
        number = attributes & 7
        if number > cls.ZSTD:
            raise Malformed(f"the codec must be 0 to 4, got {number}")
        return _CODECS[number]


_CODECS: Final = tuple(Codec)


def compress(data: bytes, codec: Codec, *, old_lz4: bool = False) -> bytes:
    """Return compressed data; ``old_lz4`` uses the header checksum of brokers before 0.10 (KIP-57).

    Raises `Unsupported` without cramjam, except for gzip.
    """
    if codec == Codec.NONE:
        return data
    if codec == Codec.GZIP:
        packer = zlib.compressobj(wbits=_GZIP)
        return packer.compress(data) + packer.flush()
    cramjam = _cramjam(codec)
    if codec == Codec.SNAPPY:
        return xerial.encode(data, cramjam)
    if codec == Codec.LZ4:
        return lz4_frame.encode(data, cramjam, old=old_lz4)
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def decompress(data: bytes, codec: Codec, *, limit: int = LIMIT) -> bytes:
    """Return decompressed data; raise `Malformed` if it is invalid or larger than ``limit`` bytes.

    Raises `Unsupported` without cramjam, except for gzip.
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


def _gunzip(data: bytes, limit: int) -> bytes:
    """Return the data of one gzip member; Kafka's clients write only one."""
    unpacker = zlib.decompressobj(wbits=_GZIP)
    try:
        out = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise Malformed(f"gzip must be valid: {error}") from error
    if len(out) > limit:
        raise Malformed(f"gzip must decompress to at most {limit:,} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise Malformed("gzip must be one complete member")
    return out


def _unzstd(data: bytes, cramjam: Any, limit: int) -> bytes:
    """Return the data of zstd frames, which need not have their decompressed size.

    The buffer has the largest possible size, but is mapped, so that only written pages use memory.
    """
    capacity = min(limit, _BEST_ZSTD_RATIO * len(data))
    with mmap.mmap(-1, max(1, capacity)) as out:
        size = cramjam.zstd.decompress_into(data, out)
        if size > limit:
            raise Malformed(f"zstd must decompress to at most {limit:,} bytes")
        return out[:size]


_DECODERS: Final[dict[Codec, Callable[[bytes, Any, int], bytes]]] = {
    Codec.SNAPPY: xerial.decode,
    Codec.LZ4: lz4_frame.decode,
    Codec.ZSTD: _unzstd,
}


def _cramjam(codec: Codec) -> Any:
    try:
        import cramjam
    except ImportError as error:
        raise Unsupported(
            f"{Codec(codec).name.lower()} needs cramjam: pip install 'cloudevents-kafka[protocol]'"
        ) from error
    return cramjam
