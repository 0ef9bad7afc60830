"""`Sends`: counts the messages that one call of a handler has sent, until all these messages have arrived.

A context variable shows which call of a handler has sent a message. Messages from other threads and tasks are
not counted. Messages from tasks that the handler creates are counted until the handler has returned and all
counted messages have arrived.
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

    The handler counts as one message, which `end` reports. When no message is pending any more, no further
    message is added, so the last report happens only once. If the last report is not `end`, ``arrived`` is
    called.

    Without ``arrived``, the messages are only counted, and the producer reports their failures itself.
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
        """Return whether all messages are reported when the handler returns.

        If the result is True, ``arrived`` is not called.
        """
        with self._lock:
            self._pending -= 1
            return not self._pending

    def add(self) -> Sends | None:
        """Count a message; return the object to which the message must be reported, or None.

        The result is None if nothing waits for the message; the producer then reports a failure itself.
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
        """Remember that a message was reported, or was not sent."""
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
