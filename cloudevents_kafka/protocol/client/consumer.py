"""Consumer: gives records one by one or in lists, from partitions of its own choice or a group's.

It has the shape of confluent-kafka's consumer as far as its methods go, so
`EventConsumer` works on top of it. Errors that stay are raised, not given as messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self, TypeAlias

from cloudevents_kafka.protocol.client.batches import TopicAndPartition
from cloudevents_kafka.protocol.client.cluster import Cluster, worth_another_try
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.fetcher import Fetcher, FetchPolicy
from cloudevents_kafka.protocol.client.group import MOVED_ON, GroupPolicy, Membership
from cloudevents_kafka.protocol.client.message import Message
from cloudevents_kafka.protocol.client.offsets import EARLIEST, LATEST, GroupOffsets, offset_at
from cloudevents_kafka.protocol.errors import BrokerError, ClientError, DeadlineExceeded, ProtocolError

STORED: Final = -1000
"""The offset that stands for the committed one, as in confluent-kafka."""

UNKNOWN: Final = -1001
"""The offset that stands for none: begin at the committed one, or as ``reset`` says."""

_TURN: Final = 0.2  # seconds, so that Ctrl-C is heard


class TopicPartition(NamedTuple):
    """A partition, and an offset in it."""

    topic: str
    partition: int
    offset: int = UNKNOWN


class _Part(Protocol):
    """What is taken for a partition: the above, or confluent-kafka's."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


OnChange: TypeAlias = Callable[[Any, list[TopicPartition]], object]


