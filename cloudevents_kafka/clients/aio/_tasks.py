"""`Tasks`: the tasks of an event loop that handle the records of a run.

A thread reads and commits, as for threads; see `clients._run`. The loop calls the handler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

from cloudevents_kafka.binding import Decoded
from cloudevents_kafka.clients._policy import RunPolicy
from cloudevents_kafka.clients._schedule import Task
from cloudevents_kafka.clients._workers import Workers


class Tasks(Workers):
    """Workers that are tasks, of which ``concurrency`` handle records at the same time."""

    def __init__(
        self, policy: RunPolicy, handler: Callable[[Any], Awaitable[object]], *, counts_sends: bool
    ) -> None:
        super().__init__(policy, counts_sends=counts_sends)
        self._handler = handler
        self._free = policy.concurrency
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()  # of the task that runs, and not of the one that wakes this
        self._scheduled = False  # whether the loop is going to begin records
        self._timer: asyncio.TimerHandle | None = None  # at the next try
        self._tasks: set[asyncio.Task[None]] = set()  # the loop has weak references only

    def wake(self) -> None:
        """Let the loop look for records that are ready; any thread may call it."""
        if not self._scheduled and not self._loop.is_closed():
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        """Begin the records that are ready or due, up to the number of free places."""
        with self.lock:
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
            self._ended.notify_all()  # what was dropped is not ready any more
            due = None if self.cancelled else self.schedule.next_try()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else self._loop.call_later(max(0.0, due - now), self._begin)

    def has(self, task: asyncio.Task[Any] | None) -> bool:
        """Return whether a task handles a record."""
        return task in self._tasks

    async def cancel_all(self) -> None:
        """Cancel the handlers that have not returned in time, and wait a moment for them."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.policy.stop_timeout / 5)

    async def _handle(self, task: Task) -> None:
        try:
            await super()._handle(task)
        finally:
            with self.lock:
                self._free += 1
                self.wake()

    async def _call(self, item: Decoded) -> None:
        await self._handler(item)

    async def _deliver(self, send: Callable[..., None]) -> None:
        await asyncio.to_thread(send, loop=self._loop)
