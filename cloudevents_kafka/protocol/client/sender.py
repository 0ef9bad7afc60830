"""Sending batches: to each leader one request at a time, tried again until it is done or its time is over.

A partition's batches go one after the other, so their order stays whatever fails; a
partition that fails rests, and holds no other up.
Where brokers can tell a repeated batch (0.11 and later), nothing is written twice.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.client.batches import (
    BATCHES,
    NOBODY,
    Batch,
    Identity,
    Pending,
    TopicAndPartition,
    check_headers,
    cut,
)
from cloudevents_kafka.protocol.client.cluster import Broker, Cluster, worth_another_try
from cloudevents_kafka.protocol.client.connection import Address
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.partitioners import Partitioner
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, ProtocolError, Unsupported
from cloudevents_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cloudevents_kafka.protocol.records import Codec

_INIT_PRODUCER_ID: Final = 22
_LOOKUP_PAUSE: Final = 0.2  # seconds, before a topic that is not there is looked for again
_LAST_WORD: Final = 2.0  # seconds, for a broker to read what it does not answer
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


class _Missing(NamedTuple):
    """A topic that was looked for in vain: until when not to ask again, and why."""

    rest: Deadline
    error: ProtocolError


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
        self._sequences: dict[TopicAndPartition, int] = defaultdict(int)
        self._most: dict[TopicAndPartition, int] = {}
        self._unplaced: dict[str, deque[Pending]] = {}
        self._missing: dict[str, _Missing] = {}
        self._waiting: dict[TopicAndPartition, deque[Pending]] = {}
        self._ready: dict[TopicAndPartition, Batch] = {}
        self._unanswered: dict[Address, tuple[Broker, str]] = {}

    def take(self, records: Iterable[Pending]) -> None:
        """Take records to be sent by `turn`."""
        for pending in records:
            if pending.partition >= 0:
                self._place(pending, pending.partition)
            else:
                self._unplaced.setdefault(pending.topic, deque()).append(pending)

    def turn(self) -> None:
        """Send what may be sent now, once; settle what is delivered, or failed for good."""
        self._find_places()
        self._fill()
        self._round([batch for batch in self._ready.values() if batch.resting.over()])
        self._expire()

    def rest(self) -> float | None:
        """Return the seconds until the next `turn` has something to do; None where nothing is left."""
        if self._waiting.keys() - self._ready.keys():
            return 0.0
        rests = [batch.resting for batch in self._ready.values()]
        rests += [
            self._missing[topic].rest if topic in self._missing else Deadline(0) for topic in self._unplaced
        ]
        return min((rest.at_most(1.0) for rest in rests), default=None)

    def finish(self) -> None:
        """Wait until brokers have read what they do not answer (acks 0), as closing could throw it away.

        A broker works on the requests of a connection in turn; so its answer to a later
        one tells. 0.9 was seen to lose what came just before the end.
        """
        for broker, topic in self._unanswered.values():
            question = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
            with suppress(ProtocolError):
                broker.request(question, Deadline(_LAST_WORD))
        self._unanswered.clear()

    # --- preparing -----------------------------------------------------------------------

    def _find_places(self) -> None:
        """Choose partitions where the topic's are known; one topic does not wait for another."""
        for topic, unplaced in list(self._unplaced.items()):
            if topic in self._missing and not self._missing[topic].rest.over():
                continue
            try:
                partitions = self._cluster.partitions_now(topic, self._in_time(unplaced[0]))
            except ProtocolError as error:
                self._unknown(topic, unplaced, error)
                continue
            del self._unplaced[topic]
            self._missing.pop(topic, None)
            for pending in unplaced:
                self._place(pending, self._policy.partitioner(pending.record.key, partitions), partitions)

    def _unknown(self, topic: str, unplaced: deque[Pending], error: ProtocolError) -> None:
        again = worth_another_try(error) or isinstance(error, DeadlineExceeded)
        if isinstance(error, DeadlineExceeded) and topic in self._missing:
            error = self._missing[topic].error  # says more than that the time is over
        while unplaced and (not again or unplaced[0].deadline.over()):
            self._settle([unplaced.popleft()], error, -1, -1)
        if unplaced:
            self._cluster.forget()
            self._missing[topic] = _Missing(Deadline(_LOOKUP_PAUSE), error)
        else:
            del self._unplaced[topic]
            self._missing.pop(topic, None)

    def _place(self, pending: Pending, partition: int, known: Sequence[int] | None = None) -> None:
        if known is not None and partition not in known:
            where = f"{pending.topic}[{partition}]"
            error = BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, where, "the partitioner's choice is no partition"
            )
            self._settle([pending], error, partition, -1)
        else:
            self._waiting.setdefault((pending.topic, partition), deque()).append(pending)

    def _fill(self) -> None:
        """Make a batch for each place that has none on its way."""
        policy = self._policy
        for place in [place for place in self._waiting if place not in self._ready]:
            waiting = self._waiting[place]
            pending = cut(waiting, self._most.get(place, policy.batch_records), policy.batch_bytes)
            if not waiting:
                del self._waiting[place]
            try:
                identity = self._who(pending[0].deadline)
            except ProtocolError as error:
                self._settle(pending, error, place[1], -1)
                continue
            sequence = self._sequences[place] if identity != NOBODY else -1
            self._sequences[place] = (self._sequences[place] + len(pending)) % (1 << 31)
            self._ready[place] = Batch(place, pending, identity, sequence)

    def _in_time(self, pending: Pending) -> Deadline:
        return Deadline(pending.deadline.at_most(self._policy.request_timeout))

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

    def _round(self, batches: list[Batch]) -> None:
        """Send each leader its batches, then take the answers."""
        asked: list[Asked] = []
        for leader, some in self._by_leader(batches).items():
            deadline = Deadline(self._policy.request_timeout)
            try:
                broker = self._cluster.broker(leader, deadline)
                asked.append(self._send(broker, some, deadline))
            except ProtocolError as error:
                self._failed(some, error)
        for one in asked:
            self._take_answer(one)

    def _by_leader(self, batches: list[Batch]) -> dict[int, list[Batch]]:
        found: dict[int, list[Batch]] = defaultdict(list)
        for batch in batches:
            try:
                leader = self._cluster.leader(*batch.place, self._in_time(batch.pending[0]))
            except ProtocolError as error:
                self._failed([batch], error)
            else:
                found[leader].append(batch)
        return found

    def _send(self, broker: Broker, batches: list[Batch], deadline: Deadline) -> Asked:
        """Send one request with all batches that this broker can take."""
        policy = self._policy
        version = broker.version(ProduceRequest)
        if policy.codec is Codec.ZSTD and version < _OLDEST_ZSTD:
            raise Unsupported(f"{broker.connection.address}: zstd needs a broker of 2.1")
        topics: dict[str, list[PartitionProduceData]] = defaultdict(list)
        sent = []
        for batch in batches:
            try:
                if not self._without_headers(batch, version):
                    continue
                data = batch.encoded(version, policy.codec)
            except ProtocolError as error:
                self._failed([batch], error)
                continue
            topics[batch.place[0]].append(PartitionProduceData(index=batch.place[1], records=data))
            sent.append(batch)
        request = ProduceRequest(
            acks=policy.acks,
            timeout_ms=int(policy.request_timeout * 500),  # half, the rest is for the way and the queue
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )
        if not sent:
            return Asked(broker, sent, deadline, 0)
        asked = broker.connection.send(request, version, deadline, answered=policy.acks != 0)
        return Asked(broker, sent, deadline, asked)

    def _without_headers(self, batch: Batch, version: int) -> bool:
        """Fail the records whose headers an old broker cannot carry; tell whether others are left."""
        if version >= BATCHES:
            return True
        kept = []
        for pending in batch.pending:
            try:
                check_headers(pending, version)
                kept.append(pending)
            except Unsupported as error:
                self._settle([pending], error, batch.place[1], -1)
        batch.pending = kept
        if not kept:
            del self._ready[batch.place]
        return bool(kept)

    def _take_answer(self, asked: Asked) -> None:
        broker, batches, deadline, correlation_id = asked
        if self._policy.acks == 0:
            for batch in batches:
                self._unanswered[broker.connection.address] = (broker, batch.place[0])
                self._done(batch, -1)
            return
        if not batches:
            return
        try:
            answer = broker.connection.receive(correlation_id, deadline)
        except ProtocolError as error:
            broker.connection.close()
            self._failed(batches, error)
            return
        assert isinstance(answer, ProduceResponse)
        rows = {(t.name, p.index): p for t in answer.responses for p in t.partition_responses}
        for batch in batches:
            row = rows.get(batch.place)
            if row is None:
                self._failed(
                    [batch],
                    BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, _named(batch), "its answer leaves it out"),
                )
            elif row.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._done(batch, row.base_offset)
            elif row.error_code == ErrorCode.MESSAGE_TOO_LARGE and len(batch.pending) > 1:
                self._split(batch)
            else:
                self._failed([batch], BrokerError(row.error_code, _named(batch), row.error_message))

    # --- settling ------------------------------------------------------------------------

    def _done(self, batch: Batch, offset: int) -> None:
        del self._ready[batch.place]
        self._settle(batch.pending, None, batch.place[1], offset)

    def _split(self, batch: Batch) -> None:
        """Send a batch again as smaller ones: each of its records may be small enough."""
        del self._ready[batch.place]
        self._most[batch.place] = len(batch.pending) // 2
        self._waiting.setdefault(batch.place, deque()).extendleft(reversed(batch.pending))
        if batch.identity == self._identity:
            self._sequences[batch.place] = max(batch.sequence, 0)

    def _failed(self, batches: list[Batch], error: ProtocolError) -> None:
        """Leave a batch to be tried again where that may help, else give it up."""
        for batch in batches:
            if worth_another_try(error) or isinstance(error, DeadlineExceeded):
                self._cluster.forget()
                batch.rest()
                batch.last = error
            else:
                self._give_up(batch, error)

    def _expire(self) -> None:
        for batch in list(self._ready.values()):
            if batch.expired():
                last = f"; the last try: {batch.last}" if batch.last else ""
                text = f"{_named(batch)}: not delivered in time; it may have been written{last}"
                self._give_up(batch, DeadlineExceeded(text))

    def _give_up(self, batch: Batch, error: ProtocolError) -> None:
        if self._ready.pop(batch.place, None) is None:
            return
        if batch.identity != NOBODY:
            # The broker would take later sequence numbers for a gap: begin anew, under another id.
            self._identity = None
            self._sequences.clear()
        self._settle(batch.pending, error, batch.place[1], -1)


def _named(batch: Batch) -> str:
    return f"{batch.place[0]}[{batch.place[1]}]"
