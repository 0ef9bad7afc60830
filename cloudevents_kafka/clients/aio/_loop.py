"""Functions for an event loop: let other tasks run, await client calls, and run a function in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeVar

from cloudevents_kafka.clients._signals import stop_at_sigterm
from cloudevents_kafka.clients._steps import Ask, Steps
from cloudevents_kafka.clients.aio._call_thread import call_once

T = TypeVar("T")
_SECONDS: Final = 0.00025


class Turn:
    """The time that a coroutine may use before it lets other tasks run."""

    def __init__(self) -> None:
        self._end = 0.0

    def is_over(self) -> bool:
        """Return whether the coroutine has used up its time; if so, it must await `end`."""
        return time.perf_counter() > self._end

    async def end(self) -> None:
        """Let other tasks of the event loop run, and then begin to measure the time again."""
        await asyncio.sleep(0)
        self._end = time.perf_counter() + _SECONDS


async def perform(steps: Steps[T], answer: Callable[[Ask], Awaitable[Any]]) -> T:
    """Await the client calls that a generator of steps yields, and return the generator's result.

    `clients._steps.perform` makes the client calls of a generator in the current thread.
    """
    try:
        ask = next(steps)
        while True:
            try:
                result = await answer(ask)
            except Exception as error:  # noqa: BLE001  # the generator decides what to do
                ask = steps.throw(error)
            else:
                ask = steps.send(result)
    except StopIteration as end:
        returned: T = end.value
        return returned


async def not_cancelled(work: Awaitable[T]) -> T:
    """Return the result of a user's awaitable; if an awaited task was cancelled, raise an ordinary error.

    A user's awaitable may wait for a task that other code has cancelled. The cancellation of that other task
    does not cancel the current task.
    """
    try:
        return await work
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        reason = f"an awaited task was cancelled: {cancelled}".removesuffix(": ")
        raise concurrent.futures.CancelledError(reason) from cancelled


async def await_fully(work: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine up to its end, and only then let a cancellation of the current task take effect."""
    running = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    running.result()


async def run_in_thread(run: Callable[[], T], stop: Callable[[], object], name: str) -> T:
    """Call ``run`` in a thread and return its result; stop the run at SIGTERM or if the task is cancelled."""
    with stop_at_sigterm(stop, asyncio.get_running_loop()):
        running = call_once(partial(copy_context().run, run), name)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop()
            with suppress(Exception):  # the cancellation is raised
                await running
            raise
