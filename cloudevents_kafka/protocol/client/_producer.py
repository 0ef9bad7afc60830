"""`Producer`: queues records, which a thread sends in batches.

The producer has the methods that `EventProducer` calls; these methods have the same names as in
confluent-kafka's producer. Delivery callbacks are called from `poll` and `flush`, in the caller's thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple, TypeAlias

from cloudevents_kafka.primitives import forks
from cloudevents_kafka.primitives.bounded import remember_text
from cloudevents_kafka.primitives.closing import Closing
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol.client._accumulator import Accumulator
from cloudevents_kafka.protocol.client._batches import DeliveryCallback, QueuedRecord, size_of
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._message import Message
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._sender import BatchSender
from cloudevents_kafka.protocol.client._settings import ProducerSettings
from cloudevents_kafka.protocol.client._socket import OTHER_PROCESS
from cloudevents_kafka.protocol.errors import ClientError, ProtocolError
from cloudevents_kafka.protocol.records import Record
from cloudevents_kafka.protocol.records.record import Headers

HeadersInput: TypeAlias = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]

_POLL_INTERVAL: Final = 0.2  # seconds, so that KeyboardInterrupt is raised soon
_JOIN_TIMEOUT: Final = 5.0  # seconds, for the thread to end after `Cluster.abort`
_MAX_TIMESTAMP: Final = 1 << 63


class _Report(NamedTuple):
    """A record whose delivery has succeeded or failed."""

    queued: QueuedRecord
    partition: int
    offset: int
    error: ProtocolError | None

    def call(self) -> None:
        """Call the record's delivery callback, if the record has a callback."""
        queued, partition, offset, error = self
        if queued.on_delivery is not None:
            queued.on_delivery(error, Message(queued.record, queued.topic, partition, offset, error))


