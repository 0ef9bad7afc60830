"""`Turn`: how long a coroutine runs before it lets others run."""

from __future__ import annotations

import asyncio
import time
from typing import Final

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
