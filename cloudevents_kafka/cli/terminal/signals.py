"""Ctrl-C and SIGTERM: a command finishes the record in progress, and then ends.

The first signal only sets a flag, so that no record is written in part. `Interrupted` is raised immediately
at a second signal. It is also raised immediately if a signal arrives in a block that waits for input or for a
broker.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):  # a BaseException as KeyboardInterrupt is
    """A signal has ended the command; ``exit_code`` is 128 plus the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Interrupts:
    """A context manager that handles signals in its block.

    Outside the main thread, the context manager has no effect.
    """

    def __init__(self) -> None:
        self._number = 0
        self._waiting = False
        self._previous: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether a signal has arrived in the block."""
        return self._number != 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Return a context manager for a block in which a signal immediately raises `Interrupted`."""
        self._waiting = True
        try:
            self.check()
            yield
        finally:
            self._waiting = False

    def check(self, *signals: int) -> None:
        """Raise `Interrupted` if one of ``signals`` has arrived; by default, any signal counts."""
        if self._number and (self._number in signals or not signals):
            raise Interrupted(self._number)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  # the signature of a handler
        repeated = self.requested
        self._number = self._number or number
        if repeated or self._waiting:
            raise Interrupted(self._number)