class Producer(Closing):
    """Sends records.

    Create a producer with `Client.producer`, and close the producer at the end, because records may be lost
    if the producer is not closed.

    Examples:
        >>> from cloudevents_kafka.protocol import Client
        >>> with Client("localhost:9092").producer(compression="gzip") as producer:
        ...     producer.produce("orders", b"17", on_delivery=lambda error, message: print(error))
        ...     producer.flush()
        None
        0
    """

    def __init__(self, cluster: Cluster, settings: ProducerSettings) -> None:
        """Start the sending thread, which owns ``cluster`` from now on."""
        self._cluster: Final = cluster
        self._settings: Final = settings
        self._accumulator: Final = Accumulator(cluster, settings, self._complete)
        self._sender: Final = BatchSender(cluster, settings, self._accumulator)
        self._lock: Final = threading.RLock()
        self._changed: Final = threading.Condition(self._lock)
        self._clock = (0, Deadline(0))
        self._queue: deque[QueuedRecord] = deque()
        self._queue_bytes = 0
        self._first_queued_at = 0.0
        self._outstanding = 0
        self._flushing = 0
        self._closed = False
        self._forks: Final = forks.number
        self._reports: deque[_Report] = deque()
        self._thread: Final = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self._thread.start()

    def produce(  # noqa: PLR0917  # the order of confluent-kafka
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        on_delivery: DeliveryCallback | None = None,
        timestamp: int = 0,
        headers: HeadersInput | None = None,
    ) -> None:
        """Queue a record.

        ``timestamp`` is in ms; 0 means now. ``on_delivery`` is called with an error or None, and with the
        message. Raises `BufferError` if the queue is full: call `poll`, and try again. Raises ValueError or
        TypeError for values that a record cannot contain.
        """
        if not isinstance(topic, str) or not isinstance(partition, int):
            raise TypeError(f"topic must be str and partition int, got {topic!r} and {partition!r}")
        if not isinstance(timestamp, int) or not 0 <= timestamp < _MAX_TIMESTAMP:
            raise ValueError(f"timestamp must be ms since the epoch, or 0 for now, got {timestamp!r}")
        now, deadline = self._now()
        record = Record(_to_bytes(key), _to_bytes(value), _to_headers(headers), timestamp or now)
        size = size_of(record)
        queued = QueuedRecord(topic, partition, record, on_delivery, deadline, size)
        with self._lock:
            if self._closed:
                raise ClientError("the producer is closed")
            if self._outstanding >= self._settings.queue_records:
                count = pluralize(self._outstanding, "record")
                raise BufferError(f"the queue is full ({count}); poll, and try again")
            if not self._queue:
                self._check_thread()
                self._first_queued_at = time.monotonic()
            self._queue.append(queued)
            self._queue_bytes += size
            self._outstanding += 1
            if len(self._queue) == 1 or self._batch_is_full():
                self._wake()

    def poll(self, timeout: float = -1) -> int:
        """Call the callbacks of delivered and failed records; return the number of these records.

        The call waits up to ``timeout`` seconds for the first delivered or failed record; -1 means no limit.
        """
        if not timeout and not self._reports:
            return 0
        deadline = Deadline(timeout)
        with self._changed:
            while not self._reports and self._outstanding and not deadline.expired():
                self._check_thread()
                self._changed.wait(deadline.at_most(_POLL_INTERVAL))
            finished = len(self._reports)
        done = 0
        while done < finished:
            # One callback at a time: an error in a callback must not lose other reports.
            taken, report = self._take(finished - done)
            if not taken:  # a callback has called `poll`
                break
            done += taken
            if report is not None:
                report.call()
        return done

    def _take(self, count: int) -> tuple[int, _Report | None]:
        """Remove up to ``count`` delivered or failed records; stop after the first record with a callback.

        Return the number of removed records, and the record with a callback or None.
        """
        taken, last = 0, None
        with self._lock:
            while self._reports and taken < count and last is None:
                report = self._reports.popleft()
                taken += 1
                last = None if report.queued.on_delivery is None else report
            self._outstanding -= taken
        return taken, last

    def flush(self, timeout: float = -1) -> int:
        """Send all queued records, and call their callbacks; return how many are not reported yet."""
        deadline = Deadline(timeout)
        with self._changed:
            self._flushing += 1
            self._wake()
        try:
            while self._outstanding:
                self.poll(deadline.at_most(_POLL_INTERVAL))
                if deadline.expired():
                    break
        finally:
            with self._changed:
                self._flushing -= 1
        return self._outstanding

    def close(self, timeout: float = -1) -> int:
        """Flush the queue, and close the connections; return how many records the flush has not reported.

        The flush ends after ``timeout`` seconds. Records that the flush has not reported are then reported as
        failed.
        """
        try:
            left = self.flush(timeout)
        finally:
            with self._changed:
                self._closed = True
                self._wake()
            if self._outstanding:
                self._cluster.abort()
            self._thread.join(_JOIN_TIMEOUT)
            self._cluster.close()
        self.poll(0)
        return left

    def __len__(self) -> int:
        """Return the number of records that are not reported yet."""
        return self._outstanding

    def __bool__(self) -> bool:
        """Return True, even if the queue is empty and `len` returns 0."""
        return True

    def _now(self) -> tuple[int, Deadline]:
        """Return the current time in ms, and the deadline of records that are produced at this time."""
        now = int(time.time() * 1000)
        if (clock := self._clock)[0] != now:
            self._clock = clock = now, Deadline(self._settings.delivery_timeout)
        return clock

    def _check_thread(self) -> None:
        if self._forks != forks.number:
            raise ClientError(OTHER_PROCESS)
        if not self._thread.is_alive():
            raise ClientError(
                f"the sending thread has ended, records outstanding: {self._outstanding}; "
                "report the traceback that was printed"
            )

    def _run(self) -> None:
        with closing(self._sender):
            while (records := self._next_records()) is not None:
                self._accumulator.add(records)
                self._sender.run_once(self._seconds_to_wait())
            self._sender.finish()

    def _wake(self) -> None:
        self._changed.notify_all()
        self._sender.wake()

    def _seconds_to_wait(self) -> float:
        """Return the maximum number of seconds for which the sender may wait for responses."""
        delay = self._accumulator.next_delay()
        with self._changed:
            if not self._queue:
                linger = _POLL_INTERVAL
            elif self._should_send():
                linger = 0.0
            else:
                linger = self._first_queued_at + self._settings.linger - time.monotonic()
        return max(0.0, linger if delay is None else min(delay, linger))

    def _next_records(self) -> list[QueuedRecord] | None:
        """Wait for queued records to send, and return them; return None if the producer is finished.

        The returned list is empty if the thread must first do other work, such as a retry.
        """
        max_delay = 0.0 if self._sender.is_waiting else self._accumulator.next_delay()
        deadline = Deadline(max_delay)
        with self._changed:
            while not self._queue or not self._should_send():
                if deadline.expired():
                    return []
                if self._closed and not self._queue and max_delay is None:
                    return None
                linger = self._first_queued_at + self._settings.linger - time.monotonic()
                self._changed.wait(
                    deadline.at_most(max(linger, 0.0)) if self._queue else deadline.remaining()
                )
            records = list(self._queue)
            self._queue.clear()
            self._queue_bytes = 0
            return records

    def _should_send(self) -> bool:
        lingered = time.monotonic() - self._first_queued_at >= self._settings.linger
        return lingered or self._batch_is_full() or self._flushing > 0 or self._closed

    def _batch_is_full(self) -> bool:
        settings = self._settings
        return len(self._queue) >= settings.batch_records or self._queue_bytes >= settings.batch_bytes

    def _complete(
        self, records: Sequence[QueuedRecord], error: ProtocolError | None, partition: int, offset: int
    ) -> None:
        reports = [
            _Report(queued, partition, offset + n if offset >= 0 else -1, error)
            for n, queued in enumerate(records)
        ]
        with self._changed:
            self._reports.extend(reports)
            self._changed.notify_all()


def _to_bytes(value: bytes | str | None) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"keys and values must be bytes, str or None, got {type(value).__name__}")


def _to_headers(headers: HeadersInput | None) -> Headers:
    if not headers:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [
        (name if name in _NAMES else _checked_name(name), value if type(value) is bytes else _to_bytes(value))
        for name, value in pairs
    ]


_NAMES: Final = set[str]()
"""Header names that were checked."""


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"header names must be str, got {name!r}")
    name.encode()  # raises UnicodeEncodeError here rather than in the sending thread
    remember_text(_NAMES, name)
    return name
