"""A consumer of confluent-kafka's shape that reads from memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cloudevents_kafka.testing.fakes.log import FakeLog, TopicAndPartition, kafka_error, kafka_exception
from cloudevents_kafka.testing.fakes.message import FakeMessage

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_EARLIEST, _LATEST, _STORED, _INVALID = -2, -1, -1000, -1001
_MOST_MESSAGES = 1_000_000

OnAssign = Callable[[Any, list["TopicPartition"]], object]


class FakeConsumer:
    """Stands in for `confluent_kafka.Consumer` in tests; reads a `FakeLog` or messages given.

    It never waits: `poll` gives None and `consume` a short list when nothing is
    left. It has all partitions of its topics. `offsets` are the group's
    committed offsets by (topic, partition); hand them to the next consumer to
    play a restart. `fail_next` makes the next reads give errors.
    """

    def __init__(
        self,
        source: FakeLog | Iterable[FakeMessage] = (),
        *,
        offsets: dict[TopicAndPartition, int] | None = None,
        auto_offset_reset: str = "earliest",
        auto_commit: bool = True,
    ) -> None:
        self.log = source if isinstance(source, FakeLog) else FakeLog(source)
        self.offsets: dict[TopicAndPartition, int] = {} if offsets is None else offsets
        self._from_start = auto_offset_reset == "earliest"
        self._auto_commit = auto_commit
        self._topics: list[str] = []
        self._on_assign: OnAssign | None = None
        self._positions: dict[TopicAndPartition, int] = {}
        self._stored: dict[TopicAndPartition, int] = {}
        self._paused: set[TopicAndPartition] = set()
        self._errors: deque[FakeMessage] = deque()
        self._closed = False

    def fail_next(self, *codes: str) -> None:
        """Let the next reads give a message with an error, one for each error name."""
        for code in codes:
            error = kafka_error(code)
            self._errors.append(FakeMessage(value=error.str(), partition=None, error=error))

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: OnAssign | None = None,
        on_revoke: OnAssign | None = None,
        on_lost: OnAssign | None = None,
    ) -> None:
        """Read these topics from the next `poll` on; ``^`` begins a pattern."""
        self._check_open()
        self._topics = list(topics)
        self._on_assign = on_assign

    def unsubscribe(self) -> None:
        """Read nothing any more."""
        self._check_open()
        self._topics = []
        self._positions.clear()

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read exactly these partitions, from the offsets they carry."""
        self._check_open()
        self._positions = {_place(part): self._start(part) for part in partitions}

    def unassign(self) -> None:
        """Read nothing any more."""
        self._check_open()
        self._positions.clear()

    def assignment(self) -> list[TopicPartition]:
        """List the partitions that are read."""
        self._check_open()
        return [_part(place, offset) for place, offset in self._positions.items()]

    def poll(self, timeout: float = -1) -> FakeMessage | None:
        """Give the next message, or None at once."""
        return next(iter(self._read(1)), None)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[FakeMessage]:
        """Give up to `num_messages` at once."""
        if not 0 <= num_messages <= _MOST_MESSAGES:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        return self._read(num_messages)

    def seek(self, partition: TopicPartition) -> None:
        """Read a partition from another offset."""
        self._check_open()
        if _place(partition) not in self._positions:
            raise kafka_exception(
                "_STATE", f"Failed to seek to offset {partition.offset}: Local: Erroneous state"
            )
        self._positions[_place(partition)] = self._start(partition)

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """Hold these partitions back until `resume`."""
        self._check_open()
        self._paused.update(map(_place, partitions))

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        """Go on with partitions that were paused."""
        self._check_open()
        self._paused.difference_update(map(_place, partitions))

    def commit(
        self,
        message: Any = None,
        offsets: Sequence[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit after a message, these offsets, or all that was read; give them unless asynchronous."""
        self._check_open()
        chosen = self._chosen(message, offsets)
        if chosen is None:
            chosen = {place: at for place, at in self._stored.items() if at != self.offsets.get(place)}
        if not chosen and not asynchronous:
            raise kafka_exception("_NO_OFFSET", "Commit failed: Local: No offset stored")
        self.offsets.update(chosen)
        return None if asynchronous else [_part(place, offset) for place, offset in chosen.items()]

    def store_offsets(self, message: Any = None, offsets: Sequence[TopicPartition] | None = None) -> None:
        """Set what the next `commit` commits."""
        self._check_open()
        chosen = self._chosen(message, offsets)
        if chosen is None:
            raise ValueError("expected either message or offsets")
        self._stored.update(chosen)

    def committed(self, partitions: Sequence[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Give the committed offsets; -1001 where there is none."""
        self._check_open()
        return [_part(_place(part), self.offsets.get(_place(part), _INVALID)) for part in partitions]

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Give the offsets after the last message read; -1001 where none was."""
        self._check_open()
        return [_part(_place(part), self._stored.get(_place(part), _INVALID)) for part in partitions]

    def get_watermark_offsets(
        self,
        partition: TopicPartition,
        timeout: float = -1,
        cached: bool = False,
    ) -> tuple[int, int]:
        """Give the first offset and the one after the last."""
        self._check_open()
        return 0, self.log.end(_place(partition))

    def close(self) -> None:
        """Commit what was read (unless `auto_commit` is off) and refuse all further work."""
        if not self._closed and self._auto_commit:
            self.offsets.update(self._stored)
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")

    def _read(self, most: int) -> list[FakeMessage]:
        self._check_open()
        self._join()
        found: list[FakeMessage] = []
        while len(found) < most:
            message = self._errors.popleft() if self._errors else self._next()
            if message is None:
                break
            found.append(message)
        return found

    def _next(self) -> FakeMessage | None:
        for place, offset in self._positions.items():
            message = None if place in self._paused else self.log.read(place, offset)
            if message is not None:
                self._positions[place] = self._stored[place] = (message.offset() or 0) + 1
                return message
        return None

    def _join(self) -> None:
        """Take over partitions of subscribed topics that appeared."""
        new = [place for place in self.log.places() if place not in self._positions and self._wants(place[0])]
        if not new:
            return
        for place in new:
            self._positions[place] = self._start(_part(place, _INVALID))
        if self._on_assign is not None:
            self._on_assign(self, [_part(place, _INVALID) for place in new])

    def _wants(self, topic: str) -> bool:
        return any(re.match(name, topic) if name.startswith("^") else name == topic for name in self._topics)

    def _start(self, part: TopicPartition) -> int:
        """Give the offset to read from: explicit, else committed, else by `auto_offset_reset`."""
        place = _place(part)
        if part.offset >= 0:
            return int(part.offset)
        if part.offset in {_STORED, _INVALID} and place in self.offsets:
            return self.offsets[place]
        at_start = part.offset == _EARLIEST or (part.offset != _LATEST and self._from_start)
        return 0 if at_start else self.log.end(place)

    def _chosen(
        self, message: Any, offsets: Sequence[TopicPartition] | None
    ) -> dict[TopicAndPartition, int] | None:
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            return {(message.topic(), message.partition()): message.offset() + 1}
        return None if offsets is None else {_place(part): part.offset for part in offsets}


def _place(part: TopicPartition) -> TopicAndPartition:
    return part.topic, part.partition


def _part(place: TopicAndPartition, offset: int) -> TopicPartition:
    from confluent_kafka import TopicPartition  # 120 ms, for users who look at partitions

    return TopicPartition(*place, offset)
