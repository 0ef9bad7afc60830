"""`FakeProducer`: a producer that has confluent-kafka's methods, and writes to memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any
from zlib import crc32

from cloudevents_kafka.primitives.closing import Closing
from cloudevents_kafka.testing.fakes._checks import (
    check_places,
    check_produced,
    check_seconds,
    check_size,
    is_topic,
)
from cloudevents_kafka.testing.fakes._group import FakeGroup
from cloudevents_kafka.testing.fakes._log import (
    FakeLog,
    LogEntry,
    PartitionId,
    TransactionState,
    kafka_error,
    kafka_exception,
)
from cloudevents_kafka.testing.fakes._message import FakeMessage
from cloudevents_kafka.testing.fakes._metadata import cluster_metadata

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, TopicPartition
    from confluent_kafka.admin._metadata import ClusterMetadata

DeliveryCallback = Callable[["KafkaError | None", Any], object]


@dataclass(slots=True)
class _Pending:
    """A message that was produced, and whose delivery is not reported yet."""

    message: FakeMessage
    on_delivery: DeliveryCallback | None
    error: KafkaError | None = None


class FakeProducer(Closing):
    """A fake of `confluent_kafka.Producer` that writes to a `FakeLog`.

    The methods `poll` and `flush` deliver messages in order, and call the delivery callback of each message.
    Three parameters and methods simulate failures: ``queue_limit`` makes `produce` raise BufferError,
    `fail_next` makes deliveries fail, and ``hold`` leaves messages in the queue. ``transactional=True``
    allows transactions, as the setting ``transactional.id`` does. After a failed delivery, the transaction of
    the producer can only be aborted. The method `fail_transaction` makes the next transaction fail. Like a
    real producer, a `FakeProducer` may be shared by several threads.

    The fake producer refuses the same calls and arguments as the real producer: arguments of wrong types,
    messages of more than ``max_bytes`` (``message.max.bytes``), and topics and partitions that cannot exist.
    If a topic or partition cannot exist, the delivery of its first message fails, and later calls of
    `produce` fail, as in the real producer.

    Examples:
        >>> from cloudevents_kafka import Event, EventProducer, from_record
        >>> from cloudevents_kafka.testing import FakeProducer
        >>> fake = FakeProducer()
        >>> with EventProducer(fake, topic="orders") as events:
        ...     delivery = events.send(Event(id="1", source="/shop", type="order.placed"))
        >>> [from_record(message).type for message in fake.log]
        ['order.placed']
    """

    def __init__(
        self,
        log: FakeLog | None = None,
        *,
        queue_limit: int = 100_000,
        max_bytes: int = 1_000_000,
        transactional: bool = False,
    ) -> None:
        self.log = FakeLog() if log is None else log
        self.queue_limit = queue_limit
        self.max_bytes = max_bytes
        self.hold = False
        self._pending: deque[_Pending] = deque()
        self._failures: deque[str] = deque()
        self._state: str = "Init" if transactional else "plain"
        self._written: list[LogEntry] = []
        self._offsets: list[tuple[FakeGroup, dict[PartitionId, int]]] = []
        self._planned: dict[str, Any] | None = None  # the arguments of kafka_exception
        self._broken: dict[str, Any] | None = None  # the same arguments, for the transaction in progress
        self._failed = 0  # failed deliveries of the transaction in progress
        self._known: set[str] = set()  # topics whose partitions the client has asked for
        self._exist: set[PartitionId] = set()  # known partitions, because searching them takes time
        self._closed = False
        self._reporting = 0  # messages whose callback is running
        self._in_callback: set[int] = set()  # threads
        self._lock = Lock()  # released before callbacks, which may call the producer

    def fail_next(self, *codes: str) -> None:
        """Make the next deliveries fail: one delivery for each error name, such as ``_MSG_TIMED_OUT``.

        Examples:
            >>> fake = FakeProducer()
            >>> fake.fail_next("_MSG_TIMED_OUT")
            >>> fake.produce("orders", b"17", on_delivery=lambda error, message: print(error))
            >>> fake.flush()
            KafkaError{code=_MSG_TIMED_OUT,val=-192,str="Local: Message timed out"}
            0
        """
        self._failures.extend(codes)

    def fail_transaction(self, code: str, *, fatal: bool = False) -> None:
        """Make the next call of `send_offsets_to_transaction` or `commit_transaction` fail.

        After this failure, the producer must abort the transaction. After a failure with ``fatal``, `produce`
        and all transaction methods fail.
        """
        self._planned = {"code": code, "fatal": fatal, "txn_requires_abort": not fatal}

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        callback: DeliveryCallback | None = None,
        on_delivery: DeliveryCallback | None = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        """Queue a message; raise the real client's errors, such as `BufferError` if the queue is full.

        If the caller passes no partition, the CRC-32 of the key determines the partition, as in the real
        client by default. A message without a key and partition is sent to partition 0. A header name with
        surrogates raises `SystemError`, because such a name crashes the real client.
        """
        self._check_open()
        check_produced(topic, partition, timestamp)
        message = FakeMessage(topic, value, key, headers, timestamp=timestamp or time.time_ns() // 1_000_000)
        if self._state not in {"plain", "InTransaction"} or self._broken is not None:
            raise kafka_exception("_STATE", "Unable to produce message: Local: Erroneous state")
        check_size(message, self.max_bytes)
        if topic in self._known and (code := self._refusal(topic, partition)) is not None:
            code = "_UNKNOWN_TOPIC" if code == "TOPIC_EXCEPTION" else code
            raise kafka_exception(code, f"Unable to produce message: {kafka_error(code).str()}")
        message._partition = self._choose_partition(message.key(), partition)  # noqa: SLF001 (the client sets it)
        with self._lock:
            if len(self._pending) >= self.queue_limit:
                raise BufferError("Local: Queue full")
            self._pending.append(_Pending(message, on_delivery or callback))

    def poll(self, timeout: float = -1) -> int:
        """Deliver the queued messages; return the number of delivery callbacks that were called."""
        check_seconds(timeout)
        self._check_open()
        self._check_not_in_callback()
        reports = 0
        while (pending := self._deliver_next()) is not None:
            try:
                if pending.on_delivery is not None:
                    self._report(pending, pending.on_delivery)
                    reports += 1
            finally:
                with self._lock:
                    self._reporting -= 1
        return reports

    def _report(self, pending: _Pending, on_delivery: DeliveryCallback) -> None:
        self._in_callback.add(get_ident())
        try:
            on_delivery(pending.error, _report_message(pending.message, pending.error))
        finally:
            self._in_callback.discard(get_ident())

    def flush(self, timeout: float = -1) -> int:
        """Deliver the queued messages; return how many are still in the queue: 0 unless ``hold`` is set."""
        self.poll(timeout)
        return len(self)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Discard the queued messages; `poll` reports each of these messages as ``_PURGE_QUEUE``."""
        self._check_open()
        with self._lock:
            for pending in self._pending:
                if in_queue and pending.error is None:
                    pending.error = kafka_error("_PURGE_QUEUE")

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the metadata of a topic, or of all topics that contain messages."""
        self._check_open("Handle has been closed")
        cluster = cluster_metadata(self.log, topic, timeout)
        self._known.update(cluster.topics)
        return cluster

    def init_transactions(self, timeout: float = -1) -> None:
        """Prepare the producer for transactions, before its first transaction."""
        self._change_state("Init", "Ready")

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._change_state("Ready", "InTransaction")

    def send_offsets_to_transaction(
        self, positions: Sequence[TopicPartition], group_metadata: FakeGroup, timeout: float = -1
    ) -> None:
        """Commit the offsets of a consumer group together with the transaction.

        ``group_metadata`` is the result of the consumer's method `consumer_group_metadata`; after a
        rebalance, this metadata is refused.
        """
        check_places(positions)
        if not isinstance(group_metadata, FakeGroup):
            raise TypeError(f"expected bytes, {type(group_metadata).__name__} found")
        if group_metadata.is_stale:
            self.fail_transaction("ILLEGAL_GENERATION")
        elif not all(group_metadata.log.has_partition((each.topic, each.partition)) for each in positions):
            self.fail_transaction("UNKNOWN_TOPIC_OR_PART")
        self._check_transaction()
        offsets = {(place.topic, place.partition): place.offset for place in positions}
        self._offsets.append((group_metadata, offsets))

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver queued messages, make the transaction's messages readable, and commit its offsets."""
        self._check_state("InTransaction")
        self.flush(timeout)
        if self._failed and self._broken is None:
            reason = f"{self._failed} message(s) failed delivery (see individual delivery reports)"
            self._broken = {
                "code": "_INCONSISTENT",
                "reason": reason,
                "fatal": False,
                "txn_requires_abort": True,
            }
        self._check_transaction()
        for group, offsets in self._offsets:
            group.offsets.update(offsets)
        self._end_transaction("committed")

    def abort_transaction(self, timeout: float = -1) -> None:
        """Discard the transaction's queued messages and offsets, and hide its delivered messages."""
        self._check_state("InTransaction")
        if self._broken is not None and self._broken["fatal"]:
            self._check_transaction()
        self.purge()
        self.flush(timeout)
        self._end_transaction("aborted")

    def close(self) -> bool:
        """Deliver the queued messages, and refuse further calls; return True, as the real client does."""
        if not self._closed:
            self.flush()
        self._closed = True
        return True

    def __len__(self) -> int:
        return len(self._pending) + self._reporting

    def __bool__(self) -> bool:
        return True

    def _check_open(self, refusal: str = "Producer has been closed") -> None:
        if self._closed:
            raise RuntimeError(refusal)

    def _check_not_in_callback(self) -> None:
        """Raise `RuntimeError` in a delivery callback: there, the real client would end the process."""
        if get_ident() in self._in_callback:
            raise RuntimeError(
                "a delivery callback must not call poll or flush, not even through another method, because "
                "the real client would end the process; call them after the callback has returned"
            )

    def _refusal(self, topic: str, partition: int) -> str | None:
        """Return the error of a topic or partition that cannot exist, or None."""
        if (topic, partition) in self._exist:
            return None
        if not is_topic(topic):
            return "TOPIC_EXCEPTION"
        if partition != -1 and not self.log.has_partition((topic, partition)):
            return "_UNKNOWN_PARTITION"
        self._exist.add((topic, partition))
        return None

    def _choose_partition(self, key: bytes | None, partition: int) -> int:
        if partition != -1:
            return partition
        return crc32(key) % self.log.partitions if key else 0

    def _deliver_next(self) -> _Pending | None:
        """Deliver the next queued message, or make its delivery fail; return this message or None.

        The result is None if the queue is empty, or if ``hold`` is set and the next message has no error yet.
        """
        with self._lock:
            if not self._pending or (self.hold and self._pending[0].error is None):
                return None
            pending = self._pending.popleft()
            self._reporting += 1
            if pending.error is None and self._failures:
                code = self._failures.popleft()
                pending.error = kafka_error(code)
                if self._state == "InTransaction":
                    self._broken = {"code": code, "fatal": False, "txn_requires_abort": True}
            topic, partition = str(pending.message.topic()), pending.message.partition() or 0
            refusal = self._refusal(topic, partition) if pending.error is None else None
            if refusal is not None:
                pending.error = kafka_error(refusal)
            if pending.error is None or refusal is not None:
                self._known.add(topic)
            self._failed += pending.error is not None
            if pending.error is None:
                state: TransactionState = "open" if self._state == "InTransaction" else "committed"
                self._written.append(self.log.append(pending.message, state))
        return pending

    def _change_state(self, before: str, after: str) -> None:
        self._check_state(before)
        self._state = after

    def _check_state(self, state: str) -> None:
        self._check_open()
        if self._state == "plain":
            reason = "The Transactional API requires transactional.id to be configured"
            raise kafka_exception("_NOT_CONFIGURED", reason)
        if self._state != state:
            raise kafka_exception("_STATE", f"Operation not valid in state {self._state}")

    def _check_transaction(self) -> None:
        """Raise the error of the transaction if the transaction has failed."""
        self._check_state("InTransaction")
        if self._planned is not None:
            self._broken, self._planned = self._planned, None
        if self._broken is not None:
            raise kafka_exception(**self._broken)

    def _end_transaction(self, state: TransactionState) -> None:
        for entry in self._written:
            entry.state = state if entry.state == "open" else entry.state
        self._written.clear()
        self._offsets.clear()
        self._broken = None
        self._failed = 0
        self._state = "Ready"


def _report_message(message: FakeMessage, error: KafkaError | None) -> FakeMessage:
    """Return the message of a delivery report; as in the real client, the message contains no headers."""
    report = copy(message)
    report.set_headers(None)
    report._error = error  # noqa: SLF001 (the client sets it)
    return report
