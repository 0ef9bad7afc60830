"""The sequence numbers of idempotent producers, by partition (KIP-98)."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.records import RecordBatch
from cloudevents_kafka.testing.wire_broker.errors import Refused

_NUMBERS: Final = 1 << 31
"""Sequence numbers begin again at 0 behind the largest int32."""
_REMEMBERED: Final = 5
"""Of how many batches a broker knows the offsets, which is how many may be on the way at once."""


class _Appended(NamedTuple):
    first: int
    last: int
    offset: int


class _Producer:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.appended: deque[_Appended] = deque(maxlen=_REMEMBERED)


class Sequences:
    """What each producer has appended to one partition."""

    def __init__(self) -> None:
        """Begin with no producers."""
        self._producers: dict[int, _Producer] = {}

    def appended_before(self, batch: RecordBatch) -> int | None:
        """Return the offset of a batch that was sent again, None for the producer's next.

        `Refused` with 45 where batches are missing before it, 46 for an old one whose
        offset is forgotten, 47 for an old epoch of the producer.
        """
        known = self._producers.get(batch.producer_id)
        if batch.producer_id < 0 or known is None:
            return None
        if batch.producer_epoch < known.epoch:
            raise Refused(ErrorCode.INVALID_PRODUCER_EPOCH)
        if batch.producer_epoch > known.epoch:
            return self._first_of_epoch(batch)
        for one in known.appended:
            if (one.first, one.last) == _range(batch):
                return one.offset
        ahead = (batch.base_sequence - known.appended[-1].last - 1) % _NUMBERS
        if ahead:
            raise Refused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                if ahead < _NUMBERS // 2
                else ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            )
        return None

    def note(self, batch: RecordBatch, offset: int) -> None:
        """Remember that a batch was appended."""
        if batch.producer_id < 0:
            return
        known = self._producers.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        known.appended.append(_Appended(*_range(batch), offset))

    @staticmethod
    def _first_of_epoch(batch: RecordBatch) -> None:
        if batch.base_sequence != 0:
            raise Refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def _range(batch: RecordBatch) -> tuple[int, int]:
    return batch.base_sequence, (batch.base_sequence + batch.last_offset_delta) % _NUMBERS
