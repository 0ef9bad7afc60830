"""The sequence numbers of idempotent producers in one partition (KIP-98)."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.records import RecordBatch
from cloudevents_kafka.testing.wire_broker._errors import ApiError

_NUMBERS: Final = 1 << 31
"""Sequence numbers wrap to 0 after the largest int32."""
_REMEMBERED: Final = 5
"""Batches per producer whose offsets a broker remembers: as many as may be in flight at once."""


class _Appended(NamedTuple):
    first: int
    last: int
    offset: int


class _Producer:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.appended: deque[_Appended] = deque(maxlen=_REMEMBERED)


class Sequences:
    """The last batches of each producer."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def offset_of_duplicate(self, batch: RecordBatch) -> int | None:
        """Return the offset of a batch that was appended before, None for the producer's next batch.

        `ApiError` with 45 if batches are missing before it, 46 for an old batch whose offset is
        forgotten, 47 for an old epoch of the producer.
        """
        known = self._producers.get(batch.producer_id)
        if batch.producer_id < 0 or known is None:
            return None
        if batch.producer_epoch < known.epoch:
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if batch.producer_epoch > known.epoch:
            return self._first_of_epoch(batch)
        for one in known.appended:
            if (one.first, one.last) == _range(batch):
                return one.offset
        ahead = (batch.base_sequence - known.appended[-1].last - 1) % _NUMBERS
        if ahead:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                if ahead < _NUMBERS // 2
                else ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            )
        return None

    def add(self, batch: RecordBatch, offset: int) -> None:
        """Remember the offset of an appended batch."""
        if batch.producer_id < 0:
            return
        known = self._producers.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        known.appended.append(_Appended(*_range(batch), offset))

    @staticmethod
    def _first_of_epoch(batch: RecordBatch) -> None:
        if batch.base_sequence != 0:
            raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def _range(batch: RecordBatch) -> tuple[int, int]:
    return batch.base_sequence, (batch.base_sequence + batch.last_offset_delta) % _NUMBERS
