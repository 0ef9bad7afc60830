"""`OnlyLoop`: a consumer has one loop at a time, which is a run or a processor.

Records that another loop reads are not in the books of the first, which commits offsets after them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OnlyLoop:
    """The loop of a consumer, if one is on; ``name`` is None without one."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.thread = 0
        """The thread of the loop, which may read."""
        self._lock = threading.Lock()

    @contextmanager
    def begin(self, name: str) -> Iterator[None]:
        """Yield once, and let nothing else read meanwhile. Raises `RuntimeError` if a loop is on."""
        with self._lock:
            if self.name is not None:
                self._refuse(name)
            self.name, self.thread = name, threading.get_ident()
        try:
            yield
        finally:
            self.name = None

    def check(self, name: str) -> None:
        """Raise `RuntimeError` if a loop is on, and the current thread is not the one that reads for it."""
        if self.name is not None and threading.get_ident() != self.thread:
            self._refuse(name)

    def _refuse(self, name: str) -> None:
        raise RuntimeError(
            f"a consumer must have one loop at a time, got {name} while its {self.name} is on; "
            "make a consumer for each loop, or wait for the end of the first"
        )
