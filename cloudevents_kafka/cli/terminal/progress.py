"""A count on stderr while work goes on, where stderr is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self

_EVERY: Final = 0.2  # seconds


class Progress:
    """Shows how many ``things`` are done, on one line that goes away at the end."""

    def __init__(self, things: str, *, shown: bool = True) -> None:
        self._things = things
        self._shown = shown and sys.stderr.isatty()
        self._last = time.monotonic()
        self._dirty = False

    def show(self, done: int) -> None:
        """Show a count, not too often."""
        now = time.monotonic()
        if self._shown and now - self._last >= _EVERY:
            sys.stderr.write(f"\r{done:,} {self._things}")
            sys.stderr.flush()
            self._last = now
            self._dirty = True

    def end(self) -> None:
        """Take the line away."""
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._dirty = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
