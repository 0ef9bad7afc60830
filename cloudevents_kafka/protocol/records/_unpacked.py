"""Decompressed data: bytes if the data is small, otherwise an `mmap` that is freed while it is read.

Each range of an `mmap` is freed when the records in this range have been read, so decompressing and decoding
together need memory for only one copy of the data. An `mmap` can be read only once, from its beginning to its
end. On systems that cannot free a range of an `mmap`, such as macOS and Windows, the whole `mmap` is freed at
once.
"""

from __future__ import annotations

import io
import mmap
import sys
from contextlib import suppress
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.errors import Malformed

LARGE: Final = 1 << 20
"""The size in bytes above which data is stored in an `mmap`; the `mmap` is freed in ranges of this size."""

Data: TypeAlias = bytes | mmap.mmap
"""Decompressed data: bytes or an `mmap`. In both, a slice is bytes, and an item is an integer."""


def new_mapping(capacity: int) -> mmap.mmap:
    """Return an `mmap` that contains zeros; only pages that are written use memory."""
    if sys.platform != "linux":
        return mmap.mmap(-1, max(1, capacity))
    mapping = mmap.mmap(-1, max(1, capacity), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages
        mapping.madvise(mmap.MADV_NOHUGEPAGE)  # the first byte of a huge page would take 2 MiB
    return mapping


def finish(mapping: mmap.mmap, size: int) -> Data:
    """Return the first ``size`` bytes of an `mmap`.

    Data of up to `LARGE` bytes is copied, and the `mmap` is closed. Larger data stays in the `mmap` if the
    system can resize the `mmap`.
    """
    if size > LARGE:
        with suppress(SystemError):  # a system that cannot resize mappings
            mapping.resize(size)
            return mapping
    with mapping:
        return mapping[:size]


class Pieces:
    """A buffer for up to ``limit`` bytes of decompressed data; ``codec`` is the codec's name in errors."""

    def __init__(self, codec: str, limit: int, capacity: int) -> None:
        """Create an empty buffer; ``capacity`` is the largest size to which the data can expand."""
        self._codec: Final = codec
        self._limit: Final = limit
        self._capacity: Final = min(limit, capacity)
        self._parts: list[bytes] = []
        self._mapping: mmap.mmap | None = None
        self.size = 0

    def add(self, part: bytes) -> None:
        """Append bytes; raise `Malformed` if the data is larger than the limit."""
        begin, self.size = self.size, self.size + len(part)
        if self.size > self._limit:
            raise Malformed(f"{self._codec} must decompress to at most {self._limit:,} bytes")
        if self._mapping is None:
            self._parts.append(part)
            if self.size <= LARGE:
                return
            begin, part = 0, b"".join(self._parts)
            self._parts.clear()
            self._mapping = new_mapping(self._capacity)
        self._mapping[begin : self.size] = part

    def finish(self) -> Data:
        """Return the data."""
        return b"".join(self._parts) if self._mapping is None else finish(self._mapping, self.size)


def take(data: Data, begin: int, end: int) -> bytes:
    """Return the bytes of a range of memory, and free the memory pages of this range."""
    if isinstance(data, bytes) or end - begin < LARGE:
        return data[begin:end]
    end = min(end, len(data))
    # The reader creates the bytes object first, and then fills it part by part.
    return io.BufferedReader(_Mover(data, begin, end)).read(end - begin)


def free(data: Data, begin: int, end: int) -> None:
    """Free the pages that lie completely in a range; afterwards, these pages contain zeros."""
    first, last = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
    if sys.platform == "linux" and isinstance(data, mmap.mmap) and first < last:
        data.madvise(mmap.MADV_DONTNEED, first, last - first)


class _Mover(io.RawIOBase):
    """A stream of the bytes of a range; the pages of the range are freed as they are read."""

    def __init__(self, mapping: mmap.mmap, begin: int, end: int) -> None:
        self._mapping: Final = mapping
        self._at = begin
        self._end: Final = end

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview, /) -> int:  # type: ignore[override]  # what BufferedReader passes
        size = min(len(target), LARGE, self._end - self._at)
        target[:size] = self._mapping[self._at : self._at + size]
        free(self._mapping, self._at, self._at + size)
        self._at += size
        return size
