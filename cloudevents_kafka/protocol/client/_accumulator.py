"""`Accumulator`: queues a producer's records by partition, and makes batches that are ready to be sent."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.client._batch_limit import BatchLimit
from cloudevents_kafka.protocol.client._batches import (
    NO_PRODUCER_ID,
    ProducerBatch,
    ProducerId,
    QueuedRecord,
    check_headers,
    drain,
)
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._message import PartitionId
from cloudevents_kafka.protocol.client._retry import Deadline, is_retriable
from cloudevents_kafka.protocol.client._settings import ProducerSettings
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, ProtocolError, Unsupported
from cloudevents_kafka.protocol.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from cloudevents_kafka.protocol.schema import spec_of

_MAX_EPOCH: Final = 32_767  # int16
_LEADERS_PAUSE: Final = 2.0  # seconds, before metadata of partitions without a leader is requested again
_LOOKUP_PAUSE: Final = 0.2  # seconds, before the metadata of a missing topic is requested again


Complete: TypeAlias = Callable[[Sequence[QueuedRecord], ProtocolError | None, int, int], None]
"""A function that is called with delivered or failed records, an error or None, the partition and the first
offset."""


class Idempotence:
    """The producer id, which is requested at its first use, and each partition's next sequence number."""

    def __init__(self, cluster: Cluster, settings: ProducerSettings) -> None:
        self._cluster: Final = cluster
        self._settings: Final = settings
        self._producer_id: ProducerId | None = None
        self._sequences: dict[PartitionId, int] = defaultdict(int)

    def producer_id(self, deadline: Deadline) -> ProducerId:
        """Return the id of this producer, or `NO_PRODUCER_ID` if the producer is not idempotent."""
        if self._producer_id is None:
            self._producer_id = self._cluster.retry(
                "a producer id", lambda: self._request_id(deadline), deadline
            )
        return self._producer_id

    def next_sequence(self, topic_partition: PartitionId, count: int) -> int:
        """Return the first sequence number of a partition's next batch, which contains ``count`` records."""
        sequence = self._sequences[topic_partition]
        self._sequences[topic_partition] = (sequence + count) % (1 << 31)
        return -1 if self._producer_id == NO_PRODUCER_ID else sequence

    def rewind(self, batch: ProducerBatch) -> None:
        """Use the sequence numbers of a batch again, because the broker did not append the batch."""
        if batch.producer_id == self._producer_id:
            self._sequences[batch.topic_partition] = max(batch.sequence, 0)

    def abandon(self, batch: ProducerBatch) -> None:
        """Begin a new epoch of the producer id: brokers refuse sequence numbers after a missing batch.

        If the missing batch still arrives later, brokers refuse it, because its epoch is old.
        """
        if batch.producer_id != NO_PRODUCER_ID and batch.producer_id == self._producer_id:
            producer_id, epoch = batch.producer_id
            self._producer_id = ProducerId(producer_id, epoch + 1) if epoch < _MAX_EPOCH else None
            self._sequences.clear()

    def restart(self, batch: ProducerBatch) -> None:
        """Begin a new epoch with this batch; its sequence number is 0, as brokers require (KIP-360)."""
        self.abandon(batch)
        batch.producer_id = self.producer_id(batch.queued[0].deadline)
        batch.sequence = self.next_sequence(batch.topic_partition, len(batch.queued))

    def _request_id(self, deadline: Deadline) -> ProducerId:
        required = self._settings.idempotent
        if required is False or (required is None and self._settings.acks != -1):
            return NO_PRODUCER_ID
        broker = self._cluster.any_broker(deadline)
        if spec_of(InitProducerIdRequest).key not in broker.versions:
            if required:
                raise Unsupported(
                    f"{broker.address}: idempotent producing needs a broker of Kafka 0.11 or later"
                )
            return NO_PRODUCER_ID
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        response: InitProducerIdResponse = self._cluster.ask(lambda _: request, deadline)
        if response.error_code:
            raise BrokerError(response.error_code, "a producer id")
        return ProducerId(response.producer_id, response.producer_epoch)


