"""`Deadline`: one for a whole call, passed to each of its steps."""

from __future__ import annotations

import time
from typing import Final

from cloudevents_kafka.protocol.errors import DeadlineExceeded

MAX_SECONDS: Final = 2_000_000.0
"""The longest deadline, 23 days: sockets and selectors count milliseconds in 31 bits."""


class Deadline:
    """A point in time at which a call fails; None, below 0 or above `MAX_SECONDS` is never."""

    def __init__(self, seconds: float | None) -> None:
        """Set the deadline, ``seconds`` from now."""
        finite = seconds is not None and 0 <= seconds <= MAX_SECONDS  # False for NaN
        self.seconds: Final = seconds if finite else None
        self._end: Final = None if self.seconds is None else time.monotonic() + self.seconds

    def remaining(self) -> float | None:
        """Return the remaining seconds, 0 once expired; None if the deadline is never."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def expired(self) -> bool:
        """Return whether the deadline has passed."""
        return self.remaining() == 0

    def at_most(self, seconds: float) -> float:
        """Return the remaining seconds, ``seconds`` at most."""
        remaining = self.remaining()
        return seconds if remaining is None else min(remaining, seconds)

    def check(self, action: str) -> None:
        """Raise `DeadlineExceeded`, with ``action`` in its text, if the deadline has passed."""
        if self.expired():
            raise DeadlineExceeded(f"{action}: not done within {self.seconds} s")
