"""The loop of `EventConsumer.run`: it reads, passes records to threads that handle them, and commits.

One thread, the caller's, reads and commits. Others call the handler: records with the same key go to
the same thread, in their order, so a record waits for those before it, and for their further tries. An
offset is committed when all records before it are done, so a record that was unfinished when the process
ended is handled again by the next one.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from cloudevents_kafka.clients._commits import Commits
from cloudevents_kafka.clients._offsets import Item, Progress
from cloudevents_kafka.clients._policy import Policy, RunResult, read_or_refuse
from cloudevents_kafka.clients._protocols import GroupConsumer
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_POLL_SECONDS: Final = 0.1
_COMMIT_SECONDS: Final = 1.0  # between two commits
_QUEUED: Final = 16  # unfinished records for each thread: these may be handled again after a crash
_PAUSE_AFTER: Final = 5.0  # seconds without room for a record
_log: Final = logging.getLogger(__name__)


class Events(Protocol):
    """The methods of `EventConsumer` that a run calls."""

    @property
    def stopped(self) -> bool:
        """Whether the run is to end."""

    def poll(self, timeout: float) -> Item | None:
        """Return the next record, or None; may raise the error of a record."""

    def seek(self, to: TopicPartition) -> None:
        """Read on from an offset."""

    def stop(self) -> None:
        """End the run."""


class _Worker(threading.Thread):
    """A thread that handles the records of its queue, up to None; a daemon, as a handler may hang."""

    def __init__(self, policy: Policy, workers: Workers) -> None:
        super().__init__(name="cloudevents_kafka.run", daemon=True)
        self.queue: SimpleQueue[Item | None] = SimpleQueue()
        self.counts = RunResult()
        self.error: BaseException | None = None
        self._policy = policy
        self._workers = workers

    def run(self) -> None:
        left = False  # whether a record was left before its last try: those after it may have its key
        while (item := self.queue.get()) is not None:
            if left or self._workers.cancelled.is_set():
                continue
            try:
                left = not self._policy.handle(item, self.counts, self._workers.ending)
            except BaseException as error:  # noqa: BLE001  # SystemExit of a handler, too: run() raises it
                self.error = error
                self._workers.ending.set()
                self._workers.cancelled.set()
            else:
                if not left:
                    self._workers.done.put(item)


class Workers:
    """The threads that handle records, and what they share: the records that are done, and two flags.

    ``ending``: make no further tries. ``cancelled``: begin no record.
    """

    def __init__(self, policy: Policy, count: int) -> None:
        self.done: SimpleQueue[Item] = SimpleQueue()
        self.ending = threading.Event()
        self.cancelled = threading.Event()
        self.threads = [_Worker(policy, self) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def put(self, item: Item) -> None:
        """Pass a record to the thread of its key; records without one keep the order of their partition."""
        record = item.record
        lane = hash((record.topic, record.partition if record.key is None else record.key))
        self.threads[lane % len(self.threads)].queue.put(item)

    def take_done(self, seconds: float) -> Iterator[Item]:
        """Yield the records that are done, after waiting up to ``seconds`` for the first."""
        with suppress(Empty):
            yield self.done.get(seconds > 0, seconds)
            while True:
                yield self.done.get_nowait()

    def end(self, deadline: float) -> None:
        """End the threads after their queued records, or at the deadline after their current one."""
        self.ending.set()
        for thread in self.threads:
            thread.queue.put(None)
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self.cancelled.set()
        hanging = sum(thread.is_alive() for thread in self.threads)
        if hanging:
            records = pluralize(hanging, "record was", "records were")
            _log.warning(
                "%s still unfinished after stop_timeout, and the next process handles them again", records
            )

    def result(self) -> RunResult:
        """Return the counts of all threads, or raise the error of one."""
        for thread in self.threads:
            if thread.error is not None:
                raise thread.error
        counts = (msgspec.structs.astuple(thread.counts) for thread in self.threads)
        return RunResult(*map(sum, zip(*counts, strict=True)))


class Run:
    """One call of `EventConsumer.run`, with its consumer, the Kafka client and the threads."""

    def __init__(self, events: Events, client: GroupConsumer, policy: Policy, concurrency: int) -> None:
        policy.check_topics(client.assignment())
        self._events = events
        self._client = client
        self._check_topics = policy.check_topics
        self._progress = Progress()
        self._commits = Commits(client, self._progress)
        self._workers = Workers(policy, concurrency)
        self.threads = self._workers.threads
        self.left: list[TopicPartition] = []
        """Where records begin that are not done, after the run."""

    def handle_all(self, *, stop_timeout: float, idle_timeout: float | None) -> RunResult:
        """Handle records until the end of the run, as `EventConsumer.run` says, and return the counts."""
        with _stop_at_sigterm(self._events):
            try:
                for item in self._records(idle_timeout):
                    self._begin(item)
            finally:
                self._end(stop_timeout)
        return self._workers.result()

    def _records(self, idle_timeout: float | None) -> Iterator[Item]:
        """Yield records while there is room for them, and commit what is done."""
        idle_since = committed = polled = time.monotonic()
        while not self._events.stopped and not self._workers.cancelled.is_set():
            has_room = self._collect()
            now = time.monotonic()
            if now - committed >= _COMMIT_SECONDS:
                self._commit()
                committed = now
            item = None
            if has_room:
                item, polled = self._poll(_POLL_SECONDS), now
            elif not self._collect(_POLL_SECONDS) and time.monotonic() - polled >= _PAUSE_AFTER:
                item, polled = self._poll_paused(), now
            if item is not None:
                yield item
            if item is not None or self._progress or not has_room:
                idle_since = now
            elif idle_timeout is not None and now - idle_since >= idle_timeout:
                return

    def _poll(self, seconds: float) -> Item | None:
        return read_or_refuse(partial(self._events.poll, seconds))

    def _poll_paused(self) -> Item | None:
        """Poll with all partitions paused, since the group expects polls."""
        places = self._client.assignment()
        self._client.pause(places)
        try:
            item = self._poll(0)  # None, or a record of a partition that was just assigned
        finally:
            self._client.resume(places)
        return item

    def _begin(self, item: Item) -> None:
        is_known = self._progress.is_known(item)
        self._progress.begin(item)
        if not is_known:  # before it is handled: the group's offset is not ours yet
            assigned = self._client.assignment()
            self._check_topics(assigned)
            self._commits.look(assigned, _COMMIT_SECONDS)
        self._workers.put(item)

    def _collect(self, seconds: float = 0) -> bool:
        """Count done records, after waiting up to ``seconds`` for one; return whether there is room."""
        for item in self._workers.take_done(seconds):
            self._progress.end(item)
        return len(self._progress) < _QUEUED * len(self.threads)

    def _commit(self) -> None:
        """Commit what is done of the partitions that are assigned. Raises `ConsumeError`, `ValueError`."""
        assigned = self._client.assignment()
        self._check_topics(assigned)
        self._progress.keep(assigned)
        self._commits.commit(_COMMIT_SECONDS)

    def _end(self, seconds: float) -> None:
        """End the threads and commit what is done, within ``seconds``."""
        deadline = time.monotonic() + seconds
        self._workers.end(deadline - seconds / 5)  # the rest is for the commit
        self._collect()
        self._progress.keep(self._client.assignment())
        # In a thread: a broker that goes away would make the call longer than the bound.
        left = max(0.0, deadline - time.monotonic())
        commit = partial(self._commits.commit, left / 2, last=True)
        last = threading.Thread(target=commit, daemon=True)
        last.start()
        last.join(left)
        self._go_back()

    def _go_back(self) -> None:
        """Set unfinished records back, to be read by this consumer, or by the group after it is closed."""
        from confluent_kafka import KafkaException

        self.left = self._progress.left()
        for place in self.left:
            with suppress(KafkaException):  # the partition was revoked
                self._events.seek(place)


@contextmanager
def _stop_at_sigterm(events: Events) -> Iterator[None]:
    """Stop at SIGTERM, unless the program has a handler of its own, which may call ``stop``."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: events.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
