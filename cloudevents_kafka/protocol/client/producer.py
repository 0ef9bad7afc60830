"""Producer: takes records at once, sends them in batches from a thread of its own.

It has the shape of confluent-kafka's producer as far as its methods go, so
`EventProducer` works on top of it. What became of a record is reported from within
`poll` and `flush`, in the caller's thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TypeAlias

from cloudevents_kafka.protocol.client.batches import Pending, Report
from cloudevents_kafka.protocol.client.cluster import Cluster
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.message import Message
from cloudevents_kafka.protocol.client.sender import Policy, Sender
from cloudevents_kafka.protocol.errors import ClientError, ProtocolError
from cloudevents_kafka.protocol.records import Headers, Record

HeaderInput: TypeAlias = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]

_TURN: Final = 0.2  # seconds, so that Ctrl-C is heard
_LAST: Final = 5.0  # seconds for the thread to end in; all it waits for has been ended
_TIMES: Final = 1 << 63


class Producer:
    """Sends records; make it by `Client.producer`, and close it, or nothing is sure to be sent."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        *,
        linger: float,
        queue_records: int,
        delivery_timeout: float,
    ) -> None:
        """Begin the thread that sends; ``cluster`` is its own from now on."""
        self._cluster: Final = cluster
        self._policy: Final = policy
        self._linger: Final = linger
        self._most: Final = queue_records
        self._delivery_timeout: Final = delivery_timeout
        self._sender: Final = Sender(cluster, policy, self._settle)
        self._changed: Final = threading.Condition()
        self._waiting: deque[Pending] = deque()
        self._waiting_bytes = 0
        self._first_came = 0.0
        self._outstanding = 0
        self._flushing = 0
        self._closed = False
        self._reports: deque[tuple[Report | None, Message]] = deque()
        self._thread: Final = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self._thread.start()

    def produce(  # noqa: PLR0917  # the order that users of confluent-kafka know
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        on_delivery: Report | None = None,
        timestamp: int = 0,
        headers: HeaderInput | None = None,
    ) -> None:
        """Take a record to be sent.

        ``timestamp`` is in ms, 0 is now; ``on_delivery`` is called with an error or None, and the
        message. `BufferError` where the queue is full: `poll`, and try again. ValueError and
        TypeError for what no record can hold.
        """
        if not isinstance(topic, str) or not isinstance(partition, int):
            raise TypeError(f"a topic is text and a partition a number, not {topic!r} and {partition!r}")
        if not isinstance(timestamp, int) or not 0 <= timestamp < _TIMES:
            raise ValueError(f"timestamp={timestamp!r}: milliseconds of the epoch, or 0 for now")
        record = Record(
            key=_bytes(key),
            value=_bytes(value),
            headers=_headers(headers),
            timestamp=timestamp or int(time.time() * 1000),
        )
        pending = Pending(topic, partition, record, on_delivery, Deadline(self._delivery_timeout))
        with self._changed:
            if self._closed:
                raise ClientError("the producer is closed")
            if self._outstanding >= self._most:
                raise BufferError(f"{self._outstanding:,} records wait to be sent; poll, and try again")
            size = pending.size
            if not self._waiting:
                self._first_came = time.monotonic()
            self._waiting.append(pending)
            self._waiting_bytes += size
            self._outstanding += 1
            if len(self._waiting) == 1 or self._full():
                self._changed.notify_all()

    def poll(self, timeout: float = -1) -> int:
        """Report what became of records, waiting at most ``timeout`` seconds for some; return how many."""
        deadline = Deadline(timeout)
        with self._changed:
            while not self._reports and self._outstanding and not deadline.over():
                self._check_thread()
                self._changed.wait(deadline.at_most(_TURN))
            due = len(self._reports)
        for done in range(due):
            with self._changed:
                if not self._reports:  # a report has called `poll`
                    return done
                report, message = self._reports.popleft()  # one by one: a report that raises loses no other
                self._outstanding -= 1
            if report is not None:
                report(message.error(), message)
        return due

    def flush(self, timeout: float = -1) -> int:
        """Send all without delay, and report on it; return how many were not done in time."""
        deadline = Deadline(timeout)
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
        try:
            while self._outstanding:
                self.poll(deadline.at_most(_TURN))
                if deadline.over():
                    break
        finally:
            with self._changed:
                self._flushing -= 1
        return self._outstanding

    def close(self, timeout: float = -1) -> int:
        """Flush, stop, close the connections; return how many records were not done in time.

        Those are reported as failed.
        """
        try:
            left = self.flush(timeout)
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            if self._outstanding:
                self._cluster.end()
            self._thread.join(_LAST)
            self._cluster.close()
        self.poll(0)
        return left

    def __len__(self) -> int:
        """Return how many records are not reported on yet."""
        return self._outstanding

    def __bool__(self) -> bool:
        """Tell that it is one, even with nothing to do."""
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_thread(self) -> None:
        if not self._thread.is_alive():
            raise ClientError(
                f"the sending thread has ended with {self._outstanding} records outstanding; "
                "its traceback was printed. Please report it"
            )

    # --- the sending thread --------------------------------------------------------------

    def _run(self) -> None:
        while (taken := self._take(self._sender.rest())) is not None:
            self._sender.take(taken)
            self._sender.turn()
        self._sender.finish()

    def _take(self, rest: float | None) -> list[Pending] | None:
        """Wait until records should go, ``rest`` seconds at most, and take them; None when all is over."""
        deadline = Deadline(rest)
        with self._changed:
            while not self._waiting or not self._ripe():
                if deadline.over():
                    return []
                if self._closed and not self._waiting and rest is None:
                    return None
                ripe = self._first_came + self._linger - time.monotonic()
                self._changed.wait(deadline.at_most(max(ripe, 0.0)) if self._waiting else deadline.left())
            taken = list(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            return taken

    def _ripe(self) -> bool:
        old = time.monotonic() - self._first_came >= self._linger
        return old or self._full() or self._flushing > 0 or self._closed

    def _full(self) -> bool:
        policy = self._policy
        return len(self._waiting) >= policy.batch_records or self._waiting_bytes >= policy.batch_bytes

    def _settle(
        self, pending: Sequence[Pending], error: ProtocolError | None, partition: int, offset: int
    ) -> None:
        reports = [
            (p.report, Message(p.record, p.topic, partition, offset + number if offset >= 0 else -1, error))
            for number, p in enumerate(pending)
        ]
        with self._changed:
            self._reports.extend(reports)
            self._changed.notify_all()


def _bytes(value: bytes | str | None) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"keys and values are bytes, text or None, not {type(value).__name__}")


def _headers(headers: HeaderInput | None) -> Headers:
    if not headers:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(_name(name), _bytes(value)) for name, value in pairs]


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"names of headers are text, not {name!r}")
    name.encode()  # UnicodeEncodeError here rather than in the thread that sends
    return name
