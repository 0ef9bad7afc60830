"""What `AsyncEventConsumer.run` and `AsyncEventProcessor.run` need: a loop in a thread, and its end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from cloudevents_kafka.clients._run import stop_at_sigterm

T = TypeVar("T")


def check_coroutine(handler: object) -> None:
    """Raise `TypeError` unless a handler is a coroutine function, or an object whose call is one."""
    call = getattr(handler, "__call__", None)  # noqa: B004  # it is inspected
    if not any(map(inspect.iscoroutinefunction, (handler, call))):
        raise TypeError(f"handler must be a coroutine function, got {type(handler).__name__}")


async def run_in_thread(run: Callable[[], T], stop: Callable[[], object]) -> T:
    """Return what a run returns in a thread; stop it at SIGTERM, or if the task is cancelled."""
    loop = asyncio.get_running_loop()
    with stop_at_sigterm(stop, loop):
        running = loop.run_in_executor(None, run)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop()
            with suppress(Exception):  # the cancellation is raised
                await running
            raise
