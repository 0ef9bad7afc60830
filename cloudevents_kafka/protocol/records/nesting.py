"""Limits on the depth and size of compressed message sets inside other compressed message sets.

Kafka's 0.8 protocol guide allows nested message sets. But a message of some hundred bytes may contain
millions of nested message sets. Decompressing these message sets takes time even if they contain no records.
"""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.records._unpacked import Data, take
from cloudevents_kafka.protocol.records.compression import Codec
from cloudevents_kafka.protocol.records.compression import unpack as decompress

_MAX_DEPTH: Final = 8
"""The deepest accepted nesting. Producers and brokers nest message sets only once; Kafka's guide has no
limit."""
_BEST_GZIP_RATIO: Final = 1032  # deflate's best
_LEAST: Final = 1 << 20
_SET: Final = 4096


class Nesting:
    """How many bytes may still be decompressed from a message set and from all message sets nested in it.

    The limit for all nested message sets together is the size to which gzip could expand the outermost
    message set, but at least 1 MiB. With this limit, nested message sets do not multiply the work of
    decompression. Each nested message set counts as 4 KiB more than its size, because decompressing a small
    message set takes time, too.
    """

    def __init__(self, limit: int, packed: int) -> None:
        """Store ``limit``, which is for all sets; ``packed`` is the compressed size of the outermost set."""
        self.left = limit
        self._inner = max(_LEAST, _BEST_GZIP_RATIO * packed)

    @property
    def is_used_up(self) -> bool:
        """Whether no more nested message sets may be decompressed."""
        return self._inner < 0

    def decompress(self, data: bytes, codec: Codec, depth: int) -> bytes:
        """Return the data of a message set that is nested in ``depth`` other message sets.

        Raises the errors of `compression.decompress`.
        """
        unpacked = self.unpack(data, codec, depth)
        return take(unpacked, 0, len(unpacked))

    def unpack(self, data: bytes, codec: Codec, depth: int) -> Data:
        """Return the same data as `decompress`, but in a form that can be read only once, with `take`."""
        if depth == 0:
            out = decompress(data, codec, self.left)
        elif depth >= _MAX_DEPTH:
            raise Malformed(f"compressed sets must be nested at most {_MAX_DEPTH} deep")
        else:
            self._inner -= _SET
            if (limit := min(self.left, self._inner)) < 0:
                raise Malformed("the compressed sets in a message set must be few and small")
            out = decompress(data, codec, limit)
            self._inner -= len(out)
        self.left -= len(out)
        return out
