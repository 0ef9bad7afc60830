"""`Turns`: one thread at a time works for all that wait, such as by polling a client for reports.

Its law:

1. While threads wait, only the thread that has the turn works. It wakes a thread whose wait it has ended.
2. A thread that waits takes the turn when it is free, for one piece of work after the other until its wait
   has ended, but leaves it to threads that ask for it.
3. A thread that stops waiting, or had the turn and does not wait, wakes one that waits, to take the turn.
4. No thread waits long for the turn, as work may wait for this thread: then it works, too.

Work and waits are short: signals are handled between them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, RLock
from typing import Final

Work = Callable[[float], int]
"""Work for up to some seconds; return how many waits may have ended."""

SECONDS: Final = 0.1  # the longest piece of work, and the longest wait
SHORT_SECONDS: Final = 0.01  # the first, as a thread that saw nobody wait may be working
_PAUSE_SECONDS: Final = 0.002  # between pieces of work that do not wait
_LONG_SECONDS: Final = 0.2


class Waiter:
    """A thread that waits, with the methods of a future that wake it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lock.acquire()

    def done(self) -> bool:
        """Return whether it was woken, and has not gone on yet."""
        return not self._lock.locked()

    def set_result(self, _: None) -> None:
        """Wake the thread."""
        with suppress(RuntimeError):  # another thread has woken it, too
            self._lock.release()

    def wait(self, seconds: float) -> None:
        """Wait until the thread is woken."""
        self._lock.acquire(timeout=seconds)


class Turns:
    """The turn, and the threads that wait."""

    def __init__(self) -> None:
        self.waiting: dict[Waiter, None] = {}  # an ordered set
        self._turn = RLock()  # work may call a function of the user, which waits or asks, too
        self._began = 0.0  # when the last turn began
        self._asking: list[None] = []  # an item for each thread that asks

    def offer(self, work: Work) -> None:
        """Work without waiting, unless another thread works."""
        if self._turn.acquire(blocking=False):
            try:
                self._do(work, 0)
            finally:
                self._pass_on()

    def ask(self, work: Work, seconds: float, patience: float) -> int:
        """Wait for the turn, work, and return the result."""
        self._asking.append(None)
        try:
            has_turn = self._turn.acquire(timeout=patience)
            return self._do(work, seconds) if has_turn else work(seconds)
        finally:
            self._asking.pop()
            self._pass_on()

    def wait(self, waiter: Waiter, work: Work, is_over: Callable[[], bool], deadline: float | None) -> bool:
        """Wait until something is over, or the deadline; return whether it is over."""
        longest = SHORT_SECONDS
        self.waiting[waiter] = None
        try:
            while not is_over():
                seconds = min(longest, seconds_to(deadline))
                if seconds < 0:
                    return False
                longest = SECONDS
                is_mine = self._turn._is_owned()  # type: ignore[attr-defined]  # noqa: SLF001  # as Condition asks
                if (self._asking and not is_mine) or not self._turn.acquire(blocking=False):
                    waiter.wait(seconds)
                    if not is_over() and time.monotonic() - self._began > _LONG_SECONDS:
                        work(0)
                elif not self._do(work, seconds) and time.monotonic() - self._began < _PAUSE_SECONDS:
                    waiter.wait(0 if is_over() else min(seconds, _PAUSE_SECONDS))
            return True
        finally:
            del self.waiting[waiter]
            self._pass_on()

    def _do(self, work: Work, seconds: float) -> int:
        """Work in the turn, which ends with it."""
        self._began = time.monotonic()
        try:
            return work(seconds)
        finally:
            self._turn.release()

    def _pass_on(self) -> None:
        """Wake one of the threads that wait, to take the turn if it is free."""
        with suppress(RuntimeError, StopIteration):  # another thread has changed the set, and passes on
            if self.waiting:
                next(iter(self.waiting)).set_result(None)


def seconds_to(deadline: float | None) -> float:
    """Return the time to a deadline, `SECONDS` at most."""
    return SECONDS if deadline is None else min(SECONDS, deadline - time.monotonic())
