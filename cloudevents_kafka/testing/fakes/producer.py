"""A producer of confluent-kafka's shape that writes into memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

from cloudevents_kafka.testing.fakes.log import Entry, FakeLog, Fate, kafka_error, kafka_exception
from cloudevents_kafka.testing.fakes.message import FakeMessage

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

Report = Callable[["KafkaError | None", Any], object]


@dataclass(slots=True)
class _Pending:
    """A message that was produced and whose delivery was not reported yet."""

    message: FakeMessage
    report: Report | None
    error: KafkaError | None = None


class FakeProducer:
    """Stands in for `confluent_kafka.Producer` in tests; what is sent lands in `log`.

    Deliveries happen and are reported in `poll` and `flush`, in order. Trouble on
    demand: `queue_limit` makes `produce` raise BufferError, `fail_next` fails
    deliveries, `hold` keeps the broker from answering. ``transactional=True``
    gives it the transactions of a producer with a transactional id. Threads may share
    one, as they may share the real client.
    """

    def __init__(
        self, log: FakeLog | None = None, *, queue_limit: int = 100_000, transactional: bool = False
    ) -> None:
        self.log = FakeLog() if log is None else log
        self.queue_limit = queue_limit
        self.hold = False
        self._pending: deque[_Pending] = deque()
        self._failures: deque[str] = deque()
        self._state: str = "Init" if transactional else "plain"
        self._written: list[Entry] = []
        self._closed = False
        self._lock = Lock()  # never kept while a report is made, which may call the producer

    def fail_next(self, *codes: str) -> None:
        """Fail the next deliveries, one for each error name, such as ``_MSG_TIMED_OUT``."""
        self._failures.extend(codes)

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        callback: Report | None = None,
        on_delivery: Report | None = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        """Queue a message; BufferError if the queue is full.

        Without a partition the key's hash chooses one, as in the real client
        (by default CRC-32; keyless messages go to partition 0 here).
        """
        self._check_open()
        if self._state not in {"plain", "InTransaction"}:
            raise kafka_exception("_STATE", "Unable to produce message: Local: Erroneous state")
        if not isinstance(topic, str):
            raise TypeError(f"argument 1 must be str, not {type(topic).__name__}")
        message = FakeMessage(topic, value, key, headers, timestamp=timestamp or time.time_ns() // 1_000_000)
        message._partition = self._choose(message.key(), partition)  # noqa: SLF001 (the client sets it)
        with self._lock:
            if len(self._pending) >= self.queue_limit:
                raise BufferError("Local: Queue full")
            self._pending.append(_Pending(message, on_delivery or callback))

    def poll(self, timeout: float = -1) -> int:
        """Deliver and report what is queued; return how many reports were made."""
        self._check_open()
        reports = 0
        while (pending := self._deliver()) is not None:
            if pending.report is not None:
                pending.report(pending.error, _reported(pending.message, pending.error))
                reports += 1
        return reports

    def flush(self, timeout: float = -1) -> int:
        """Deliver and report all; give how many are left, which only `hold` causes."""
        self.poll(timeout)
        return len(self._pending)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Give up all that is queued; `poll` reports each as ``_PURGE_QUEUE``."""
        self._check_open()
        with self._lock:
            for pending in self._pending:
                if in_queue and pending.error is None:
                    pending.error = kafka_error("_PURGE_QUEUE")

    def init_transactions(self, timeout: float = -1) -> None:
        """Get ready for transactions."""
        self._move("Init", "Ready")

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._move("Ready", "InTransaction")

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver what is queued, and let readers see what the transaction wrote."""
        self._require("InTransaction")
        self.flush(timeout)
        self._finish(Fate.COMMITTED)

    def abort_transaction(self, timeout: float = -1) -> None:
        """Give up what is queued, and hide what the transaction wrote for good."""
        self._require("InTransaction")
        self.purge()
        self.flush(timeout)
        self._finish(Fate.ABORTED)

    def close(self) -> None:
        """Flush, then refuse all further work."""
        if not self._closed:
            self.flush()
        self._closed = True

    def __len__(self) -> int:
        return len(self._pending)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Producer has been closed")

    def _choose(self, key: bytes | None, partition: int) -> int:
        if partition >= 0:
            return partition
        return crc32(key) % self.log.partitions if key else 0

    def _deliver(self) -> _Pending | None:
        """Store or fail the next message; None if there is none, or the broker does not answer."""
        with self._lock:
            if not self._pending or (self.hold and self._pending[0].error is None):
                return None
            pending = self._pending.popleft()
            if pending.error is None and self._failures:
                pending.error = kafka_error(self._failures.popleft())
            if pending.error is None:
                fate = Fate.OPEN if self._state == "InTransaction" else Fate.COMMITTED
                self._written.append(self.log.append(pending.message, fate))
        return pending

    def _move(self, before: str, after: str) -> None:
        self._require(before)
        self._state = after

    def _require(self, state: str) -> None:
        self._check_open()
        if self._state != state:
            raise kafka_exception("_STATE", f"Operation not valid in state {self._state}")

    def _finish(self, fate: Fate) -> None:
        for entry in self._written:
            entry.fate = fate if entry.fate is Fate.OPEN else entry.fate
        self._written.clear()
        self._state = "Ready"


def _reported(message: FakeMessage, error: KafkaError | None) -> FakeMessage:
    """Give the message of a delivery report, which in the real client has no headers."""
    _, millis = message.timestamp()
    return FakeMessage(
        message.topic(),
        message.value(),
        message.key(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=millis,
        error=error,
    )