class Consumer:
    """Reads records; make it by `Client.consumer`, and close it, so that its group knows at once."""

    def __init__(
        self,
        new_cluster: Callable[[], Cluster],
        policy: FetchPolicy,
        group: GroupPolicy | None,
        *,
        auto_commit: float | None,
    ) -> None:
        """Read nothing yet. ``auto_commit`` is the time between commits in seconds, None for none."""
        self._new_cluster: Final = new_cluster
        self._cluster: Final = new_cluster()
        self._policy: Final = policy
        self._group: Final = group
        self._auto_commit: Final = auto_commit if group is not None else None
        self._fetcher: Final = Fetcher(self._cluster, policy)
        self._membership: Membership | None = None
        self._generation = -1
        self._on_assign: OnChange | None = None
        self._on_revoke: OnChange | None = None
        self._ready: deque[Message] = deque()
        self._consumed: dict[TopicAndPartition, int] = {}
        self._committed: dict[TopicAndPartition, int] = {}
        self._held_back: set[TopicAndPartition] = set()
        self._next_commit = Deadline(self._auto_commit)
        self._closed = False

    # --- what to read --------------------------------------------------------------------

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: OnChange | None = None,
        on_revoke: OnChange | None = None,
    ) -> None:
        """Join the group and read what it assigns; needs ``group`` in `Client.consumer`."""
        self._check_open()
        if self._group is None:
            raise ClientError("to subscribe, name a group: client.consumer(group=...); or assign partitions")
        if isinstance(topics, str) or any(topic.startswith("^") for topic in topics):
            raise ValueError("topics are a list of names; patterns are not supported")
        self.unsubscribe()
        self._on_assign, self._on_revoke = on_assign, on_revoke
        self._membership = Membership(self._new_cluster(), self._group, tuple(topics))

    def unsubscribe(self) -> None:
        """Leave the group, and read nothing any more."""
        self._check_open()
        if self._membership is not None:
            self._give_up()
            self._membership.close(Deadline(self._policy.request_timeout))
            self._membership = None
        self._take_up({})

    def assign(self, partitions: Iterable[_Part]) -> None:
        """Read exactly these partitions, each from its offset.

        That is a number, or `EARLIEST`, `LATEST`, `STORED`, `UNKNOWN`.
        """
        self._check_open()
        deadline = Deadline(self._policy.request_timeout)
        given = {(part.topic, part.partition): part.offset for part in partitions}
        self._take_up(self._starts(given, deadline))

    def unassign(self) -> None:
        """Read nothing any more."""
        self.assign([])

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read, and where each stands."""
        return [TopicPartition(*place, offset) for place, offset in sorted(self._consumed.items())]

    def seek(self, partition: _Part) -> None:
        """Go on from another offset."""
        place = (partition.topic, partition.partition)
        if place not in self._consumed:
            raise ClientError(f"{place[0]}[{place[1]}] is not read by this consumer, so it cannot seek in it")
        start = self._starts({place: partition.offset}, Deadline(self._policy.request_timeout))[place]
        self._ready = deque(m for m in self._ready if (m.topic(), m.partition()) != place)
        self._consumed[place] = start
        wanted = {p: self._fetcher.position(p) or 0 for p in self._consumed}
        self._fetcher.want(wanted | {place: start})

    def pause(self, partitions: Iterable[_Part]) -> None:
        """Hold these partitions back until `resume`."""
        self._held_back |= {(part.topic, part.partition) for part in partitions}

    def resume(self, partitions: Iterable[_Part]) -> None:
        """Go on with partitions that were paused."""
        self._held_back -= {(part.topic, part.partition) for part in partitions}

    # --- reading -------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next record, None where none came within ``timeout`` seconds; -1 is endless.

        Raises a `ProtocolError` that does not mend itself.
        """
        deadline = Deadline(timeout)
        while True:
            self._check_open()
            self._maybe_commit()
            self._follow_group(deadline)
            if (message := self._next()) is not None:
                return message
            self._ready.extend(self._fetcher.fetch(self._held_back, Deadline(deadline.at_most(_TURN))))
            if deadline.over():
                return self._next()

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return up to so many records that came within ``timeout`` seconds.

        Fewer where the group rebalances or an error comes up, which the next call raises:
        nothing is committed, and nothing lost, that was not returned.
        """
        deadline = Deadline(timeout)
        if num_messages < 1 or (first := self.poll(timeout)) is None:
            return []
        found = [first]
        try:
            while len(found) < num_messages:
                if (message := self._next()) is not None:
                    found.append(message)
                elif deadline.over() or (self._membership and self._membership.state != "stable"):
                    break
                else:
                    self._ready.extend(
                        self._fetcher.fetch(self._held_back, Deadline(deadline.at_most(_TURN)))
                    )
        except ProtocolError:
            return found
        except BaseException:  # Ctrl-C
            self._put_back(found)
            raise
        return found

    def _put_back(self, messages: list[Message]) -> None:
        for message in reversed(messages):
            self._ready.appendleft(message)
            self._consumed[message.topic(), message.partition()] = message.offset()

    def _next(self) -> Message | None:
        """Take the first record of a partition that is not held back, and count it as consumed."""
        for _ in range(len(self._ready)):
            message = self._ready.popleft()
            place = (message.topic(), message.partition())
            if place not in self._held_back:
                self._consumed[place] = message.offset() + 1
                return message
            self._ready.append(message)
        return None

    # --- offsets -------------------------------------------------------------------------

    def commit(
        self,
        message: Any = None,
        offsets: Iterable[_Part] | None = None,
        asynchronous: bool = False,  # noqa: FBT001, FBT002, ARG002  # as confluent-kafka has it; commits are answered here
    ) -> list[TopicPartition]:
        """Commit after a message, these offsets, or all that was consumed; return what was committed."""
        self._check_open()
        if message is not None:
            chosen = {(message.topic(), message.partition()): message.offset() + 1}
        elif offsets is not None:
            chosen = {(part.topic, part.partition): part.offset for part in offsets}
        else:
            chosen = self._new()
        self._commit(chosen)
        return [TopicPartition(*place, offset) for place, offset in chosen.items()]

    def committed(self, partitions: Iterable[_Part], timeout: float = -1) -> list[TopicPartition]:
        """Return the group's committed offsets, `UNKNOWN` where there is none."""
        places = [(part.topic, part.partition) for part in partitions]
        found = self._member().committed(places, Deadline(timeout))
        return [TopicPartition(*place, found.get(place, UNKNOWN)) for place in places]

    def position(self, partitions: Iterable[_Part]) -> list[TopicPartition]:
        """Return the offsets behind the last record that `poll` gave."""
        places = [(part.topic, part.partition) for part in partitions]
        return [TopicPartition(*place, self._consumed.get(place, UNKNOWN)) for place in places]

    def fetched(self, partition: _Part) -> int:
        """Return the offset to be fetched next: behind marks and gaps too, which `poll` gives nothing of."""
        return self._fetcher.position((partition.topic, partition.partition)) or 0

    def get_watermark_offsets(self, partition: _Part, timeout: float = -1) -> tuple[int, int]:
        """Return the first offset of a partition, and the one behind its last."""
        place, deadline = (partition.topic, partition.partition), Deadline(timeout)
        first = offset_at(self._cluster, place, EARLIEST, deadline)
        return first or 0, offset_at(self._cluster, place, LATEST, deadline) or 0

    def close(self) -> None:
        """Commit, leave the group, close the connections."""
        if self._closed:
            return
        try:
            if self._membership is not None:
                self._give_up()
        finally:
            self._closed = True
            self._cluster.close()
            if self._membership is not None:
                self._membership.close(Deadline(self._policy.request_timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the group -----------------------------------------------------------------------

    def _follow_group(self, deadline: Deadline) -> None:
        member = self._membership
        if member is None:
            return
        if member.state == "joining":
            member.wait(Deadline(deadline.at_most(_TURN)))
        if member.state == "failed" and member.error is not None:
            raise member.error
        if member.state == "rebalancing":
            self._give_up()
            member.rejoin()
        elif member.state == "stable" and member.generation != self._generation:
            generation, start = member.generation, Deadline(self._policy.request_timeout)
            self._take_up(self._starts(dict.fromkeys(member.assignment, STORED), start))
            self._generation = generation  # only now: what failed is done again
            if self._on_assign is not None:
                self._on_assign(self, self.assignment())

    def _give_up(self) -> None:
        """Stop reading what the group assigned, its offsets committed."""
        # Where the group has moved on, what was not committed is read again, by whoever gets it.
        with suppress(ProtocolError):
            if self._auto_commit is not None:
                self._commit(self._new())
        if self._on_revoke is not None and self._consumed:
            self._on_revoke(self, self.assignment())
        self._generation = -1  # 0.9 forgets a group that is empty, and counts from 1 again
        self._take_up({})

    def _take_up(self, starts: dict[TopicAndPartition, int]) -> None:
        self._ready.clear()
        self._consumed = dict(starts)
        self._committed = dict(starts)
        self._held_back.clear()
        self._fetcher.want(starts)

    def _starts(
        self, wanted: dict[TopicAndPartition, int], deadline: Deadline
    ) -> dict[TopicAndPartition, int]:
        """Turn offsets that stand for something into numbers."""
        stored = [place for place, offset in wanted.items() if offset in {STORED, UNKNOWN}]
        known = self._member().committed(stored, deadline) if stored and self._group is not None else {}
        return {place: self._start(place, known.get(place, at), deadline) for place, at in wanted.items()}

    def _start(self, place: TopicAndPartition, offset: int, deadline: Deadline) -> int:
        if offset >= 0:
            return offset
        if offset not in {EARLIEST, LATEST}:
            if self._policy.reset == "error":
                raise BrokerError(
                    1, f"{place[0]}[{place[1]}]", "no offset is committed, and reset is 'error'"
                )
            offset = EARLIEST if self._policy.reset == "earliest" else LATEST
        return offset_at(self._cluster, place, offset, deadline) or 0

    def _member(self) -> Membership | GroupOffsets:
        if self._membership is not None:
            return self._membership
        if self._group is None:
            raise ClientError("offsets are kept by groups: name one, client.consumer(group=...)")
        return GroupOffsets(self._cluster, self._group.group)

    def _new(self) -> dict[TopicAndPartition, int]:
        return {p: at for p, at in self._consumed.items() if at != self._committed.get(p)}

    def _commit(self, chosen: dict[TopicAndPartition, int]) -> None:
        if chosen:
            self._member().commit(chosen, Deadline(self._policy.request_timeout))
            self._committed |= chosen

    def _maybe_commit(self) -> None:
        if self._auto_commit is None or not self._next_commit.over():
            return
        self._next_commit = Deadline(self._auto_commit)
        try:
            self._commit(self._new())  # the user has come back for more, so is done with what was given
        except ProtocolError as error:
            moved_on = isinstance(error, BrokerError) and error.code in MOVED_ON
            if not moved_on and not worth_another_try(error) and not isinstance(error, DeadlineExceeded):
                raise

    def _check_open(self) -> None:
        if self._closed:
            raise ClientError("the consumer is closed")
