"""`Workers`: call the handler for the records of a run; the subclass `Threads` calls it in threads."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.binding import Undecodable
from cloudevents_kafka.clients._places import Item
from cloudevents_kafka.clients._policy import Action, RunPolicy, RunResult, log_outcome, note_failure
from cloudevents_kafka.clients._schedule import Schedule, Task
from cloudevents_kafka.clients._sends import Sends
from cloudevents_kafka.clients.dead_letters import DeadLetters, deliver
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from cloudevents_kafka.clients.producer import EventProducer

PAUSE_SECONDS: Final = 0.002
"""The pause, in seconds, between calls of a client that does not wait, such as a fake client."""
_log: Final = logging.getLogger("cloudevents_kafka.run")


class Workers(ABC):
    """The base class of workers, which owns the schedule of records, its lock, and the counts of the run.

    If the attribute ``cancelled`` is True, the run must end, and the handler is called for no further record.
    The subclasses, `Threads` and the `Tasks` of asyncio, call the handler and wait.
    """

    def __init__(
        self, policy: RunPolicy, lock: AbstractContextManager[object], *, counts_sends: bool
    ) -> None:
        self.policy = policy
        self.schedule = Schedule(policy.max_ahead, policy.max_bytes)
        self.lock = lock
        self.counts = RunResult()
        self.cancelled = False
        self.error: BaseException | None = None
        self._counts_sends = counts_sends

    @abstractmethod
    def wake(self) -> None:
        """Look for a record to handle now, for the first time or again; the caller must hold the lock."""

    @abstractmethod
    def note_change(self, *, has_room: bool = False) -> None:
        """Wake threads or tasks that wait until a record is finished, or until a partition may be read again.

        The caller of this method must hold the lock.
        """

    def report(self, task: Task, sends: Sends) -> None:
        """Continue with a record when the last message that its handler has sent was delivered or failed.

        Any thread may call this method.
        """
        self._reported(task, sends)

    def add(self, item: Item, now: float) -> None:
        """Add a record that was read to the schedule."""
        with self.lock:
            self.schedule.add(item, now)
            self.wake()

    def _begin(self, task: Task) -> tuple[Item, Sends | None]:
        """Return the record to handle, and a `Sends` (None if the run does not wait for deliveries)."""
        if task.attempt > 1:
            task.item = self.policy.read_again(task.item)
        if not self._counts_sends:
            return task.item, None
        sends = Sends(lambda: self.report(task, sends))
        return task.item, sends

    def _around(self, item: Item, sends: Sends | None) -> AbstractContextManager[object]:
        """Return the context manager in which the handler is called."""
        handling = self.policy.handling(item)
        return handling if sends is None else _counted(sends, handling)

    def _returned(self, task: Task, sends: Sends | None) -> None:
        """Finish a record whose handler has returned, or let the record wait for delivery reports."""
        if sends is None:
            self._end(task)
            return
        if sends.end():
            self._reported(task, sends)

    def _reported(self, task: Task, sends: Sends) -> None:
        """Finish a record, or mark it as failed, when all messages that its handler has sent are reported."""
        with self.lock:
            if sends.error is not None:
                self.schedule.fail(task, sends.error)
                self.note_change()
                self.wake()
            else:
                self._end(task)

    def _next_action(self, task: Task, error: Exception) -> Action | None:
        """Return the action for a failed record, or None if the handler is called with the record again.

        Raises the record's error if this error must end the run.
        """
        seconds = self.policy.next_try(task.item, task.attempt, error)
        if seconds is None:
            return self.policy.action(task.item, error)
        with self.lock:
            self.counts.retried += 1
            self.schedule.wait(task, time.monotonic() + seconds)
            self.note_change()
            self.wake()
        return None

    def _set_aside(self, task: Task, error: Exception, action: Action) -> None:
        """Finish a record that is skipped, or whose dead letter was delivered."""
        self.policy.note_outcome(task.item, task.attempt, error, action, time.monotonic() - task.began)
        with self.lock:
            log_outcome(task.item, task.attempt, error, action, self.counts)
            self._leave(task)

    def _fail(self, failure: BaseException, task: Task, error: Exception | None) -> None:
        """End the run because of an error, such as SystemExit in a handler; the record stays unfinished."""
        note_failure(failure, task.item, task.attempt, error)
        with self.lock:
            self.error = self.error or failure
            self.schedule.leave(task)
        self.cancel()

    def _end(self, task: Task) -> None:
        with self.lock:
            self.counts.handled += 1
            self._leave(task)

    def _leave(self, task: Task) -> None:
        self.note_change(has_room=self.schedule.end(task, time.monotonic()))
        self.wake()

    def cancel(self) -> None:
        """Let the run end: no further record is handled."""
        with self.lock:
            self.cancelled = True
            self.note_change(has_room=True)
            self.wake()

    def result(self) -> RunResult:
        """Return the counts of the run, or raise the error that has ended the run."""
        if self.error is not None:
            raise self.error
        return self.counts


@contextmanager
def _counted(sends: Sends, handling: AbstractContextManager[object]) -> Iterator[None]:
    with sends.counted(), handling:
        yield


class Threads(Workers):
    """Workers that call the handler in daemon threads, which end with the process even if a handler hangs."""

    def __init__(
        self, policy: RunPolicy, handler: Callable[[Any], object], producer: EventProducer[Any] | None
    ) -> None:
        lock = threading.RLock()
        super().__init__(policy, lock, counts_sends=producer is not None)
        self._handler = handler
        self._context = copy_context()  # of the thread that calls `run`
        self._work = threading.Condition(lock)  # a record may be ready
        self._ended = threading.Condition(lock)  # a record is done, or waits for another try
        self._waiting = 0  # how many threads each of these records must wake
        loops = [self._handle_all] * policy.concurrency
        if producer is not None:
            producer.count_sends()
        self.threads = [
            threading.Thread(target=loop, name="cloudevents_kafka.run", daemon=True) for loop in loops
        ]
        for thread in self.threads:
            thread.start()

    def wake(self) -> None:
        """Wake one handler thread; if the run must end, wake all handler threads."""
        if self.cancelled:
            self._work.notify_all()
        else:
            self._work.notify()

    def note_change(self, *, has_room: bool = False) -> None:
        """Wake the threads that wait until records are finished or until a partition may be read.

        Threads in `wait_to_read` are woken only if ``has_room`` is True, or if another thread waits for a
        condition.
        """
        if has_room or self._waiting:
            self._ended.notify_all()

    def wait(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        """Wait up to ``seconds`` until ``condition()`` is true; return whether it is true."""
        with self.lock:
            return self._wait(lambda: self.cancelled or condition(), seconds) and condition()

    def _wait(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        with self.lock:
            self._waiting += 1
            try:
                return self._ended.wait_for(condition, seconds)
            finally:
                self._waiting -= 1

    def wait_to_read(self, may_read: Callable[[], bool], seconds: float) -> None:
        """Wait up to ``seconds`` until a partition may be read again."""
        with self.lock:
            if not self.cancelled and not may_read():
                self._ended.wait(seconds)

    def wait_for_handlers(self, seconds: float) -> bool:
        """Wait up to ``seconds`` until all handlers have returned; return whether they have returned."""
        return self._wait(lambda: not self.schedule.in_work, seconds)

    def end(self, deadline: float) -> None:
        """Stop passing records to the handler, and wait until ``deadline`` for the running handlers."""
        self.cancel()
        if not self.wait_for_handlers(deadline - time.monotonic()):
            log_unfinished(len(self.schedule.in_work), "stop_timeout", "process")

    def _handle_all(self) -> None:
        while (task := self._take()) is not None:
            self._context.copy().run(self._handle, task)

    def _handle(self, task: Task) -> None:
        """Call the handler for a record, or react to a failed delivery of its messages; raise no error."""
        error = task.error
        try:
            if error is None:
                error = self._attempt(task)
            if error is not None and (action := self._next_action(task, error)) is not None:
                if isinstance(action, DeadLetters):
                    deliver(action, task.item, error, attempt=task.attempt)
                self._set_aside(task, error, action)
        except BaseException as failure:  # noqa: BLE001  # run() raises it
            self._fail(failure, task, error)

    def _attempt(self, task: Task) -> Exception | None:
        """Call the handler; return the error of the record, or None if the handler has returned."""
        item, sends = self._begin(task)
        if isinstance(item, Undecodable):
            return item.error
        try:
            with self._around(item, sends):
                self._handler(item)
        except Exception as error:  # noqa: BLE001  # a user's function may raise any error
            return error
        self._returned(task, sends)
        return None

    def _take(self) -> Task | None:
        """Wait until a record is ready, and return the record; return None at the end of the run."""
        with self.lock:
            while not self.cancelled:
                now = time.monotonic()
                task = self.schedule.next(now)
                if task is not None:
                    if self.schedule.is_ready:
                        self._work.notify()
                    return task
                due = self.schedule.next_try()
                self._work.wait(None if due is None else max(0.0, due - now))
            return None


def log_unfinished(number: int, bound: str, next_one: str) -> None:
    """Log that records were not handled in time, and which member or process handles them again."""
    records, them = pluralize(number, "record was", "records were"), "it" if number == 1 else "them"
    text = "%s still unfinished after %s, and the next %s handles %s again"
    _log.warning(text, records, bound, next_one, them)
