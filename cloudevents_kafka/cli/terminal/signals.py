"""Ctrl-C and SIGTERM: a command finishes what it has in hand, and then ends.

The first signal only sets a flag, so that no record is cut in half; where a command
waits for input that may never come, it ends the wait. A second one ends the command
where it stands.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):  # as KeyboardInterrupt, which it stands for
    """A signal asked the command to end; ``exit_code`` is 128 and the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Interrupts:
    """Watches for signals while its block runs; does nothing outside the main thread."""

    def __init__(self) -> None:
        self._number = 0
        self._waiting = False
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether a signal asked the command to end."""
        return self._number != 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal end this block at once, by `Interrupted`."""
        self._waiting = True
        try:
            self.check()
            yield
        finally:
            self._waiting = False

    def check(self) -> None:
        """Raise `Interrupted` where a signal has come."""
        if self._number:
            raise Interrupted(self._number)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  # a handler gets it
        again = self.asked
        self._number = self._number or number
        if again or self._waiting:
            raise Interrupted(self._number)
