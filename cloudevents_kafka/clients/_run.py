"""The loop of `EventConsumer.run`: it reads, passes records to threads that handle them, and commits.

One thread, the caller's, reads and commits. Others call the handler, for the records that `Schedule` returns.
An offset is committed when all records before it are done, so a record that was unfinished when the process
ended is handled again by the next one.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from cloudevents_kafka.clients._commits import Commits
from cloudevents_kafka.clients._policy import RunResult, fields_of, read_or_refuse
from cloudevents_kafka.clients._protocols import member_id, suppress_client_errors
from cloudevents_kafka.clients._schedule import Item, PartitionName, name_of, places_of
from cloudevents_kafka.clients._workers import PAUSE_SECONDS, Workers, log_unfinished
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from confluent_kafka import Consumer, TopicPartition

_POLL_SECONDS: Final = 0.1
_COMMIT_SECONDS: Final = 1.0  # between two commits
_REVOKE_SECONDS: Final = 10.0  # for the commit of partitions that are revoked
_log: Final = logging.getLogger("cloudevents_kafka.run")


class Events(Protocol):
    """The attributes of `EventConsumer` that a run uses."""

    consumer: Any
    is_subscribed: bool

    @property
    def stopped(self) -> bool: ...
    def poll(self, timeout: float) -> Item | None: ...
    def seek(self, to: TopicPartition) -> None: ...
    def stop(self) -> None: ...


class Run:
    """One call of `EventConsumer.run`, with its consumer, the Kafka client and the threads."""

    def __init__(self, events: Events, workers: Workers, before: Workers | None = None) -> None:
        self._events = events
        self._before = before
        self._client: Consumer = events.consumer
        self._policy = workers.policy
        self._workers = workers
        self._schedule = workers.schedule
        self._commits = Commits(self._client, workers.schedule, workers.lock, workers.policy.observed)
        self._assigned: list[TopicPartition] = []
        self._paused: set[PartitionName] = set()  # by this run; librdkafka returns no list of them
        self._has_warned = events.is_subscribed
        self.left: list[TopicPartition] = []
        """Where records begin that are not done, after the run."""
        self.is_away = False
        """Whether the group has left the last commit without an answer."""
        self.closes = False
        """Whether the consumer is closed when the run has ended, and has committed what is done."""
        self.ended = threading.Event()
        self.threads = {threading.current_thread(), *workers.threads}
        """Those that must not wait for the end of the run."""

    def handle_all(self) -> RunResult:
        """Handle records until the end of the run, as `EventConsumer.run` says, and return the counts."""
        with stop_at_sigterm(self._events.stop):
            try:
                self._wait_for_handlers()
                self._policy.check_topics(self._client.assignment())
                self._read(self._policy.idle_timeout)
            finally:
                self._end(self._policy.stop_timeout)
        return self._workers.result()

    def _wait_for_handlers(self) -> None:
        """Wait for what an earlier run has left in work: its records would be handled twice at once."""
        if self._before is not None and not self._before.wait_for_handlers(self._policy.stop_timeout):
            raise RuntimeError(
                "the handlers of an earlier run must return before the next run begins, got "
                f"{pluralize(self._before.schedule.in_work, 'record')} still in work; "
                "bound what the handler waits for, or end the process"
            )

    def _read(self, idle_timeout: float | None) -> None:
        """Read records while there is room for them, and commit what is done."""
        idle_since = committed = time.monotonic()
        while not self._events.stopped and not self._workers.cancelled:
            now = time.monotonic()
            serves = now - committed >= _COMMIT_SECONDS  # the group, too, while none is to be read
            if serves:
                self._commit(now)
                committed = now
            self._pause()
            item, may_read = None, self._may_read()
            if may_read or serves:
                item = read_or_refuse(partial(self._events.poll, _POLL_SECONDS if may_read else 0))
            if item is not None:
                self._begin(item, now)
            elif not self._is_idle():
                if may_read:  # a real client has waited; a fake does not
                    self._workers.wait(self._is_idle, PAUSE_SECONDS)
                else:
                    self._workers.wait_to_read(self._may_read, _POLL_SECONDS)
            elif idle_timeout is not None and now - idle_since >= idle_timeout:
                return
            if item is not None or not self._is_idle():
                idle_since = now

    def _is_idle(self) -> bool:
        return self._schedule.is_idle

    def _may_read(self) -> bool:
        return self._schedule.may_read(len(self._assigned))

    def _begin(self, item: Item, now: float) -> None:
        """Pass a record that was read to the threads, after the checks of a new partition."""
        if not self._schedule.is_known(item):  # before it is handled: the group's offset is not ours yet
            try:
                self._assigned = self._client.assignment()
                self._policy.check_topics(self._assigned)
                self._schedule.divide(len(self._assigned))
                self._commits.look(self._assigned, _COMMIT_SECONDS)
            except BaseException:
                with self._workers.lock:  # it is left, and read again
                    self._schedule.add(item, now)
                    self._schedule.close((name_of(item),))
                raise
            if not self._has_warned and member_id(self._client):
                self._has_warned = True
                _log.warning("%s", _NOT_SUBSCRIBED)
        self._workers.add(item, now)

    def _pause(self) -> None:
        """Pause the partitions that are full, and resume those that are not full any more."""
        full = self._schedule.full
        if not full and not self._paused:
            return
        with self._workers.lock:
            full = set(full)
        if more := full - self._paused:
            self._client.pause(places_of(more))
        if less := self._paused - full:
            with suppress_client_errors():  # the partition was revoked
                self._client.resume(places_of(less))
        self._paused = full

    def _commit(self, now: float) -> None:
        """Commit what is done of the partitions that are assigned. Raises `ConsumeError`, `ValueError`."""
        self._assigned = self._client.assignment()
        self._policy.check_topics(self._assigned)
        before = -1.0 if self._policy.max_age is None else now - self._policy.max_age
        with self._workers.lock:
            self._schedule.keep(self._assigned)
            self._schedule.divide(len(self._assigned))
            old = list(self._schedule.find_old(before))
        for task in old:
            _log.warning(
                "%s is unfinished after %.0f s, in try %d; offsets after it are not committed",
                *(task.item.record.where, now - task.began, task.attempt),
                extra=fields_of(task.item, task.attempt),
            )
        self._commits.commit(_COMMIT_SECONDS)

    def revoke(self, places: Iterable[TopicPartition], *, lost: bool) -> None:
        """Begin no other record of partitions that are revoked, wait for those in work, commit what is done.

        Of partitions that are ``lost`` another member has the records already: nothing is committed.
        """
        names = {(place.topic, place.partition) for place in places}
        with self._workers.lock:
            self._schedule.close(names)
        if not lost:
            if not self._workers.wait(lambda: not self._schedule.working(names), self._policy.revoke_timeout):
                log_unfinished(self._schedule.working(names), "revoke_timeout", "member of the group")
            self._commits.commit(_REVOKE_SECONDS, names=names)
        with self._workers.lock:
            self._schedule.forget(names)
        self._pause()  # not any more: the client would keep the pause when the partition comes back

    def _end(self, seconds: float) -> None:
        """End the threads and commit what is done, within ``seconds``."""
        deadline = time.monotonic() + seconds
        self._workers.end(deadline - seconds / 5)  # the rest is for the commit
        with self._workers.lock:
            self._schedule.keep(self._client.assignment())
        # In a thread: a broker that goes away would make the call longer than the bound.
        left = max(0.0, deadline - time.monotonic())
        # While the members of a group join again, a broker answers a member's questions late.
        last = threading.Thread(target=self._commit_last, args=(left * 0.8,), daemon=True)
        self.is_away = True
        last.start()
        last.join(left)
        self._go_back()

    def _commit_last(self, seconds: float) -> None:
        self.is_away = not self._commits.commit(seconds, last=True)

    def _go_back(self) -> None:
        """Set unfinished records back, to be read by this consumer, or by the group after it is closed."""
        with self._workers.lock:
            self.left = self._schedule.left()
        for place in self.left:
            with suppress_client_errors():  # the partition was revoked
                self._events.seek(place)
        if self._paused:
            with suppress_client_errors():
                self._client.resume(places_of(self._paused))


@contextmanager
def stop_at_sigterm(stop: Callable[[], object], loop: AbstractEventLoop | None = None) -> Iterator[None]:
    """Yield once; stop at SIGTERM, unless the program has a handler of its own, which may call ``stop``.

    Only the main thread can. A ``loop`` that runs in it calls ``stop``, as it may be asleep at the signal.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    if loop is None:
        signal.signal(signal.SIGTERM, lambda *_: stop())
    else:
        loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if loop is not None:
            loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


_NOT_SUBSCRIBED: Final = (
    "the consumer was subscribed on its client, so records that were read before a rebalance are handled by "
    "two members; subscribe by EventConsumer(…, topics=[…]) or events.subscribe([…])"
)
