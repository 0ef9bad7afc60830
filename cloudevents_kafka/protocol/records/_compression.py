"""The codecs of compressed messages and batches, each bounded in what it gives back.

gzip comes with Python; snappy, lz4 and zstd need cramjam, of the extra ``protocol``.
No more than ``limit`` bytes are ever made from compressed ones, so that a few bytes of
a stranger cannot fill the memory.
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
"""The most bytes that one batch may be unpacked to, unless the caller says otherwise."""

_GZIP: Final = 31  # zlib's word for the largest window and a gzip header
_ZSTD_LEVEL: Final = 3  # zstd's and Kafka's own default
_BEST_ZSTD_RATIO: Final = 32768  # a block makes 128 KiB at most, and has four bytes at least


class Codec(IntEnum):
    """The number in the lowest three bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, attributes: int) -> Codec:
        """Read it from attributes; `Malformed` for 5, 6 and 7, which no codec has."""
        number = attributes & 7
        if number > cls.ZSTD:
            raise Malformed(f"codec {number} is none; there are 0 to 4")
        return _CODECS[number]


_CODECS: Final = tuple(Codec)


def compress(data: bytes, codec: Codec, *, old_lz4: bool = False) -> bytes:
    """Compress the bytes; ``old_lz4`` writes the header that brokers before 0.10 want.

    `Unsupported` without cramjam, for all but gzip.
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
    """Decompress the bytes, to at most ``limit`` of them; `Malformed` beyond, or if they are broken.

    `Unsupported` without cramjam, for all but gzip.
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
        raise Malformed(f"this is no {name}, or more than {limit} bytes of it: {error}") from error


def _gunzip(data: bytes, limit: int) -> bytes:
    """Unpack one gzip member: more of them are nothing that Kafka's clients write."""
    unpacker = zlib.decompressobj(wbits=_GZIP)
    try:
        out = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise Malformed(f"this is no gzip: {error}") from error
    if len(out) > limit:
        raise Malformed(f"gzip holds more than the {limit} bytes allowed here")
    if not unpacker.eof or unpacker.unused_data:
        raise Malformed("gzip ends too early, or bytes follow its end")
    return out


def _unzstd(data: bytes, cramjam: Any, limit: int) -> bytes:
    """Unpack into as much room as may be needed: frames need not say how long they are.

    The room is mapped, so that only what is written to takes memory.
    """
    room = min(limit, _BEST_ZSTD_RATIO * len(data))
    with mmap.mmap(-1, max(1, room)) as out:
        size = cramjam.zstd.decompress_into(data, out)
        if size > limit:
            raise Malformed("zstd holds more bytes than allowed here")
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
