"""`ThreadRun`: the loop of `EventConsumer.run`, which reads records, passes them to threads, and commits.

The caller's thread reads and commits. Other threads call the handler with the records that `Schedule`
returns. `Progress` contains the client calls that the loops for threads and for asyncio have in common.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from cloudevents_kafka.clients._places import Item, name_of
from cloudevents_kafka.clients._policy import RunResult, read_or_refuse
from cloudevents_kafka.clients._run import Progress, still_in_work
from cloudevents_kafka.clients._signals import stop_at_sigterm
from cloudevents_kafka.clients._steps import Steps, perform
from cloudevents_kafka.clients._workers import PAUSE_SECONDS, Threads, log_unfinished

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_POLL_SECONDS: Final = 0.1


class Events(Protocol):
    """The attributes of `EventConsumer` that `ThreadRun` uses."""

    consumer: Any
    is_subscribed: bool

    @property
    def is_passed(self) -> bool: ...
    @property
    def stopped(self) -> bool: ...
    def poll(self, timeout: float) -> Item | None: ...
    def discard(self, partitions: Iterable[TopicPartition]) -> None: ...
    def bound_revocation(self, seconds: float | None) -> float: ...
    def stop(self) -> None: ...


class ThreadRun:
    """The state of one call of `EventConsumer.run`: the consumer, the Kafka client and the threads."""

    def __init__(self, events: Events, workers: Threads, before: Threads | None = None) -> None:
        self._events = events
        self._before = before
        self._policy = workers.policy
        self._workers = workers
        self.progress = Progress(
            workers, events.consumer, is_subscribed=events.is_subscribed, is_passed=events.is_passed
        )
        self.closes = False
        """Whether the consumer must be closed when the run has ended and committed."""
        self.ended = threading.Event()
        self.threads = {threading.current_thread(), *workers.threads}
        """The threads that must not wait for the end of the run."""

    def handle_all(self) -> RunResult:
        """Handle records until the end of the run, as `EventConsumer.run` says, and return the counts."""
        with stop_at_sigterm(self._events.stop):
            try:
                self._wait_for_handlers()
                self._perform(self.progress.begin())
                self._read()
            finally:
                self._end(self._policy.stop_timeout)
        return self._workers.result()

    def _perform(self, steps: Steps[None]) -> None:
        perform(steps, self._events.consumer)

    def _wait_for_handlers(self) -> None:
        """Wait for the running handlers of an earlier run, so that no record is in two handlers at once."""
        if self._before is not None and not self._before.wait_for_handlers(self._policy.stop_timeout):
            raise still_in_work(len(self._before.schedule.in_work))

    def _read(self) -> None:
        """Read records until the run must end, and commit finished records."""
        progress, workers = self.progress, self._workers
        while not self._events.stopped and not workers.cancelled:
            now = time.monotonic()
            if serves := progress.is_due(now):  # a poll also keeps the member in its group
                self._perform(progress.commit(now))
            self._perform(progress.pause())
            item, may_read = None, progress.may_read()
            if may_read or serves:
                item = read_or_refuse(partial(self._events.poll, _POLL_SECONDS if may_read else 0))
            if item is not None:
                self._begin(item, now)
            elif progress.is_over(now):
                return
            elif not progress.is_idle:
                if may_read:  # a real client has waited; a fake does not wait
                    workers.wait(lambda: progress.is_idle, PAUSE_SECONDS)
                else:
                    workers.wait_to_read(progress.may_read, _POLL_SECONDS)
            if item is not None or not progress.is_idle:
                progress.idle_since = now

    def _begin(self, item: Item, now: float) -> None:
        """Pass a record to the handler threads.

        If the record's partition is new to the run, first make the client calls that a new partition needs.
        """
        if not self._workers.schedule.is_known(item):
            try:
                self._perform(self.progress.look())
            except BaseException:
                with self._workers.lock:  # the record is left, and read again later
                    self._workers.schedule.add(item, now)
                    self._workers.schedule.close((name_of(item),))
                raise
        self._workers.add(item, now)

    def revoke(self, places: Iterable[TopicPartition], *, lost: bool) -> None:
        """Skip waiting records of revoked partitions, wait for running handlers, and commit."""
        names = self.progress.close(places)
        if not lost and not self._workers.wait(
            lambda: not self.progress.is_at_work(names),
            self._events.bound_revocation(self._policy.revoke_timeout),
        ):
            log_unfinished(self._workers.schedule.working(names), "revoke_timeout", "member of the group")
        self._perform(self.progress.hand_over(names, lost=lost))

    def _end(self, seconds: float) -> None:
        """Stop calling the handler, commit the finished records, and seek back to the unfinished records.

        The run always seeks back, even if Ctrl-C interrupts the other steps. Without this seek, the next run
        would continue after the unfinished records, and commit later offsets.
        """
        try:
            self._finish(seconds)
        finally:
            self._perform(self.progress.go_back())
            self._events.discard(self.progress.left)

    def _finish(self, seconds: float) -> None:
        """End the handler threads, and commit the offsets of finished records, within ``seconds``."""
        deadline = time.monotonic() + seconds
        self._workers.end(deadline - seconds / 5)  # the rest is for the commit
        self._perform(self.progress.keep())
        # In a thread, because the call takes longer than ``left`` seconds if a broker goes away.
        left = max(0.0, deadline - time.monotonic())
        last = threading.Thread(target=self._perform, args=(self.progress.commit_last(left),), daemon=True)
        self.progress.is_away = True
        last.start()
        last.join(left)
