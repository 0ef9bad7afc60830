"""What the clients do with an event loop: let others run, and wait for what runs in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from cloudevents_kafka.clients._run import stop_at_sigterm

T = TypeVar("T")
_SECONDS: Final = 0.00025


class Turn:
    """The time that a coroutine may run on, although it need not wait."""

    def __init__(self) -> None:
        self._end = 0.0

    def is_over(self) -> bool:
        """Return whether the turn has ended; then await `end`."""
        return time.perf_counter() > self._end

    async def end(self) -> None:
        """Let other tasks run, and begin the next turn."""
        await asyncio.sleep(0)
        self._end = time.perf_counter() + _SECONDS


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