class _Unassigned:
    """The queued records of one topic for which no partition is chosen yet.

    The partitions of the topic are not looked up again before ``backoff`` expires.
    """

    def __init__(self) -> None:
        self.queue: Final[deque[QueuedRecord]] = deque()
        self.backoff = Deadline(0)
        self.last_error: ProtocolError | None = None


class Accumulator:
    """Queues of records: each record waits in the queue of its topic, then in the queue of its partition.

    For each partition, at most one batch is ready to be sent.
    """

    def __init__(self, cluster: Cluster, settings: ProducerSettings, complete: Complete) -> None:
        self._cluster: Final = cluster
        self._settings: Final = settings
        self._complete: Final = complete
        self._idempotence: Final = Idempotence(cluster, settings)
        self._next_leaders = Deadline(0)
        self._limits: dict[PartitionId, BatchLimit] = {}
        self._unassigned: dict[str, _Unassigned] = defaultdict(_Unassigned)
        self._queues: dict[PartitionId, deque[QueuedRecord]] = defaultdict(deque)
        self._ready: dict[PartitionId, ProducerBatch] = {}

    def add(self, records: Iterable[QueuedRecord]) -> None:
        """Queue records; later calls of `sendable` fill batches with these records."""
        for queued in records:
            if queued.partition >= 0:
                self._queues[queued.topic, queued.partition].append(queued)
            else:
                self._unassigned[queued.topic].queue.append(queued)

    def sendable(self) -> list[ProducerBatch]:
        """Choose partitions for the queued records, fill batches, and return the batches to send."""
        self._assign_partitions()
        self._fill_batches()
        ready = self._ready.values()
        return [batch for batch in ready if not batch.is_in_flight and batch.backoff.expired()]

    def has(self, batch: ProducerBatch) -> bool:
        """Return whether a batch is unfinished: it was not delivered yet, and did not fail."""
        return self._ready.get(batch.topic_partition) is batch

    def expired(self) -> list[ProducerBatch]:
        return [batch for batch in self._ready.values() if batch.expired()]

    def next_delay(self) -> float | None:
        """Return the seconds until the next batch or lookup is due, or None if all records are in flight."""
        if self._queues.keys() - self._ready.keys():
            return 0.0
        backoffs = [batch.backoff for batch in self._ready.values() if not batch.is_in_flight]
        backoffs += [unassigned.backoff for unassigned in self._unassigned.values()]
        return min((backoff.at_most(1.0) for backoff in backoffs), default=None)

    def complete(self, batch: ProducerBatch, offset: int) -> None:
        del self._ready[batch.topic_partition]
        if (limit := self._limits.get(batch.topic_partition)) is not None:
            limit.accept(batch.encoded_size)
        self._complete(batch.queued, None, batch.topic_partition[1], offset)

    def fail(self, batch: ProducerBatch, error: ProtocolError) -> None:
        if self._ready.pop(batch.topic_partition, None) is None:
            return
        self._idempotence.abandon(batch)
        self._complete(batch.queued, error, batch.topic_partition[1], -1)

    def fail_unsupported(self, batch: ProducerBatch, version: int) -> None:
        """Remove records that a version of Produce cannot encode from a batch; report them as failed."""
        supported = []
        for queued in batch.queued:
            try:
                check_headers(queued.topic, queued.record, version)
                supported.append(queued)
            except Unsupported as error:
                self._complete([queued], error, batch.topic_partition[1], -1)
        batch.queued = supported
        if not supported:
            del self._ready[batch.topic_partition]

    def restart(self, batch: ProducerBatch) -> None:
        """Begin a new epoch of the producer id; this batch becomes the first batch of the epoch."""
        try:
            self._idempotence.restart(batch)
        except ProtocolError as error:
            self.fail(batch, error)

    def refuse_size(self, batch: ProducerBatch) -> None:
        """Split a batch that the broker has refused as too large, and store its size in the `BatchLimit`."""
        limit = self._limits.setdefault(batch.topic_partition, BatchLimit())
        limit.measure(batch.queued_size(), batch.encoded_size)
        limit.refuse(batch.encoded_size)
        self._split(batch)

    def split_if_too_large(self, batch: ProducerBatch) -> bool:
        """Split a batch that is not smaller than a refused batch; return whether the batch was split."""
        limit = self._limits.get(batch.topic_partition)
        if limit is None:
            return False
        limit.measure(batch.queued_size(), batch.encoded_size)
        if limit.allows(batch.encoded_size) or len(batch.queued) == 1:
            return False
        self._split(batch)
        return True

    def _split(self, batch: ProducerBatch) -> None:
        """Queue the records of a batch again, so that smaller batches are filled with them."""
        topic_partition = batch.topic_partition
        del self._ready[topic_partition]
        self._queues[topic_partition].extendleft(reversed(batch.queued))
        self._idempotence.rewind(batch)

    def time_limit(self, queued: QueuedRecord) -> Deadline:
        return Deadline(queued.deadline.at_most(self._settings.request_timeout))

    def _assign_partitions(self) -> None:
        """Choose partitions for records of known topics; do not wait for the metadata of other topics."""
        for topic, unassigned in list(self._unassigned.items()):
            if not unassigned.backoff.expired():
                continue
            try:
                partitions, led = self._partitions(topic, self.time_limit(unassigned.queue[0]))
            except ProtocolError as error:
                self._lookup_failed(topic, unassigned, error)
                continue
            del self._unassigned[topic]
            queues = {partition: self._queues[topic, partition] for partition in partitions}
            for queued in unassigned.queue:
                # S0-N9: the producer chooses the partition. A key's partition does not depend on leaders.
                key = queued.record.key
                partition = self._settings.partitioner(key, led if key is None else partitions)
                if (queue := queues.get(partition)) is not None:
                    queue.append(queued)
                else:
                    self._refuse(queued, partition)
            for partition, queue in queues.items():
                if not queue:
                    del self._queues[topic, partition]

    def _partitions(self, topic: str, deadline: Deadline) -> tuple[list[int], list[int]]:
        """Return all partitions of a topic, and the partitions with a leader, or all if no leader exists."""
        partitions = self._cluster.current_partitions(topic, deadline, create=True)
        led = self._cluster.current_partitions(topic, deadline, with_leader=True)
        if len(led) < len(partitions) and self._next_leaders.expired():
            self._next_leaders = Deadline(_LEADERS_PAUSE)
            self._cluster.invalidate(topic)  # even if no record waits for these leaders
        return partitions, led or partitions

    def _refuse(self, queued: QueuedRecord, partition: int) -> None:
        error = BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{queued.topic}[{partition}]",
            hint="the partitioner must return one of the topic's partitions",
        )
        self._complete([queued], error, partition, -1)

    def _lookup_failed(self, topic: str, unassigned: _Unassigned, error: ProtocolError) -> None:
        queue, retriable = unassigned.queue, is_retriable(error)
        if isinstance(error, DeadlineExceeded) and unassigned.last_error is not None:
            error = unassigned.last_error  # more specific than a timeout
        while queue and (not retriable or queue[0].deadline.expired()):
            self._complete([queue.popleft()], error, -1, -1)
        if queue:
            self._cluster.invalidate(topic)
            unassigned.backoff, unassigned.last_error = Deadline(_LOOKUP_PAUSE), error
        else:
            del self._unassigned[topic]

    def _fill_batches(self) -> None:
        settings = self._settings
        for topic_partition in [key for key in self._queues if key not in self._ready]:
            queue = self._queues[topic_partition]
            limit = self._limits.get(topic_partition)
            max_bytes = settings.batch_bytes if limit is None else min(settings.batch_bytes, limit.room())
            records = drain(queue, settings.batch_records, max_bytes)
            if not queue:
                del self._queues[topic_partition]
            try:
                producer_id = self._idempotence.producer_id(records[0].deadline)
            except ProtocolError as error:
                self._complete(records, error, topic_partition[1], -1)
                continue
            sequence = self._idempotence.next_sequence(topic_partition, len(records))
            self._ready[topic_partition] = ProducerBatch(topic_partition, records, producer_id, sequence)
