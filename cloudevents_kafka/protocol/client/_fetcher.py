"""`Fetcher`: one long poll at each leader; `RecordBuffer`: fetched records that are not returned yet."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._message import UNKNOWN, Message, Offsets, PartitionId
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


class _Partition:
    """An assigned partition: the next offset, the bytes to fetch, and why it is not fetched now."""

    def __init__(self, position: int, size: int) -> None:
        self.position = position
        self.size = size
        self.backoff = Deadline(0)
        self.error: ProtocolError | None = None


class Fetcher:
    """A reader of partitions from their positions on; for one thread."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        self._cluster: Final = cluster
        self._settings: Final = settings
        self._partitions: dict[PartitionId, _Partition] = {}
        self._in_flight: dict[int, _InFlight] = {}

    def assign(self, offsets: Offsets) -> None:
        """Read exactly these partitions, each from its offset on."""
        self._partitions.clear()
        for key, offset in offsets.items():
            self.seek(key, offset)

    def seek(self, key: PartitionId, offset: int) -> None:
        """Read a partition from an offset on."""
        self._partitions[key] = _Partition(offset, self._settings.partition_bytes)

    def position(self, key: PartitionId) -> int:
        """Return the next offset to fetch, 0 if the partition is not assigned."""
        return self._partitions[key].position if key in self._partitions else 0

    def fetch(self, paused: Collection[PartitionId], deadline: Deadline) -> list[Message]:
        """Return fetched records; wait for the first until the deadline.

        ``paused`` partitions are not requested. A partition's error that a retry does not fix is
        raised, with the partition in its text, by a call that has no records to return.
        """
        self._send_requests(paused)
        messages: list[Message] = []
        for leader in self._readable_leaders(deadline):
            messages += self._receive(leader, deadline)
        failed = next((one for one in self._partitions.values() if one.error), None)
        if failed is not None and failed.error is not None and not messages:
            error, failed.error = failed.error, None
            raise error
        return messages

    def _send_requests(self, paused: Collection[PartitionId]) -> None:
        requested = {key for request in self._in_flight.values() for key in request.offsets}
        by_leader: dict[int, Offsets] = defaultdict(dict)
        for key, partition in self._partitions.items():
            if key in requested or key in paused or partition.error or not partition.backoff.expired():
                continue
            try:
                leader = self._cluster.leader(*key, Deadline(self._settings.request_timeout))
                by_leader[leader][key] = partition.position
            except ProtocolError as error:
                self._handle_error(key, error)
        for leader, led in by_leader.items():
            if leader not in self._in_flight:
                self._send(leader, led)

    def _send(self, leader: int, offsets: Offsets) -> None:
        deadline = Deadline(self._settings.request_timeout + self._settings.max_wait)
        try:
            broker = self._cluster.broker(leader, deadline)
            correlation_id = broker.send(self._request(offsets), deadline)
        except ProtocolError as error:
            for key in offsets:
                self._handle_error(key, error)
        else:
            self._in_flight[leader] = _InFlight(broker, correlation_id, offsets, deadline)

    def _request(self, offsets: Offsets) -> FetchRequest:
        settings = self._settings
        topics: dict[str, list[FetchPartition]] = defaultdict(list)
        for (topic, number), offset in offsets.items():
            size = self._partitions[topic, number].size
            topics[topic].append(
                FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=size)
            )
        return FetchRequest(
            replica_id=-1,  # S0-A9: consumers "should always specify this as -1"
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
        deadlines += [one.backoff for one in self._partitions.values() if not one.backoff.expired()]
        return min(deadline.at_most(1.0) for deadline in deadlines)

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
            for key in request.offsets.keys() & self._partitions.keys():
                self._handle_error(key, error)
            return []
        messages: list[Message] = []
        for topic in response.responses:
            for part in topic.partitions:
                key = (topic.topic, part.partition_index)
                partition = self._partitions.get(key)
                # The position differs after a seek.
                if partition is not None and partition.position == request.offsets.get(key):
                    messages += self._decode(key, partition, part)
        return messages

    def _decode(self, key: PartitionId, partition: _Partition, part: PartitionData) -> list[Message]:
        """Return the records of a partition, and advance its position."""
        offset = partition.position
        if part.error_code:
            self._handle_error(key, BrokerError(part.error_code, "{}[{}]@{}".format(*key, offset)))
            return []
        messages: list[Message] = []
        try:
            batches = Batches(part.records or b"", check_crc=self._settings.check_crc)
            if batches.is_partial:
                self._grow(partition, batches.partial_size)
            for batch in _visible_batches(batches, part):
                messages.extend(Message(r, *key, r.offset) for r in batch if r.offset >= offset)
                partition.position = max(offset, batch.last_offset + 1)
            if len(batches):
                partition.size = self._settings.partition_bytes
                partition.position = max(offset, (batches.last_offset or 0) + 1)
        except ProtocolError as error:
            if messages:  # return the records before it; the next fetch meets the error again
                partition.position = messages[-1].offset() + 1
            else:
                where = "{}[{}]@{}".format(*key, partition.position)
                partition.error = Malformed(f"{error}; to read on after it, seek", path=where)
                partition.error.__cause__ = error
        return messages

    def _grow(self, partition: _Partition, partial_size: int) -> None:
        # S0-M7: a set may end with "a partial message"; here even the first message is partial
        if partition.size >= self._settings.max_bytes:
            raise Malformed(f"a message must not be larger than max_bytes, {partition.size:,} bytes")
        partition.size = min(2 * max(partition.size, partial_size), self._settings.max_bytes)

    def _handle_error(self, key: PartitionId, error: ProtocolError) -> None:
        """Let a partition back off if the error is retriable, else keep the error for `fetch`."""
        partition = self._partitions[key]
        if is_retriable(error, unknown_errors=True):
            self._cluster.invalidate()
            partition.backoff = Deadline(_BACKOFF)
        elif isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(key, partition, error)
        else:
            partition.error = error

    def _reset(self, key: PartitionId, partition: _Partition, error: BrokerError) -> None:
        if self._settings.reset == "error":
            partition.error = error
            return
        deadline = Deadline(self._settings.request_timeout)
        try:
            offsets = resolve_offsets(self._cluster, {key: UNKNOWN}, None, self._settings.reset, deadline)
            partition.position = offsets[key]
        except ProtocolError as failed:
            partition.error = failed


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


class RecordBuffer:
    """Records in the order of fetching; ``positions`` are the offsets after the returned ones."""

    def __init__(self) -> None:
        self.positions: Offsets = {}
        self.committed: Offsets = {}
        self.paused: set[PartitionId] = set()
        self._records: deque[Message] = deque()

    def assign(self, offsets: Offsets) -> None:
        """Discard all records, and begin at these offsets."""
        self.positions = dict(offsets)
        self.committed = dict(offsets)
        self.paused.clear()
        self._records.clear()

    def seek(self, key: PartitionId, offset: int) -> None:
        """Discard the records of a partition, and set its position."""
        self._records = deque(m for m in self._records if (m.topic(), m.partition()) != key)
        self.positions[key] = offset

    def add(self, messages: Iterable[Message]) -> None:
        self._records.extend(messages)

    def pop(self) -> Message | None:
        """Return the first record of a partition that is not paused, and advance its position."""
        for _ in range(len(self._records)):
            message = self._records.popleft()
            key = (message.topic(), message.partition())
            if key not in self.paused:
                self.positions[key] = message.offset() + 1
                return message
            self._records.append(message)
        return None

    def unread(self, messages: Sequence[Message]) -> None:
        """Put returned records back."""
        for message in reversed(messages):
            self._records.appendleft(message)
            self.positions[message.topic(), message.partition()] = message.offset()

    def uncommitted(self) -> Offsets:
        """Return the positions that differ from the committed ones."""
        return {key: at for key, at in self.positions.items() if at != self.committed.get(key)}
