"""`Sends`: counts the events that one call of a handler has sent, until all of them have arrived.

A context variable says which handler has sent an event. Sends of other threads and tasks do not count,
but sends of tasks that the handler creates do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_current: Final[ContextVar[Sends | None]] = ContextVar("cloudevents_kafka.sends", default=None)


class Sends:
    """The messages that a handler has sent; ``arrived`` is called when all are reported after `end`.

    Without ``arrived`` they are only counted, and the producer keeps their failures.
    """

    def __init__(self, arrived: Callable[[], object] | None = None) -> None:
        self.error: Exception | None = None
        self.number = 0
        self._arrived = arrived
        self._pending = 0
        self._ended = False
        self._lock = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the sends of the block. Yields once."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def end(self) -> bool:
        """Return whether all sends are reported when the handler returns; ``arrived`` is then not called."""
        with self._lock:
            self._ended = True
            return not self._pending

    def add(self) -> Sends | None:
        """Count another message; return the object that gets its report, or None if nothing waits for it."""
        self.number += 1
        if self._arrived is None:
            return None
        with self._lock:
            self._pending += 1
        return self

    def report(self, error: Exception | None) -> None:
        """Note the report of a message, or that it was not sent."""
        self.error = self.error or error
        with self._lock:
            self._pending -= 1
            is_last = self._ended and not self._pending
        if is_last and self._arrived is not None:
            self._arrived()


def current_sends() -> Sends | None:
    """Return the `Sends` of the current handler."""
    return _current.get()


def count_send() -> Sends | None:
    """Count a message of the current handler; return the object that gets its report, or None."""
    sends = _current.get()
    return None if sends is None else sends.add()
