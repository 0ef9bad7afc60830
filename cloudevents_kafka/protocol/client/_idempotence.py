"""`Idempotence`: a producer's id and the sequence numbers of its batches (KIP-98)."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from cloudevents_kafka.protocol.client._batches import NO_PRODUCER_ID, ProducerBatch, ProducerId
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._deadline import Deadline
from cloudevents_kafka.protocol.client._topic_partition import TopicAndPartition
from cloudevents_kafka.protocol.errors import BrokerError, Unsupported
from cloudevents_kafka.protocol.messages.produce import InitProducerIdRequest, InitProducerIdResponse

_INIT_PRODUCER_ID: Final = 22


class Idempotence:
    """The producer id, requested on first use, and the next sequence number of each partition."""

    def __init__(self, cluster: Cluster, *, enabled: bool, required: bool) -> None:
        """Request an id if ``enabled``; fail if ``required`` and the broker has no ids."""
        self._cluster: Final = cluster
        self._enabled: Final = enabled
        self._required: Final = required
        self._producer_id: ProducerId | None = None
        self._sequences: dict[TopicAndPartition, int] = defaultdict(int)

    def producer_id(self, deadline: Deadline) -> ProducerId:
        """Return the producer id, `NO_PRODUCER_ID` without one."""
        if self._producer_id is None:
            self._producer_id = self._cluster.retry(
                "a producer id", lambda: self._request_id(deadline), deadline
            )
        return self._producer_id

    def next_sequence(self, topic_partition: TopicAndPartition, count: int) -> int:
        """Return the sequence number of the next batch, which has ``count`` records."""
        sequence = self._sequences[topic_partition]
        self._sequences[topic_partition] = (sequence + count) % (1 << 31)
        return -1 if self._producer_id == NO_PRODUCER_ID else sequence

    def rewind(self, batch: ProducerBatch) -> None:
        """Reuse the sequence numbers of a batch that the broker did not append."""
        if batch.producer_id == self._producer_id:
            self._sequences[batch.topic_partition] = max(batch.sequence, 0)

    def abandon(self, batch: ProducerBatch) -> None:
        """Request a new id, because brokers refuse the sequence numbers after a missing batch."""
        if batch.producer_id != NO_PRODUCER_ID:
            self._producer_id = None
            self._sequences.clear()

    def _request_id(self, deadline: Deadline) -> ProducerId:
        if not self._enabled:
            return NO_PRODUCER_ID
        broker = self._cluster.any_broker(deadline)
        if _INIT_PRODUCER_ID not in broker.versions:
            if self._required:
                raise Unsupported(f"{broker.connection.address}: idempotent producing needs a broker of 0.11")
            return NO_PRODUCER_ID
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        response = broker.request(request, deadline)
        assert isinstance(response, InitProducerIdResponse)
        if response.error_code:
            raise BrokerError(response.error_code, "a producer id")
        return ProducerId(response.producer_id, response.producer_epoch)
