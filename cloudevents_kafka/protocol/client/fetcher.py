"""Fetching: one long poll at each leader, answers taken as they come."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from cloudevents_kafka.protocol.client.batches import TopicAndPartition
from cloudevents_kafka.protocol.client.cluster import (
    Broker,
    Cluster,
    is_outdated,
    is_untold,
    worth_another_try,
)
from cloudevents_kafka.protocol.client.connection import answering
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.message import Message
from cloudevents_kafka.protocol.client.offsets import EARLIEST, LATEST, offset_at
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, Malformed, ProtocolError
from cloudevents_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from cloudevents_kafka.protocol.records import ABORT, Batch, Batches, RecordBatch

Reset = Literal["earliest", "latest", "error"]

_PAUSE: Final = 0.1  # seconds, before a partition that failed is asked for again


class FetchPolicy(NamedTuple):
    """How records are fetched; see `Client.consumer`."""

    min_bytes: int
    max_wait: float
    max_bytes: int
    partition_bytes: int
    committed_only: bool
    check_crc: bool
    reset: Reset
    request_timeout: float


class _Asked(NamedTuple):
    broker: Broker
    correlation_id: int
    offsets: dict[TopicAndPartition, int]
    deadline: Deadline


class Fetcher:
    """Reads partitions from given offsets on; not for several threads at once."""

    def __init__(self, cluster: Cluster, policy: FetchPolicy) -> None:
        """Use the cluster's connections; nothing is fetched until `want`."""
        self._cluster: Final = cluster
        self._policy: Final = policy
        self._wanted: dict[TopicAndPartition, int] = {}
        self._sizes: dict[TopicAndPartition, int] = {}
        self._resting: dict[TopicAndPartition, Deadline] = {}
        self._asked: dict[int, _Asked] = {}
        self._troubles: dict[TopicAndPartition, ProtocolError] = {}
        self.high_watermarks: dict[TopicAndPartition, int] = {}

    def want(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Read exactly these partitions, each from its offset on."""
        self._wanted = dict(offsets)
        self._resting.clear()
        self._troubles.clear()

    def position(self, place: TopicAndPartition) -> int | None:
        """Return the offset that is fetched next."""
        return self._wanted.get(place)

    def fetch(self, held_back: Collection[TopicAndPartition], deadline: Deadline) -> list[Message]:
        """Return what has come, waiting for the first at most until the deadline.

        Partitions that are ``held_back`` are not asked for. Where nothing has come, raises an
        error that waiting does not mend, its partition in the text; what others give is not lost.
        """
        out = self._troubles.keys() | set(held_back)
        self._ask({p: at for p, at in self._wanted.items() if p not in out})
        found: list[Message] = []
        for leader in self._answered(deadline):
            found += self._take(leader, deadline)
        if self._troubles and not found:
            raise self._troubles.pop(next(iter(self._troubles)))
        return found

    # --- asking --------------------------------------------------------------------------

    def _ask(self, wanted: Mapping[TopicAndPartition, int]) -> None:
        busy = {place for asked in self._asked.values() for place in asked.offsets}
        by_leader: dict[int, dict[TopicAndPartition, int]] = defaultdict(dict)
        for place, offset in wanted.items():
            if place in busy or not self._rested(place):
                continue
            try:
                leader = self._cluster.leader(*place, Deadline(self._policy.request_timeout))
                by_leader[leader][place] = offset
            except ProtocolError as error:
                self._failed(place, error)
        for leader, offsets in by_leader.items():
            if leader not in self._asked:
                self._send(leader, offsets)

    def _rested(self, place: TopicAndPartition) -> bool:
        rest = self._resting.get(place)
        if rest is not None and not rest.over():
            return False
        self._resting.pop(place, None)
        return True

    def _send(self, leader: int, offsets: dict[TopicAndPartition, int]) -> None:
        deadline = Deadline(self._policy.request_timeout + self._policy.max_wait)
        try:
            broker = self._cluster.broker(leader, deadline)
            version = broker.version(FetchRequest)
            asked = broker.connection.send(self._request(offsets), version, deadline)
        except ProtocolError as error:
            for place in offsets:
                self._failed(place, error)
        else:
            self._asked[leader] = _Asked(broker, asked, offsets, deadline)

    def _request(self, offsets: Mapping[TopicAndPartition, int]) -> FetchRequest:
        policy = self._policy
        topics: dict[str, list[FetchPartition]] = defaultdict(list)
        for (topic, partition), offset in offsets.items():
            size = self._sizes.get((topic, partition), policy.partition_bytes)
            topics[topic].append(
                FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size)
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=int(policy.max_wait * 1000),
            min_bytes=policy.min_bytes,
            max_bytes=policy.max_bytes,
            isolation_level=int(policy.committed_only),
            topics=[FetchTopic(topic=name, partitions=parts) for name, parts in topics.items()],
        )

    # --- taking --------------------------------------------------------------------------

    def _answered(self, deadline: Deadline) -> list[int]:
        """Wait for an answer; return the leaders that have begun to give one."""
        ready = [leader for leader, asked in self._asked.items() if asked.broker.connection.readable()]
        if not ready and self._asked:
            leaders = {asked.broker.connection: leader for leader, asked in self._asked.items()}
            found = answering(leaders, deadline.at_most(self._shortest()))
            ready = [leaders[connection] for connection in found]
        elif not self._asked:
            Deadline(None).pause(deadline.at_most(_PAUSE / 10), "fetching")
        late = [leader for leader, asked in self._asked.items() if asked.deadline.over()]
        return list(dict.fromkeys([*ready, *late]))

    def _shortest(self) -> float:
        lefts = [asked.deadline.at_most(1.0) for asked in self._asked.values()]
        lefts += [rest.at_most(1.0) for rest in self._resting.values()]
        return min(lefts)

    def _take(self, leader: int, deadline: Deadline) -> list[Message]:
        asked = self._asked[leader]
        now = Deadline(asked.deadline.at_most(deadline.at_most(1.0)))
        try:
            answer = asked.broker.connection.receive(asked.correlation_id, now)
            del self._asked[leader]
            assert isinstance(answer, FetchResponse)
            if answer.error_code:
                raise BrokerError(answer.error_code, f"{asked.broker.connection.address}: Fetch")
        except ProtocolError as error:
            if isinstance(error, DeadlineExceeded) and not asked.deadline.over():
                return []  # only a part of it has come
            self._asked.pop(leader, None)
            asked.broker.connection.close()
            for place in asked.offsets.keys() & self._wanted.keys():
                self._failed(place, error)
            return []
        found: list[Message] = []
        for topic in answer.responses:
            for part in topic.partitions:
                place = (topic.topic, part.partition_index)
                offset = asked.offsets.get(place)
                if offset is not None and self._wanted.get(place) == offset:  # else: sought elsewhere since
                    found += self._read(place, offset, part)
        return found

    def _read(self, place: TopicAndPartition, offset: int, part: PartitionData) -> list[Message]:
        if part.error_code:
            self._failed(place, BrokerError(part.error_code, f"{place[0]}[{place[1]}]@{offset}"))
            return []
        self.high_watermarks[place] = part.high_watermark
        found: list[Message] = []
        try:
            batches = Batches(part.records or b"", check_crc=self._policy.check_crc)
            if batches.is_partial:
                self._grow(place, batches.partial_size)
            for batch in _told(batches, part):
                found.extend(Message(r, *place, r.offset) for r in batch if r.offset >= offset)
                self._wanted[place] = max(offset, batch.last_offset + 1)
            if len(batches):
                self._sizes.pop(place, None)
                self._wanted[place] = max(offset, (batches.last_offset or 0) + 1)
        except ProtocolError as error:
            if found:  # what came before it is given first; the next fetch comes upon it again
                self._wanted[place] = found[-1].offset() + 1
            else:
                where = f"{place[0]}[{place[1]}]@{self._wanted[place]}"
                self._troubles[place] = Malformed(f"{error}; to go on behind it, seek", path=where)
                self._troubles[place].__cause__ = error
        return found

    def _grow(self, place: TopicAndPartition, partial_size: int) -> None:
        """Ask for more where not even one message had room (guide, "Fetch API")."""
        size = self._sizes.get(place, self._policy.partition_bytes)
        if size >= self._policy.max_bytes:
            raise Malformed(
                f"a message that is larger than {size:,} bytes, the most that is fetched (max_bytes)",
                path=f"{place[0]}[{place[1]}]@{self._wanted[place]}",
            )
        self._sizes[place] = min(2 * max(size, partial_size), self._policy.max_bytes)

    def _failed(self, place: TopicAndPartition, error: ProtocolError) -> None:
        """Let a partition rest if that may help, else keep the error for `fetch` to raise."""
        if isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            try:
                self._reset(place, error)
            except ProtocolError as unmended:
                self._troubles[place] = unmended
            return
        outdated = isinstance(error, BrokerError) and is_outdated(error.code)
        passing = outdated or is_untold(error) or worth_another_try(error) or isinstance(error, TimeoutError)
        if not passing:
            self._troubles[place] = error
            return
        self._cluster.forget()
        self._resting[place] = Deadline(_PAUSE)

    def _reset(self, place: TopicAndPartition, error: BrokerError) -> None:
        if self._policy.reset == "error":
            raise error
        time = EARLIEST if self._policy.reset == "earliest" else LATEST
        offset = offset_at(self._cluster, place, time, Deadline(self._policy.request_timeout))
        self._wanted[place] = offset or 0


def _told(batches: Batches, part: PartitionData) -> Iterator[Batch]:
    """Leave out brokers' own marks, and records of transactions that were aborted (KIP-98)."""
    aborted = deque(sorted(part.aborted_transactions or (), key=lambda a: a.first_offset))
    producers: set[int] = set()
    for batch in batches:
        if not isinstance(batch, RecordBatch):
            yield batch
            continue
        while aborted and aborted[0].first_offset <= batch.last_offset:
            producers.add(aborted.popleft().producer_id)
        if batch.is_control:
            mark = batch.control_record()
            if mark is not None and mark.type == ABORT:
                producers.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in producers):
            yield batch
