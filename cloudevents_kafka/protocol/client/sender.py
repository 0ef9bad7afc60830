"""Sending batches: to each leader one request at a time, tried again until it is done or its time is over.

A partition's batches go one after the other, so their order stays whatever fails.
Where brokers can tell a repeated batch (0.11 and later), nothing is written twice.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.client.cluster import Broker, Cluster, worth_another_try
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.outgoing import (
    NOBODY,
    Batch,
    Identity,
    Pending,
    Place,
    batches_of,
    check_headers,
)
from cloudevents_kafka.protocol.client.partitioners import Partitioner
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, ProtocolError, Unsupported
from cloudevents_kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from cloudevents_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cloudevents_kafka.protocol.records import Codec

_INIT_PRODUCER_ID: Final = 22
_DUPLICATE_SEQUENCE: Final = 46
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_OLDEST_ZSTD: Final = 7  # version of Produce, KIP-110


class Policy(NamedTuple):
    """How records are sent; see `Client.producer`."""

    acks: int
    codec: Codec
    partitioner: Partitioner
    batch_records: int
    batch_bytes: int
    request_timeout: float
    idempotent: bool | None


class Asked(NamedTuple):
    """A request on its way, and the batches in it."""

    broker: Broker
    batches: list[Batch]
    deadline: Deadline
    correlation_id: int


Settle = Callable[[Sequence[Pending], ProtocolError | None, int, int], None]
"""Told what became of records: an error or None, the partition, the first one's offset."""


