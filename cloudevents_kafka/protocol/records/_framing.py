"""Where entries begin and end in a buffer of records, whatever their magic.

Messages (magic 0 and 1) and batches (magic 2) begin alike: int64 offset, int32 size of
what follows, and the magic at byte 16. A broker may cut the last one anywhere: it sends
as many bytes as were asked for. Brokers that write newer data in an older form put a
last entry there which is never whole (offset -1, a size beyond the end).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.errors import Malformed

START: Final = struct.Struct(">qi")
_SIZE: Final = struct.Struct(">i").unpack_from
_MAGIC_AT: Final = 16
_SMALLEST: Final = (26, 34, 61)
"""The bytes of an entry that holds nothing, by magic."""


class Frames(NamedTuple):
    """Entry ``i`` reaches from ``bounds[i]`` to ``bounds[i + 1]``; ``partial_size`` bytes follow the last."""

    bounds: list[int]
    partial_size: int


def frames(data: bytes) -> Frames:
    """Find the entries by their sizes alone; `Malformed` for a size or magic that none has."""
    bounds, start, end = [0], 0, len(data)
    while end - start >= START.size:
        size = START.size + _SIZE(data, start + 8)[0]
        if size < _SMALLEST[0]:
            raise Malformed(f"an entry of {size} bytes is too short for a message", at=start, path="size")
        if size > end - start:
            break
        magic = data[start + _MAGIC_AT]
        if magic > 2:
            raise Malformed(f"magic {magic} is not known; there are 0, 1 and 2", at=start, path="magic")
        if size < _SMALLEST[magic]:
            raise Malformed(f"an entry of magic {magic} has no room in {size} bytes", at=start, path="size")
        start += size
        bounds.append(start)
    return Frames(bounds, end - start)
