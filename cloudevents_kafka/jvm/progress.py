"""Progress on stderr: one line that moves on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Self, TextIO

# In a log file or CI a line each two seconds shows life without filling the page.
_QUIET_SECONDS = 2.0


class Progress:
    """Tell what is going on; a context manager that leaves the line clean."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._moving = self._stream.isatty()
        self._told = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._moving:
            self._write("\r\x1b[K")

    def step(self, text: str) -> None:
        """Show a passing step: always on a terminal, seldom elsewhere."""
        if self._moving:
            self._write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        elif time.monotonic() - self._told >= _QUIET_SECONDS:
            self.say(text)

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self._told = time.monotonic()
        self._write(f"\r\x1b[K{text}\n" if self._moving else f"{text}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
