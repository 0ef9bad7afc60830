"""Deadlines: one for a whole call, handed down to every step of it."""

from __future__ import annotations

import time
from typing import Final

from cloudevents_kafka.protocol.errors import DeadlineExceeded

LONGEST: Final = 2_000_000.0
"""The most seconds that end, 23 days: sockets and selectors count them in 31 bits of milliseconds."""


class Deadline:
    """A point in time that a call must not go beyond; None, below 0 or above `LONGEST` is never."""

    def __init__(self, seconds: float | None) -> None:
        """Begin to count."""
        ends = seconds is not None and 0 <= seconds <= LONGEST  # which NaN is not
        self.seconds: Final = seconds if ends else None
        self._end: Final = None if self.seconds is None else time.monotonic() + self.seconds

    def left(self) -> float | None:
        """Return the seconds that are left, 0 when it is over; None if it never is."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        """Tell whether the time is over."""
        return self.left() == 0

    def at_most(self, seconds: float) -> float:
        """Return the seconds that are left, or those given if they are fewer."""
        left = self.left()
        return seconds if left is None else min(left, seconds)

    def check(self, doing: str) -> None:
        """Raise `DeadlineExceeded` if the time is over; ``doing`` says what for."""
        if self.over():
            raise DeadlineExceeded(f"{doing}: not done within {self.seconds} s")

    def pause(self, seconds: float, doing: str) -> None:
        """Sleep, but not beyond the end; then `check`."""
        time.sleep(self.at_most(seconds))
        self.check(doing)
