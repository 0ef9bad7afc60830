"""Read a range of a topic: its partitions, from where, to where, and when that is reached.

Where each partition ends is asked once, at the start. A partition is read when its
last offset was seen, or when the client says that there is no more to read: the last
offsets may hold no record (transaction markers, compaction, aborted transactions).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cloudevents_kafka.cli.kafka.clients import Reach, kafka_errors
from cloudevents_kafka.cli.kafka.offsets import Bounds, Position, resolve
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_BATCH: Final = 500
_TURN: Final = 0.1  # seconds to gather a batch: what a follower waits at most to see a record
_GROUP_DENIED: Final = "GROUP_AUTHORIZATION_FAILED"


class Span(msgspec.Struct):
    """What is to be read of a partition: from ``start`` up to but without ``stop``.

    ``stop`` is None where reading goes on for ever; ``first`` is the offset that was
    asked for, which may not be written yet.
    """

    start: int
    stop: int | None
    first: int = 0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be read: a topic, which partitions, and between which positions."""

    topic: str
    partitions: Sequence[int] = ()
    begin: Position
    end: Position | None = None
    follow: bool = False
    group: str | None = None


class Reading:
    """Reads what was requested through a consumer, in batches of records."""

    def __init__(self, consumer: Consumer, reach: Reach, request: Request) -> None:
        self._consumer = consumer
        self._reach = reach
        self._request = request
        self._spans: dict[int, Span] = {}

    def start(self) -> None:
        """Find out what there is to read, and begin; raises `BrokerTrouble`, `BadUsage`."""
        known = self._reach.partitions(self._consumer, self._request.topic)
        unknown = sorted(set(self._request.partitions) - set(known))
        if unknown:
            there = f"it has {known[0]} to {known[-1]}"
            raise BadUsage(f"topic {self._request.topic!r} has no partition {unknown[0]}: {there}")
        with kafka_errors(self._reach):
            self._spans = self._find_spans(self._request.partitions or known)
            self._consumer.assign([self._place(number, span.start) for number, span in self._spans.items()])

    def batches(self) -> Iterator[list[Record]]:
        """Give records as they come, until all spans are read; for ever with ``follow``.

        Raises `BrokerTrouble` where nothing is heard for too long, and `Interrupted`.
        """
        heard = time.monotonic()
        while self._spans:
            self._reach.check()
            with kafka_errors(self._reach):
                messages = self._consumer.consume(_BATCH, _TURN)
            records = [record for message in messages if (record := self._take(message)) is not None]
            if records:
                yield records
            if messages:
                self._reach.found()
                heard = time.monotonic()  # after the yield: whoever writes may take their time
            elif not self._request.follow and time.monotonic() - heard > self._reach.timeout:
                raise self._reach.silence()

    def commit(self, offsets: dict[int, int]) -> None:
        """Store, for the group, the offsets to go on from, by partition; waits for the broker."""
        with kafka_errors(self._reach):
            places = [self._place(number, offset) for number, offset in offsets.items()]
            for place in self._consumer.commit(offsets=places, asynchronous=False) or ():
                if place.error is not None:
                    what = f"did not store the offsets of group {self._request.group!r}"
                    raise self._reach.trouble(what, place.error)

    def _take(self, message: Any) -> Record | None:
        """Make a record of a message; None for news, and for what is outside its span."""
        error = message.error()
        if error is not None:
            self._hear(error, message.partition())
            return None
        span = self._spans.get(message.partition())
        if span is None:
            return None  # it was fetched before its partition was done with
        offset = message.offset()
        if span.stop is not None and offset >= span.stop - 1:
            self._finish(message.partition())
            if offset >= span.stop:
                return None
        return Record.of(message) if offset >= span.first else None

    def _hear(self, error: Any, partition: int) -> None:
        if error.name() == "_PARTITION_EOF":
            if partition in self._spans and self._spans[partition].stop is not None:
                self._finish(partition)
        elif error.name() == _GROUP_DENIED and self._request.group is None:
            pass  # the client asks for a group of its own accord; none is used
        elif error.fatal() or not (error.retriable() or error.name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN")):
            raise self._reach.refusal(error, self._request.topic)

    def _finish(self, partition: int) -> None:
        del self._spans[partition]
        with kafka_errors(self._reach):
            self._consumer.pause([self._place(partition)])

    # --- what there is ---

    def _find_spans(self, partitions: Iterable[int]) -> dict[int, Span]:
        bounds = {number: self._bounds(number) for number in partitions}
        begins = self._resolve_all(self._request.begin, bounds)
        first = self._request.begin.number if self._request.begin.kind == "offset" else 0
        if self._request.follow:
            return {number: Span(start, None, first) for number, start in begins.items()}
        ends = self._resolve_all(self._request.end or Position("latest"), bounds)
        spans = {number: Span(start, ends[number], first) for number, start in begins.items()}
        return {number: span for number, span in spans.items() if span.start < (span.stop or 0)}

    def _bounds(self, number: int) -> Bounds:
        self._reach.check()
        place, timeout = self._place(number), self._reach.timeout
        return Bounds(*self._consumer.get_watermark_offsets(place, timeout=timeout, cached=False))

    def _resolve_all(self, position: Position, bounds: dict[int, Bounds]) -> dict[int, int]:
        found = self._look_up(position, list(bounds))
        return {number: resolve(position, bound, found.get(number)) for number, bound in bounds.items()}

    def _look_up(self, position: Position, partitions: Sequence[int]) -> dict[int, int]:
        """Ask the broker what a time or a group's stored offset means; by partition, where known."""
        timeout = self._reach.timeout
        if position.kind == "time":
            asked = [self._place(number, position.number) for number in partitions]
            places = self._consumer.offsets_for_times(asked, timeout=timeout)
        elif position.kind == "stored":
            places = self._consumer.committed([self._place(number) for number in partitions], timeout=timeout)
        else:
            return {}
        for place in places:
            if place.error is not None:
                raise self._reach.trouble("failed", place.error)
        return {place.partition: place.offset for place in places if place.offset >= 0}

    def _place(self, number: int, offset: int = -1001) -> TopicPartition:
        from confluent_kafka import TopicPartition

        return TopicPartition(self._request.topic, number, offset)
