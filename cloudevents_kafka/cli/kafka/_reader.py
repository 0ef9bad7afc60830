"""Read a range of offsets from the partitions of a topic.

The end of each partition is looked up once, at the start. A partition is finished when its last
offset has been read, or when the client reports its end: the last offsets may have no record
(transaction markers, aborted transactions, compaction).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cloudevents_kafka.cli.kafka._offsets import Position, check_partitions, resolve_offset
from cloudevents_kafka.cli.kafka._session import BrokerSession, kafka_errors
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_BATCH: Final = 500
_BATCH_SECONDS: Final = 0.1  # to gather a batch: the longest delay of a record with --follow
_GROUP_DENIED: Final = "GROUP_AUTHORIZATION_FAILED"


class OffsetRange(msgspec.Struct):
    """The offsets to read of a partition: ``start`` up to, without, ``stop``; None is endless.

    ``first`` is the offset that the user asked for; it may not exist yet.
    """

    start: int
    stop: int | None
    first: int = 0


class ReadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A topic, its partitions (all if empty), and the positions to read between."""

    topic: str
    partitions: Sequence[int] = ()
    begin: Position
    end: Position | None = None
    follow: bool = False
    group: str | None = None


class RangeReader:
    """A reader of the records of a request, in batches."""

    def __init__(self, consumer: Consumer, session: BrokerSession, request: ReadRequest) -> None:
        self._consumer = consumer
        self._session = session
        self._request = request
        self._ranges: dict[int, OffsetRange] = {}

    def start(self) -> None:
        """Look up the offsets to read and assign the partitions; raises `BrokerFailure`, `BadUsage`."""
        existing = self._session.partitions(self._consumer, self._request.topic)
        check_partitions(self._request.topic, self._request.partitions, existing)
        with kafka_errors(self._session):
            self._ranges = self._find_ranges(self._request.partitions or existing)
            self._consumer.assign([self._partition(number, r.start) for number, r in self._ranges.items()])

    def batches(self) -> Iterator[list[Record]]:
        """Yield batches of records until all ranges are read; with ``follow``, forever.

        Raises `BrokerFailure` if the broker does not answer within the timeout, and `Interrupted`.
        """
        last_answer = time.monotonic()
        while self._ranges:
            self._session.check()
            with kafka_errors(self._session):
                messages = self._consumer.consume(_BATCH, _BATCH_SECONDS)
            records = [record for message in messages if (record := self._record(message)) is not None]
            if records:
                yield records
            if messages:
                self._session.mark_connected()
                last_answer = time.monotonic()  # after the yield: the caller may be slow
            elif not self._request.follow and time.monotonic() - last_answer > self._session.timeout:
                raise self._session.no_answer()

    def commit(self, offsets: dict[int, int]) -> None:
        """Commit the next offset of each partition for the group, and wait for the broker."""
        with kafka_errors(self._session):
            partitions = [self._partition(number, offset) for number, offset in offsets.items()]
            for partition in self._consumer.commit(offsets=partitions, asynchronous=False) or ():
                if partition.error is not None:
                    what = f"did not store the offsets of group {self._request.group!r}"
                    raise self._session.failure(what, partition.error)

    def _record(self, message: Any) -> Record | None:
        """Return the record of a message; None for an event of the client or outside the range."""
        error = message.error()
        if error is not None:
            self._handle_error(error, message.partition())
            return None
        range_ = self._ranges.get(message.partition())
        if range_ is None:
            return None  # fetched before its partition was finished
        offset = message.offset()
        if range_.stop is not None and offset >= range_.stop - 1:
            self._finish(message.partition())
            if offset >= range_.stop:
                return None
        return Record.of(message) if offset >= range_.first else None

    def _handle_error(self, error: Any, partition: int) -> None:
        if error.name() == "_PARTITION_EOF":
            if partition in self._ranges and self._ranges[partition].stop is not None:
                self._finish(partition)
        elif error.name() == _GROUP_DENIED and self._request.group is None:
            pass  # the client looks up the group of its settings, which is not used
        elif error.fatal() or not (error.retriable() or error.name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN")):
            raise self._session.topic_error(error, self._request.topic)

    def _finish(self, partition: int) -> None:
        del self._ranges[partition]
        with kafka_errors(self._session):
            self._consumer.pause([self._partition(partition)])

    # --- offsets to read ---

    def _find_ranges(self, partitions: Iterable[int]) -> dict[int, OffsetRange]:
        watermarks = {number: self._watermarks(number) for number in partitions}
        starts = self._resolve(self._request.begin, watermarks)
        first = self._request.begin.number if self._request.begin.kind == "offset" else 0
        if self._request.follow:
            return {number: OffsetRange(start, None, first) for number, start in starts.items()}
        stops = self._resolve(self._request.end or Position("latest"), watermarks)
        return {
            number: OffsetRange(start, stops[number], first)
            for number, start in starts.items()
            if start < stops[number]
        }

    def _watermarks(self, number: int) -> tuple[int, int]:
        self._session.check()
        partition, timeout = self._partition(number), self._session.timeout
        low, high = self._consumer.get_watermark_offsets(partition, timeout=timeout, cached=False)
        return low, high

    def _resolve(self, position: Position, watermarks: dict[int, tuple[int, int]]) -> dict[int, int]:
        known = self._look_up(position, list(watermarks))
        return {n: resolve_offset(position, marks, known.get(n)) for n, marks in watermarks.items()}

    def _look_up(self, position: Position, numbers: Sequence[int]) -> dict[int, int]:
        """Return the broker's offset for a time or of the group, for each partition that has one."""
        timeout = self._session.timeout
        if position.kind == "time":
            times = [self._partition(number, position.number) for number in numbers]
            answers = self._consumer.offsets_for_times(times, timeout=timeout)
        elif position.kind == "stored":
            answers = self._consumer.committed(
                [self._partition(number) for number in numbers], timeout=timeout
            )
        else:
            return {}
        for answer in answers:
            if answer.error is not None:
                raise self._session.failure("failed", answer.error)
        return {answer.partition: answer.offset for answer in answers if answer.offset >= 0}

    def _partition(self, number: int, offset: int | None = None) -> TopicPartition:
        from confluent_kafka import OFFSET_INVALID, TopicPartition

        return TopicPartition(self._request.topic, number, OFFSET_INVALID if offset is None else offset)
