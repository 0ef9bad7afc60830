"""Deadlines of whole calls, pauses between retries, and the errors after which a retry may succeed."""

from __future__ import annotations

import time
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, Disconnected, ProtocolError

MAX_SECONDS: Final = 2_000_000.0
"""The longest deadline, 23 days: sockets and selectors count milliseconds in 31 bits."""

FIRST_PAUSE: Final = 0.05
MAX_PAUSE: Final = 1.0


class Deadline:
    """A point in time at which a call fails.

    There is no deadline if ``seconds`` is None, below 0 or above `MAX_SECONDS`.
    """

    def __init__(self, seconds: float | None) -> None:
        finite = seconds is not None and 0 <= seconds <= MAX_SECONDS  # False for NaN
        self.seconds: Final = seconds if finite else None
        self._end: Final = None if self.seconds is None else time.monotonic() + self.seconds

    def remaining(self) -> float | None:
        """Return the seconds until the deadline, 0 after the deadline, or None if there is no deadline."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def expired(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def at_most(self, seconds: float) -> float:
        """Return the seconds until the deadline, but at most ``seconds``."""
        remaining = self.remaining()
        return seconds if remaining is None else min(remaining, seconds)

    def check(self, action: str) -> None:
        """Raise `DeadlineExceeded`, with ``action`` in its text, if the deadline has passed."""
        if self.expired():
            raise DeadlineExceeded(f"{action}: not done within {self.seconds} s")


def is_retriable(error: ProtocolError, *, unknown_errors: bool = False) -> bool:
    """Return whether a request that failed with this error may succeed later, with new metadata.

    If ``unknown_errors`` is true, UNKNOWN_SERVER_ERROR is retriable, too: brokers of 0.8 send this error
    while a partition is created or moved.
    """
    if isinstance(error, BrokerError):
        return error.retriable or (unknown_errors and error.code == ErrorCode.UNKNOWN_SERVER_ERROR)
    return isinstance(error, Disconnected | DeadlineExceeded)
