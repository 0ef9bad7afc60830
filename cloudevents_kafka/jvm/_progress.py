"""Shows progress on stderr: one line that is rewritten on a terminal, else a line every two seconds."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Final, Self, TextIO

_INTERVAL: Final = 2.0  # seconds between the steps in a log file


class Progress:
    """A context manager that shows progress, and clears the terminal's line at the end."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._last_line_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._is_terminal:
            self._write("\r\x1b[K")

    def update(self, text: str) -> None:
        """Show a step: on a terminal, each step is shown; elsewhere, one step every two seconds."""
        if self._is_terminal:
            self._write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        elif time.monotonic() - self._last_line_at >= _INTERVAL:
            self.log(text)

    def log(self, text: str) -> None:
        """Write a line that later steps do not overwrite."""
        self._last_line_at = time.monotonic()
        self._write(f"\r\x1b[K{text}\n" if self._is_terminal else f"{text}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
