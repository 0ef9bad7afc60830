"""`Fetcher`: sends each leader one request at a time, first for unknown start offsets, then for records."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._cursor import Cursor, without_frames
from cloudevents_kafka.protocol.client._isolation import isolated
from cloudevents_kafka.protocol.client._message import EARLIEST, LATEST, Offsets, PartitionId
from cloudevents_kafka.protocol.client._offsets import found_offsets, offsets_request
from cloudevents_kafka.protocol.client._retry import Deadline, is_retriable
from cloudevents_kafka.protocol.client._settings import ConsumerSettings
from cloudevents_kafka.protocol.client._socket import wait_readable
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    ClientError,
    DeadlineExceeded,
    Malformed,
    ProtocolError,
)
from cloudevents_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from cloudevents_kafka.protocol.messages.offsets import ListOffsetsRequest, ListOffsetsResponse

_MAX_BYTES_VERSION: Final = 3  # the first version of Fetch with max_bytes (KIP-74)
_BACKOFF: Final = 0.1  # seconds, before a partition that failed is fetched again
_PATIENCE: Final = 2.0  # seconds to wait for start offsets; then the other partitions are read
_ADVICE: Final = "to read later records, seek to a later offset"


class _Partition:
    """An assigned partition: its next offset, its fetch size, and the pause or error that prevents a fetch.

    The offset is `EARLIEST` or `LATEST` until the leader has returned the offset as a number.
    """

    def __init__(self, position: int, size: int) -> None:
        self.position = position
        self.size = size
        self.backoff = Deadline(0)
        self.error: ProtocolError | None = None
        self.last_error: ProtocolError | None = None  # an error that is retried

    def fail(self, key: PartitionId, error: ProtocolError) -> None:
        """Store the error of a partition whose next records cannot be read."""
        where = "{}[{}]@{}".format(*key, self.position)
        self.error = Malformed(f"{error}; {_ADVICE}", path=where)
        self.error.__cause__ = without_frames(error)  # many partitions may keep an error


class _InFlight(NamedTuple):
    """A request that the leader has not answered yet, and the requested partitions."""

    broker: Connection
    correlation_id: int
    partitions: dict[PartitionId, _Partition]
    deadline: Deadline


class Fetcher:
    """Reads partitions from their positions on; only one thread may use a fetcher."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        self._cluster: Final = cluster
        self._settings: Final = settings
        self._partitions: dict[PartitionId, _Partition] = {}
        self._in_flight: dict[int, _InFlight] = {}

    def assign(self, offsets: Offsets, deadline: Deadline) -> Offsets:
        """Set the partitions to read, each from its offset, `EARLIEST` or `LATEST`.

        Return the offsets from which the partitions are read.

        If a leader does not answer soon, `fetch` asks the leader again. A leader that does not answer delays
        only its own partitions, whose offsets are returned unchanged. Raises the error of a partition, or
        `DeadlineExceeded` if no offset is found. After an error, the consumer keeps its earlier partitions.
        """
        before, self._partitions = self._partitions, {}
        try:
            for key, offset in offsets.items():
                self.seek(key, offset)
            self._find_starts(deadline)
        except BaseException:
            self._partitions = before
            raise
        return {key: self.position(key) for key in offsets}

    def _find_starts(self, deadline: Deadline) -> None:
        patience = Deadline(_PATIENCE)
        while unknown := {key: one for key, one in self._partitions.items() if one.position < 0}:
            for key, one in unknown.items():
                if one.error is not None:
                    raise one.error
                if deadline.expired():
                    last = f"; the last error: {one.last_error}" if one.last_error else ""
                    text = "offsets of {}[{}]: not done within {} s{}".format(*key, deadline.seconds, last)
                    raise DeadlineExceeded(text) from one.last_error
            if patience.expired() and len(unknown) < len(self._partitions):
                return
            self.send_requests(self._partitions.keys() - unknown.keys())
            for leader in self._readable_leaders(Deadline(deadline.at_most(_BACKOFF))):
                self._receive(leader)

    def seek(self, key: PartitionId, offset: int) -> None:
        """Read a partition from an offset on."""
        self._partitions[key] = _Partition(offset, self._settings.partition_bytes)

    def position(self, key: PartitionId) -> int:
        """Return the next offset to fetch, or 0 if the partition is not assigned."""
        return self._partitions[key].position if key in self._partitions else 0

    def fetch(self, paused: Collection[PartitionId], deadline: Deadline) -> list[Cursor]:
        """Return cursors for fetched records; wait for the first response until the deadline.

        ``paused`` partitions are not requested. If a retry does not fix the error of a partition, the next
        call that finds no records raises this error. The error's text names the partition.
        """
        self.send_requests(paused)
        failed = any(one.error for one in self._partitions.values())
        cursors: list[Cursor] = []
        for leader in self._readable_leaders(Deadline(0) if failed else deadline):
            cursors += self._receive(leader)
        for one in self._partitions.values():
            if one.error is not None and not cursors:
                error, one.error = one.error, None
                raise error
        return cursors

    def fail(self, cursor: Cursor, error: ProtocolError) -> None:
        """Store a cursor's error, which `fetch` raises; the partition is fetched again from its position."""
        self.seek(cursor.key, cursor.position)
        self._partitions[cursor.key].fail(cursor.key, error)

    def send_requests(self, paused: Collection[PartitionId]) -> None:
        """Send requests to the leaders that have answered all earlier requests; omit paused partitions."""
        requested = {key for request in self._in_flight.values() for key in request.partitions}
        by_leader: dict[int, dict[PartitionId, _Partition]] = defaultdict(dict)
        deadline = Deadline(self._settings.request_timeout)  # of all lookups together
        for key, partition in self._partitions.items():
            if key in requested or key in paused or partition.error or not partition.backoff.expired():
                continue
            try:
                by_leader[self._cluster.leader(*key, deadline)][key] = partition
            except ProtocolError as error:
                self._handle_error(key, error)
                if deadline.expired():
                    break
        for leader, led in by_leader.items():
            if leader not in self._in_flight:
                self._send(leader, {key: one for key, one in led.items() if one.position < 0} or led)

    def _send(self, leader: int, partitions: dict[PartitionId, _Partition]) -> None:
        deadline = Deadline(self._settings.request_timeout + self._settings.max_wait)
        try:
            broker = self._cluster.open_broker(leader, deadline)
            if broker is None:
                return
            if not broker.throttle.expired():
                for partition in partitions.values():
                    partition.backoff, partition.last_error = broker.throttle, ClientError(broker.throttled())
                return
            if broker.version(FetchRequest) < _MAX_BYTES_VERSION:
                partitions = self._first_max_bytes(partitions)
            committed_only = self._settings.committed_only
            request = isolated(self._request(partitions), broker, committed_only=committed_only)
            correlation_id = broker.send(request, deadline)
            self._in_flight[leader] = _InFlight(broker, correlation_id, partitions, deadline)
        except ProtocolError as error:
            for key in partitions:
                self._handle_error(key, error)

    def _first_max_bytes(self, partitions: dict[PartitionId, _Partition]) -> dict[PartitionId, _Partition]:
        """Return the first partitions whose fetch sizes together are at most ``max_bytes``.

        If the first partition has a larger fetch size, return only this partition. The returned partitions
        move to the end of the order, so that the next request begins with other partitions.
        """
        first: dict[PartitionId, _Partition] = {}
        size = 0
        for key, partition in partitions.items():
            size += partition.size
            if first and size > self._settings.max_bytes:
                break
            first[key] = self._partitions[key] = self._partitions.pop(key)
        return first

    def _request(self, partitions: dict[PartitionId, _Partition]) -> FetchRequest | ListOffsetsRequest:
        if starts := {key: one.position for key, one in partitions.items() if one.position < 0}:
            return offsets_request(starts)
        settings = self._settings
        topics: dict[str, list[FetchPartition]] = defaultdict(list)
        for (topic, number), partition in partitions.items():
            topics[topic].append(
                FetchPartition(
                    partition=number, fetch_offset=partition.position, partition_max_bytes=partition.size
                )
            )
        return FetchRequest(
            replica_id=-1,  # S0-A9: consumers "should always specify this as -1"
            max_wait_ms=int(settings.max_wait * 1000),
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            topics=[FetchTopic(topic=name, partitions=parts) for name, parts in topics.items()],
        )

    def _readable_leaders(self, deadline: Deadline) -> list[int]:
        """Wait for a response; return the leaders that have sent a response, or whose deadline has passed."""
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
        if self._cluster.is_opening:
            return _BACKOFF / 2
        deadlines = [request.deadline for request in self._in_flight.values()]
        deadlines += [one.backoff for one in self._partitions.values() if not one.backoff.expired()]
        return min(deadline.at_most(1.0) for deadline in deadlines)

    def _receive(self, leader: int) -> list[Cursor]:
        """Return cursors for the records of a response, or [] if the response has not arrived completely."""
        request = self._in_flight[leader]
        connection, arrived = request.broker, request.broker.arrived
        try:
            response: FetchResponse | ListOffsetsResponse
            response = connection.receive(request.correlation_id, Deadline(0))
            del self._in_flight[leader]
            if isinstance(response, ListOffsetsResponse):
                self._set_starts(request, response)
                return []
            if response.error_code:
                raise BrokerError(response.error_code, f"{connection.address}: Fetch")
        except ProtocolError as error:
            if isinstance(error, DeadlineExceeded) and connection.arrived > arrived:
                deadline = Deadline(self._settings.request_timeout)
                self._in_flight[leader] = request._replace(deadline=deadline)
                return []
            if isinstance(error, DeadlineExceeded) and not request.deadline.expired():
                return []
            self._in_flight.pop(leader, None)
            connection.close()
            for key in request.partitions.keys() & self._partitions.keys():
                self._handle_error(key, error)
            return []
        cursors: list[Cursor | None] = []
        for topic in response.responses:
            for part in topic.partitions:
                key = (topic.topic, part.partition_index)
                partition = self._partitions.get(key)
                # After a seek, the partition is another object.
                if partition is not None and partition is request.partitions.get(key):
                    cursors.append(self._open(key, partition, part))
        return [cursor for cursor in cursors if cursor is not None]

    def _set_starts(self, request: _InFlight, response: ListOffsetsResponse) -> None:
        rows = dict(found_offsets(response))
        for key, partition in request.partitions.items():
            if self._partitions.get(key) is not partition:  # after a seek, another object
                continue
            code = rows[key].error_code if key in rows else ErrorCode.UNKNOWN_SERVER_ERROR
            if code:
                self._handle_error(key, BrokerError(code, "{}[{}]".format(*key)))
            else:
                partition.position = max(rows[key].offset, 0)

    def _open(self, key: PartitionId, partition: _Partition, part: PartitionData) -> Cursor | None:
        """Return a cursor for the records of a partition, or None, and advance the partition's position."""
        offset = partition.position
        if part.error_code:
            subject = "{}[{}]@{}".format(*key, offset)
            if part.error_code == ErrorCode.CORRUPT_MESSAGE:  # retriable only for a producer
                partition.error = BrokerError(part.error_code, subject, hint=_ADVICE)
            else:
                self._handle_error(key, BrokerError(part.error_code, subject))
            return None
        try:
            cursor = Cursor(key, offset, part, self._settings)
            if cursor.partial_size:
                self._grow(partition, cursor.partial_size)
        except ProtocolError as error:
            partition.fail(key, error)
            return None
        if not part.records or cursor.partial_size:
            return None
        partition.size, partition.position = self._settings.partition_bytes, cursor.end
        if cursor.end == offset:  # a broker that sends old records again
            partition.backoff = Deadline(_BACKOFF)
        self._partitions[key] = self._partitions.pop(key)  # last in the next request
        return cursor

    def _grow(self, partition: _Partition, partial_size: int) -> None:
        # S0-M7: a set may end with "a partial message"; here even the first message is partial
        if partition.size >= self._settings.max_bytes:
            raise Malformed(f"a message must not be larger than max_bytes, {partition.size:,} bytes")
        partition.size = min(2 * max(partition.size, partial_size), self._settings.max_bytes)

    def _handle_error(self, key: PartitionId, error: ProtocolError) -> None:
        """Fetch a partition again later if the error is retriable; otherwise, store the error for `fetch`."""
        partition = self._partitions[key]
        if is_retriable(error, unknown_errors=True):
            self._cluster.invalidate(key[0])
            partition.backoff = Deadline(_BACKOFF)
            partition.last_error = error
        elif isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(partition, error)
        else:
            partition.error = error

    def _reset(self, partition: _Partition, error: BrokerError) -> None:
        if self._settings.reset == "error":
            partition.error = error
        else:
            partition.position = EARLIEST if self._settings.reset == "earliest" else LATEST
