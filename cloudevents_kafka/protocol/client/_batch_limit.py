"""`BatchLimit`: the size of the batches of a partition whose leader has refused one as too large.

Sizes are the sizes of encoded batches, which brokers compare with ``max.message.bytes``. The records in
a refused batch may be small. The law:

1. A batch of a size that was refused is split before it is sent, unless it is a single record.
2. The next batch has the size halfway between the largest accepted and the smallest refused one. Once these
   differ by a tenth, it has the accepted size.
3. After many batches of that size, the limit may have been raised: the refused size is forgotten, and batches
   double until another one is refused.
"""

from __future__ import annotations

from typing import Final

_MANY: Final = 200  # full batches until a larger one is tried: it costs 4 requests at most


class BatchLimit:
    """The largest accepted and the smallest refused size of a partition's batches, in bytes."""

    def __init__(self) -> None:
        self._accepted = 0
        self._refused: int | None = None
        self._full = 0
        self._ratio = 1.0

    def measure(self, queued: int, encoded: int) -> None:
        """Record the encoded size of a number of bytes of queued records."""
        self._ratio = encoded / queued

    def allows(self, encoded: int) -> bool:
        """Return whether no batch of this size, or smaller, was refused."""
        return self._refused is None or encoded < self._refused

    def refuse(self, encoded: int) -> None:
        """Record that a batch of this size was refused."""
        self._refused, self._full = encoded, 0
        if self._accepted >= encoded:  # the limit was lowered
            self._accepted = 0

    def accept(self, encoded: int) -> None:
        """Record that a batch of this size was accepted."""
        self._full += 2 * encoded > self._accepted
        self._accepted = max(self._accepted, encoded)
        if not self.allows(encoded) or self._full > _MANY:
            self._refused, self._full = None, 0

    def room(self) -> int:
        """Return how many bytes of queued records the next batch may have."""
        return max(1, int(self._size() / self._ratio))

    def _size(self) -> int:
        if self._refused is None:
            return 2 * self._accepted
        if self._refused - self._accepted > self._accepted // 10:
            return (self._accepted + self._refused) // 2
        return self._accepted
