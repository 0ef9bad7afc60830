"""A running count on stderr, if stderr is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self

_INTERVAL: Final = 0.2  # seconds between updates


class Progress:
    """A line such as ``2,000 delivered`` that is updated in place and erased at the end."""

    def __init__(self, label: str, *, enabled: bool = True) -> None:
        self._label = label
        self._enabled = enabled and sys.stderr.isatty()
        self._updated = time.monotonic()
        self._on_screen = False

    def update(self, done: int) -> None:
        """Show a count, unless the last one is too recent."""
        now = time.monotonic()
        if self._enabled and now - self._updated >= _INTERVAL:
            sys.stderr.write(f"\r{done:,} {self._label}")
            sys.stderr.flush()
            self._updated = now
            self._on_screen = True

    def clear(self) -> None:
        """Erase the line."""
        if self._on_screen:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._on_screen = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
