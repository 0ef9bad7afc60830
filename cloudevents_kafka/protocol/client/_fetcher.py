"""`Fetcher`: one long poll at each leader; records are returned as responses arrive."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._message import UNKNOWN, Message, Offsets, TopicAndPartition
from cloudevents_kafka.protocol.client._offsets import resolve_offsets
from cloudevents_kafka.protocol.client._retry import Deadline, is_retriable
from cloudevents_kafka.protocol.client._settings import ConsumerSettings
from cloudevents_kafka.protocol.client._socket import wait_readable
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

_BACKOFF: Final = 0.1  # seconds, before a partition that failed is fetched again


class _InFlight(NamedTuple):
    """A sent request and its offsets."""

    broker: Connection
    correlation_id: int
    offsets: Offsets
    deadline: Deadline


class Fetcher:
    """A reader of partitions from their positions on; for one thread."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        self._cluster: Final = cluster
        self._settings: Final = settings
        self._positions: Offsets = {}
        self._partition_bytes: Offsets = {}
        self._backoffs: dict[TopicAndPartition, Deadline] = {}
        self._in_flight: dict[int, _InFlight] = {}
        self._errors: dict[TopicAndPartition, ProtocolError] = {}

    def assign(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Read exactly these partitions, each from its offset on."""
        self._positions = dict(offsets)
        self._backoffs.clear()
        self._errors.clear()

    def position(self, topic_partition: TopicAndPartition) -> int | None:
        """Return the next offset to fetch, None if the partition is not assigned."""
        return self._positions.get(topic_partition)

    def fetch(self, paused: Collection[TopicAndPartition], deadline: Deadline) -> list[Message]:
        """Return fetched records; wait for the first until the deadline.

        ``paused`` partitions are not requested. A partition's error that a retry does not fix is
        raised, with the partition in its text, by a call that has no records to return.
        """
        skipped = self._errors.keys() | set(paused)
        self._send_requests({tp: at for tp, at in self._positions.items() if tp not in skipped})
        messages: list[Message] = []
        for leader in self._readable_leaders(deadline):
            messages += self._receive(leader, deadline)
        if self._errors and not messages:
            raise self._errors.pop(next(iter(self._errors)))
        return messages

    def _send_requests(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        requested = {tp for request in self._in_flight.values() for tp in request.offsets}
        by_leader: dict[int, Offsets] = defaultdict(dict)
        for topic_partition, offset in offsets.items():
            if topic_partition in requested or self._is_backing_off(topic_partition):
                continue
            try:
                leader = self._cluster.leader(*topic_partition, Deadline(self._settings.request_timeout))
                by_leader[leader][topic_partition] = offset
            except ProtocolError as error:
                self._handle_error(topic_partition, error)
        for leader, led in by_leader.items():
            if leader not in self._in_flight:
                self._send(leader, led)

    def _is_backing_off(self, topic_partition: TopicAndPartition) -> bool:
        backoff = self._backoffs.get(topic_partition)
        if backoff is not None and not backoff.expired():
            return True
        self._backoffs.pop(topic_partition, None)
        return False

    def _send(self, leader: int, offsets: Offsets) -> None:
        deadline = Deadline(self._settings.request_timeout + self._settings.max_wait)
        try:
            broker = self._cluster.broker(leader, deadline)
            correlation_id = broker.send(self._request(offsets), deadline)
        except ProtocolError as error:
            for topic_partition in offsets:
                self._handle_error(topic_partition, error)
        else:
            self._in_flight[leader] = _InFlight(broker, correlation_id, offsets, deadline)

    def _request(self, offsets: Mapping[TopicAndPartition, int]) -> FetchRequest:
        settings = self._settings
        topics: dict[str, list[FetchPartition]] = defaultdict(list)
        for (topic, partition), offset in offsets.items():
            size = self._partition_bytes.get((topic, partition), settings.partition_bytes)
            topics[topic].append(
                FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size)
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=int(settings.max_wait * 1000),
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            isolation_level=int(settings.committed_only),
            topics=[FetchTopic(topic=name, partitions=parts) for name, parts in topics.items()],
        )

    def _readable_leaders(self, deadline: Deadline) -> list[int]:
        """Wait for a response; return the leaders with one, and those whose time is over."""
        in_flight = self._in_flight
        if not in_flight:
            time.sleep(deadline.at_most(_BACKOFF / 10))
            return []
        readable = [leader for leader, request in in_flight.items() if request.broker.readable()]
        if not readable:
            leaders = {request.broker: leader for leader, request in in_flight.items()}
            found = wait_readable(leaders, deadline.at_most(self._shortest_wait()))
            readable = [leaders[connection] for connection in found]
        expired = [leader for leader, request in in_flight.items() if request.deadline.expired()]
        return list(dict.fromkeys([*readable, *expired]))

    def _shortest_wait(self) -> float:
        deadlines = [request.deadline for request in self._in_flight.values()]
        return min(deadline.at_most(1.0) for deadline in (*deadlines, *self._backoffs.values()))

    def _receive(self, leader: int, deadline: Deadline) -> list[Message]:
        request = self._in_flight[leader]
        connection = request.broker
        limit = Deadline(request.deadline.at_most(deadline.at_most(1.0)))
        try:
            response: FetchResponse = connection.receive(request.correlation_id, limit)
            del self._in_flight[leader]
            if response.error_code:
                raise BrokerError(response.error_code, f"{connection.address}: Fetch")
        except ProtocolError as error:
            if isinstance(error, DeadlineExceeded) and not request.deadline.expired():
                return []  # a part of the response has arrived
            self._in_flight.pop(leader, None)
            connection.close()
            for topic_partition in request.offsets.keys() & self._positions.keys():
                self._handle_error(topic_partition, error)
            return []
        messages: list[Message] = []
        for topic in response.responses:
            for part in topic.partitions:
                topic_partition = (topic.topic, part.partition_index)
                offset = request.offsets.get(topic_partition)
                # The position differs after a seek.
                if offset is not None and self._positions.get(topic_partition) == offset:
                    messages += self._decode(topic_partition, offset, part)
        return messages

    def _decode(self, topic_partition: TopicAndPartition, offset: int, part: PartitionData) -> list[Message]:
        """Return the records of a partition, and advance its position."""
        if part.error_code:
            subject = "{}[{}]@{}".format(*topic_partition, offset)
            self._handle_error(topic_partition, BrokerError(part.error_code, subject))
            return []
        messages: list[Message] = []
        try:
            batches = Batches(part.records or b"", check_crc=self._settings.check_crc)
            if batches.is_partial:
                self._grow(topic_partition, batches.partial_size)
            for batch in _visible_batches(batches, part):
                messages.extend(Message(r, *topic_partition, r.offset) for r in batch if r.offset >= offset)
                self._positions[topic_partition] = max(offset, batch.last_offset + 1)
            if len(batches):
                self._partition_bytes.pop(topic_partition, None)
                self._positions[topic_partition] = max(offset, (batches.last_offset or 0) + 1)
        except ProtocolError as error:
            if messages:  # return the records before it; the next fetch meets the error again
                self._positions[topic_partition] = messages[-1].offset() + 1
            else:
                where = "{}[{}]@{}".format(*topic_partition, self._positions[topic_partition])
                malformed = Malformed(f"{error}; to read on after it, seek", path=where)
                malformed.__cause__ = error
                self._errors[topic_partition] = malformed
        return messages

    def _grow(self, topic_partition: TopicAndPartition, partial_size: int) -> None:
        """Fetch more bytes if even one message was cut (guide, "Fetch API")."""
        size = self._partition_bytes.get(topic_partition, self._settings.partition_bytes)
        if size >= self._settings.max_bytes:
            raise Malformed(f"a message must not be larger than max_bytes, {size:,} bytes")
        self._partition_bytes[topic_partition] = min(2 * max(size, partial_size), self._settings.max_bytes)

    def _handle_error(self, topic_partition: TopicAndPartition, error: ProtocolError) -> None:
        """Let a partition back off if the error is retriable, else keep the error for `fetch`."""
        if isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            try:
                self._reset(topic_partition, error)
            except ProtocolError as failed:
                self._errors[topic_partition] = failed
        elif is_retriable(error, unknown_errors=True):
            self._cluster.invalidate()
            self._backoffs[topic_partition] = Deadline(_BACKOFF)
        else:
            self._errors[topic_partition] = error

    def _reset(self, topic_partition: TopicAndPartition, error: BrokerError) -> None:
        if self._settings.reset == "error":
            raise error
        deadline = Deadline(self._settings.request_timeout)
        self._positions |= resolve_offsets(
            self._cluster, {topic_partition: UNKNOWN}, None, self._settings.reset, deadline
        )


def _visible_batches(batches: Batches, part: PartitionData) -> Iterator[Batch]:
    """Yield the batches except control batches and those of aborted transactions (KIP-98)."""
    aborted = deque(sorted(part.aborted_transactions or (), key=lambda a: a.first_offset))
    producers: set[int] = set()
    for batch in batches:
        if not isinstance(batch, RecordBatch):
            yield batch
            continue
        while aborted and aborted[0].first_offset <= batch.last_offset:
            producers.add(aborted.popleft().producer_id)
        if batch.is_control:
            record = batch.control_record()
            if record is not None and record.type == ABORT:
                producers.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in producers):
            yield batch
