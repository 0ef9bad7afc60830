"""`Tasks`: the tasks of an event loop that handle the records of a run."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from contextvars import copy_context
from functools import partial
from typing import Any

from cloudevents_kafka.binding import Undecodable
from cloudevents_kafka.clients._policy import RunPolicy
from cloudevents_kafka.clients._schedule import Task
from cloudevents_kafka.clients._sends import Sends
from cloudevents_kafka.clients._workers import Workers
from cloudevents_kafka.clients.aio._call_thread import call_once
from cloudevents_kafka.clients.aio._loop import not_cancelled
from cloudevents_kafka.clients.dead_letters import DeadLetters, deliver, deliver_awaited


class Tasks(Workers):
    """Workers that call the handler in tasks; at most ``concurrency`` of these tasks run at the same time."""

    def __init__(
        self, policy: RunPolicy, handler: Callable[[Any], Awaitable[object]], *, counts_sends: bool
    ) -> None:
        super().__init__(policy, nullcontext(), counts_sends=counts_sends)
        self.is_over = False
        """Whether the run has ended, so that the run waits for no further record."""
        self._handler = handler
        self._free = policy.concurrency
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()  # of the task that calls `run`, not of the task that calls `wake`
        self._scheduled = False  # whether the loop is going to call `_begin_ready`
        self._timer: asyncio.TimerHandle | None = None  # for the next try
        self._tasks: set[asyncio.Task[None]] = set()  # the loop has only weak references to its tasks
        self._waiting: dict[asyncio.Future[None], bool] = {}  # True: only until more may be read

    def wake(self) -> None:
        """Let the event loop look for records that are ready to be handled."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._begin_ready)

    def note_change(self, *, has_room: bool = False) -> None:
        """Wake the tasks that wait until records are finished or until more records may be read.

        Tasks that wait until more records may be read are woken only if ``has_room`` is True.
        """
        for waiter, for_room in self._waiting.items():
            if (has_room or not for_room) and not waiter.done():
                waiter.set_result(None)

    def report(self, task: Task, sends: Sends) -> None:
        """Let the event loop continue with a record; the producer's polling thread may call this method."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._reported, task, sends)

    async def wait(
        self, condition: Callable[[], bool], seconds: float | None, *, for_room: bool = False
    ) -> bool:
        """Wait up to ``seconds`` until ``condition()`` is true; return whether it is true."""
        deadline = None if seconds is None else self._loop.time() + seconds
        while not condition():
            left = None if deadline is None else deadline - self._loop.time()
            if left is not None and left <= 0:
                return False
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiting[waiter] = for_room
            try:
                await asyncio.wait((waiter,), timeout=left)
            finally:
                del self._waiting[waiter]
        return True

    def has(self, task: asyncio.Task[Any] | None) -> bool:
        """Return whether ``task`` is one of the tasks that handle records."""
        return task in self._tasks

    async def end(self) -> None:
        """Cancel handlers that have not returned in time, and wait a moment until their tasks have ended."""
        self.is_over = True
        self.note_change(has_room=True)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.policy.stop_timeout / 5)

    def _begin_ready(self) -> None:
        """Handle records that are ready or due for another try, at most ``concurrency`` at the same time."""
        self._scheduled = False
        now = time.monotonic()
        while self._free and not self.cancelled:
            task = self.schedule.next(now)
            if task is None:
                break
            self._free -= 1
            running = self._loop.create_task(self._handle(task), context=self._context.copy())
            self._tasks.add(running)
            running.add_done_callback(self._tasks.discard)
        due = None if self.cancelled else self.schedule.next_try()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else self._loop.call_later(max(0.0, due - now), self._begin_ready)

    async def _handle(self, task: Task) -> None:
        """Call the handler for a record, or react to a failed delivery of its messages; raise no error."""
        error = task.error
        try:
            if error is None:
                error = await self._attempt(task)
            if error is not None and (action := self._next_action(task, error)) is not None:
                if isinstance(action, DeadLetters):
                    await not_cancelled(self._deliver(action, task, error))
                self._set_aside(task, error, action)
        except asyncio.CancelledError:
            self._leave_cancelled(task, error)
        except BaseException as failure:  # noqa: BLE001  # run() raises it
            self._fail(failure, task, error)
        finally:
            self._free += 1
            self.wake()

    def _leave_cancelled(self, task: Task, error: Exception | None) -> None:
        """Leave a cancelled task's record unfinished; end the run, unless `end` has cancelled the task."""
        if self.is_over:
            self.schedule.leave(task)
            self.note_change()
        else:
            failure = concurrent.futures.CancelledError("the task of a handler was cancelled")
            self._fail(failure, task, error)

    async def _attempt(self, task: Task) -> Exception | None:
        """Call the handler; return the error of the record, or None if the handler has returned."""
        item, sends = self._begin(task)
        if isinstance(item, Undecodable):
            return item.error
        try:
            with self._around(item, sends):
                await not_cancelled(self._handler(item))
        except Exception as error:  # noqa: BLE001  # a user's function may raise any error
            return error
        self._returned(task, sends)
        return None

    async def _deliver(self, letters: DeadLetters, task: Task, error: Exception) -> None:
        if letters.is_async:
            await deliver_awaited(letters, task.item, error, attempt=task.attempt)
        else:
            send = partial(deliver, letters, task.item, error, attempt=task.attempt)
            await call_once(send, "cloudevents_kafka.dead_letters")