class Sender:
    """Delivers records; used by one thread."""

    def __init__(self, cluster: Cluster, policy: Policy, settle: Settle) -> None:
        """Use the cluster's connections."""
        self._cluster: Final = cluster
        self._policy: Final = policy
        self._settle: Final = settle
        self._identity: Identity | None = None
        self._sequences: dict[Place, int] = defaultdict(int)

    def deliver(self, waiting: Sequence[Pending]) -> None:
        """Send all these records, and settle each: delivered, or failed for good."""
        places = self._by_place(waiting)
        pause = _FIRST_PAUSE
        ready: dict[Place, Batch] = {}
        while places or ready:
            self._fill(places, ready)
            before = len(ready)
            self._round(ready)
            self._expire(ready)
            if ready and len(ready) == before:  # nothing went through: give the cluster time
                self._cluster.forget()
                longest = min(batch.pending[0].deadline.at_most(pause) for batch in ready.values())
                Deadline(None).pause(longest, "producing")
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                pause = _FIRST_PAUSE

    # --- preparing -----------------------------------------------------------------------

    def _by_place(self, waiting: Sequence[Pending]) -> dict[Place, deque[list[Pending]]]:
        found: dict[Place, deque[Pending]] = defaultdict(deque)
        for pending in waiting:
            try:
                found[pending.topic, self._partition(pending)].append(pending)
            except ProtocolError as error:
                self._settle([pending], error, pending.partition, -1)
        policy = self._policy
        return {
            place: deque(batches_of(some, policy.batch_records, policy.batch_bytes))
            for place, some in found.items()
        }

    def _partition(self, pending: Pending) -> int:
        if pending.partition >= 0:
            return pending.partition
        partitions = self._cluster.partitions(pending.topic, pending.deadline)
        chosen = self._policy.partitioner(pending.record.key, partitions)
        if chosen not in partitions:
            raise BrokerError(3, f"{pending.topic}[{chosen}]", "the partitioner's choice is no partition")
        return chosen

    def _fill(self, places: dict[Place, deque[list[Pending]]], ready: dict[Place, Batch]) -> None:
        """Make a batch for each place that has none on its way."""
        for place in [place for place in places if place not in ready]:
            pending = places[place].popleft()
            if not places[place]:
                del places[place]
            try:
                identity = self._who(pending[0].deadline)
            except ProtocolError as error:
                self._settle(pending, error, place[1], -1)
                continue
            sequence = self._sequences[place] if identity != NOBODY else -1
            self._sequences[place] = (self._sequences[place] + len(pending)) % (1 << 31)
            ready[place] = Batch(place, pending, identity, sequence)

    def _who(self, deadline: Deadline) -> Identity:
        if self._identity is None:
            self._identity = self._cluster.retrying("a producer id", lambda: self._ask_id(deadline), deadline)
        return self._identity

    def _ask_id(self, deadline: Deadline) -> Identity:
        wanted = self._policy.idempotent
        if wanted is False or (wanted is None and self._policy.acks != -1):
            return NOBODY
        broker = self._cluster.any_broker(deadline)
        if _INIT_PRODUCER_ID not in broker.versions:
            if wanted:
                raise Unsupported(f"{broker.connection.address}: idempotent producing needs a broker of 0.11")
            return NOBODY
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = broker.request(request, deadline)
        assert isinstance(answer, InitProducerIdResponse)
        if answer.error_code:
            raise BrokerError(answer.error_code, "a producer id")
        return Identity(answer.producer_id, answer.producer_epoch)

    # --- sending -------------------------------------------------------------------------

    def _round(self, ready: dict[Place, Batch]) -> None:
        """Send each leader its batches, then take the answers."""
        asked: list[Asked] = []
        for leader, batches in self._by_leader(ready).items():
            deadline = Deadline(self._policy.request_timeout)
            try:
                broker = self._cluster.broker(leader, deadline)
                asked.append(self._send(broker, batches, ready, deadline))
            except ProtocolError as error:
                self._failed(batches, error, ready)
        for one in asked:
            self._take_answer(one, ready)

    def _by_leader(self, ready: dict[Place, Batch]) -> dict[int, list[Batch]]:
        found: dict[int, list[Batch]] = defaultdict(list)
        for place, batch in list(ready.items()):
            try:
                leader = self._cluster.leader(*place, Deadline(self._policy.request_timeout))
            except ProtocolError as error:
                self._failed([batch], error, ready)
            else:
                found[leader].append(batch)
        return found

    def _send(
        self, broker: Broker, batches: list[Batch], ready: dict[Place, Batch], deadline: Deadline
    ) -> Asked:
        """Send one request with all batches that this broker can take."""
        policy = self._policy
        version = broker.version(ProduceRequest)
        if policy.codec is Codec.ZSTD and version < _OLDEST_ZSTD:
            raise Unsupported(f"{broker.connection.address}: zstd needs a broker of 2.1")
        topics: dict[str, list[PartitionProduceData]] = defaultdict(list)
        sent = []
        for batch in batches:
            try:
                for pending in batch.pending:
                    check_headers(pending, version)
                data = batch.encoded(version, policy.codec)
            except ProtocolError as error:
                self._failed([batch], error, ready)
                continue
            topics[batch.place[0]].append(PartitionProduceData(index=batch.place[1], records=data))
            sent.append(batch)
        request = ProduceRequest(
            acks=policy.acks,
            timeout_ms=int(policy.request_timeout * 1000),
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )
        if not sent:
            return Asked(broker, sent, deadline, 0)
        asked = broker.connection.send(request, version, deadline, answered=policy.acks != 0)
        return Asked(broker, sent, deadline, asked)

    def _take_answer(self, asked: Asked, ready: dict[Place, Batch]) -> None:
        broker, batches, deadline, correlation_id = asked
        if self._policy.acks == 0:
            for batch in batches:
                self._done(batch, ready, -1)
            return
        if not batches:
            return
        try:
            answer = broker.connection.receive(correlation_id, deadline)
        except ProtocolError as error:
            if isinstance(error, DeadlineExceeded):
                broker.connection.close()
            self._failed(batches, error, ready)
            return
        assert isinstance(answer, ProduceResponse)
        rows = {(t.name, p.index): p for t in answer.responses for p in t.partition_responses}
        for batch in batches:
            row = rows.get(batch.place)
            if row is None:
                self._failed([batch], BrokerError(-1, _named(batch), "its answer leaves it out"), ready)
            elif row.error_code in (0, _DUPLICATE_SEQUENCE):
                self._done(batch, ready, row.base_offset)
            else:
                refused = BrokerError(row.error_code, _named(batch), row.error_message)
                self._failed([batch], refused, ready)

    # --- settling ------------------------------------------------------------------------

    def _done(self, batch: Batch, ready: dict[Place, Batch], offset: int) -> None:
        del ready[batch.place]
        self._settle(batch.pending, None, batch.place[1], offset)

    def _failed(self, batches: list[Batch], error: ProtocolError, ready: dict[Place, Batch]) -> None:
        """Leave a batch to be tried again where that may help, else give it up."""
        for batch in batches:
            again = worth_another_try(error) or isinstance(error, DeadlineExceeded)
            if not again or batch.expired():
                self._give_up(batch, error, ready)

    def _expire(self, ready: dict[Place, Batch]) -> None:
        for batch in list(ready.values()):
            if batch.expired():
                error = DeadlineExceeded(f"{_named(batch)}: not delivered in time; it may have been written")
                self._give_up(batch, error, ready)

    def _give_up(self, batch: Batch, error: ProtocolError, ready: dict[Place, Batch]) -> None:
        if ready.pop(batch.place, None) is None:
            return
        if batch.identity != NOBODY:
            # The broker would take later sequence numbers for a gap: begin anew, under another id.
            self._identity = None
            self._sequences.clear()
        self._settle(batch.pending, error, batch.place[1], -1)


def _named(batch: Batch) -> str:
    return f"{batch.place[0]}[{batch.place[1]}]"
