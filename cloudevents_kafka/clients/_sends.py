"""`Sends`: counts the messages that a call of a handler sends, until the last of these messages has arrived.

A context variable shows which call of a handler has sent a message. Messages from other threads, and from
tasks outside the handler, are not counted. Messages from tasks that the handler creates are counted until the
handler has returned and all counted messages have arrived.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_current: Final[ContextVar[Sends | None]] = ContextVar("cloudevents_kafka.sends", default=None)


class Sends:
    """The messages that one call of a handler has sent.

    The call of the handler itself is counted like one more message, which the method `end` reports. When no
    message is pending any more, no further message is counted, so only one report is the last report. If the
    last report comes from `report`, not from `end`, the function ``arrived`` is called.

    If ``arrived`` is None, `Sends` only counts the messages, and the producer itself reports failed
    deliveries.
    """

    def __init__(self, arrived: Callable[[], object] | None = None) -> None:
        self.error: Exception | None = None
        self.number = 0
        self._arrived = arrived
        self._pending = 1  # the handler
        self._lock = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the messages that are sent in the block. Yields once."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def end(self) -> bool:
        """Return whether all messages of the handler call are already reported when the handler returns.

        If the result is True, the function ``arrived`` is never called.
        """
        with self._lock:
            self._pending -= 1
            return not self._pending

    def add(self) -> Sends | None:
        """Count a message; return the object to which its delivery must be reported, or None.

        The result is None if nothing waits for the delivery; the producer itself then reports a failed
        delivery.
        """
        self.number += 1
        if self._arrived is None:
            return None
        with self._lock:
            if not self._pending:
                return None
            self._pending += 1
        return self

    def report(self, error: Exception | None) -> None:
        """Store the error of a message, or None for a delivery; the message is then no longer pending."""
        self.error = self.error or error
        with self._lock:
            self._pending -= 1
            is_last = not self._pending
        if is_last and self._arrived is not None:
            self._arrived()


def current_sends() -> Sends | None:
    """Return the `Sends` of the handler call in which the current code runs, or None."""
    return _current.get()


def count_send() -> Sends | None:
    """Count a message of the current handler; return the object to report the message to, or None."""
    sends = _current.get()
    return None if sends is None else sends.add()
