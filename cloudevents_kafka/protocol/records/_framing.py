"""The boundaries of entries in a buffer of records of any magic.

Messages (magic 0 and 1) and batches (magic 2) start alike: int64 offset, int32 size of the rest, and the
magic at byte 16. A broker may cut the last entry anywhere, at the requested size. Brokers that down-convert
records may add a last entry that is never complete (offset -1, a size beyond the end).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.errors import Malformed

START: Final = struct.Struct(">qi")
_SIZE: Final = struct.Struct(">i").unpack_from
_MAGIC_AT: Final = 16
_SMALLEST: Final = (26, 34, 61)
"""The smallest size of an entry in bytes, by magic."""


class EntryBounds(NamedTuple):
    """Entry ``i`` is from ``bounds[i]`` to ``bounds[i + 1]``; ``partial_size`` bytes follow the last one."""

    bounds: list[int]
    partial_size: int


def find_entries(data: bytes) -> EntryBounds:
    """Return the boundaries of the entries; raise `Malformed` for an invalid size or magic."""
    bounds, start, end = [0], 0, len(data)
    while end - start >= START.size:
        size = START.size + _SIZE(data, start + 8)[0]
        if size < _SMALLEST[0]:
            raise Malformed(
                f"an entry must have at least {_SMALLEST[0]} bytes, got {size}", at=start, path="size"
            )
        if size > end - start:
            break
        magic = data[start + _MAGIC_AT]
        if magic > 2:
            raise Malformed(f"the magic must be 0, 1 or 2, got {magic}", at=start, path="magic")
        if size < _SMALLEST[magic]:
            raise Malformed(
                f"an entry of magic {magic} must have at least {_SMALLEST[magic]} bytes, got {size}",
                at=start,
                path="size",
            )
        start += size
        bounds.append(start)
    return EntryBounds(bounds, end - start)
