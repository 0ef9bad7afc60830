"""`BatchLimit`: the batch size for a partition whose leader has refused a batch as too large.

All sizes in this module are sizes of encoded batches, which brokers compare with ``max.message.bytes``. A
broker may refuse a batch even if each of its records is small. The rules:

1. A batch that is not smaller than a refused batch is split before it is sent, unless it contains only one
   record.
2. The size of the next batch is halfway between the largest accepted size and the smallest refused size. When
   the two sizes differ by at most a tenth, the largest accepted size becomes the size of the next
   batch.
3. After many accepted batches of about the largest accepted size, the client forgets the refused size,
   because the broker's limit may have been raised. The size of batches then doubles until the broker refuses
   another batch.
"""

from __future__ import annotations

from typing import Final

_MANY: Final = 200  # full batches before a larger batch is tried, which costs at most 4 requests


class BatchLimit:
    """The largest accepted size and the smallest refused size of batches for one partition, in bytes."""

    def __init__(self) -> None:
        self._accepted = 0
        self._refused: int | None = None
        self._full = 0
        self._ratio = 1.0

    def measure(self, queued: int, encoded: int) -> None:
        """Store how many bytes a batch's encoding has for each byte of its queued records."""
        self._ratio = encoded / queued

    def allows(self, encoded: int) -> bool:
        """Return whether a batch of this size may be accepted: no batch of this size or less was refused."""
        return self._refused is None or encoded < self._refused

    def refuse(self, encoded: int) -> None:
        """Store the size of a batch that the broker has refused."""
        self._refused, self._full = encoded, 0
        if self._accepted >= encoded:  # the limit was lowered
            self._accepted = 0

    def accept(self, encoded: int) -> None:
        """Store the size of an accepted batch; forget the refused size if the limit seems to be raised."""
        self._full += 2 * encoded > self._accepted
        self._accepted = max(self._accepted, encoded)
        if not self.allows(encoded) or self._full > _MANY:
            self._refused, self._full = None, 0

    def room(self) -> int:
        """Return how many bytes of queued records may be in the next batch."""
        return max(1, int(self._size() / self._ratio))

    def _size(self) -> int:
        if self._refused is None:
            return 2 * self._accepted
        if self._refused - self._accepted > self._accepted // 10:
            return (self._accepted + self._refused) // 2
        return self._accepted
