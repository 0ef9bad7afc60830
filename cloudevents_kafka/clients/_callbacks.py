"""`Callbacks`: calls functions of users after a report of the client, one after another.

A client calls its callbacks within a call of its own, such as ``poll``. If a user's function calls the client
from there, the process ends (confluent-kafka has one slot for each thread). So a report only adds functions
to a queue, and a thread calls them after its call of the client has returned. One thread at a time calls
them, in the order of the reports, and holds no lock for which another thread waits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

_SECONDS: Final = 0.05  # the longest wait of a thread for another that calls
_log: Final = logging.getLogger("cloudevents_kafka.deliveries")


class Callbacks:
    """The functions that are due; any thread adds them, and any thread serves them."""

    def __init__(self) -> None:
        self.due: deque[Callable[[], object]] = deque()
        self._turn = threading.Lock()
        self._thread: int | None = None  # that serves

    def is_busy(self) -> bool:
        """Return whether a function is due, or a thread calls one."""
        return bool(self.due) or self._turn.locked()

    def serve(self) -> None:
        """Call the functions that are due, unless another thread does; an error is logged."""
        while self.due and self._turn.acquire(blocking=False):
            self._thread = threading.get_ident()
            try:
                while self.due:
                    self._call(self.due.popleft())
            finally:
                self._thread = None
                self._turn.release()

    def finish(self, deadline: float | None) -> None:
        """Serve, or wait up to a deadline for the thread that serves; a callback itself does not wait."""
        while self._thread != threading.get_ident():
            self.serve()
            left = _SECONDS if deadline is None else min(_SECONDS, deadline - time.monotonic())
            if not self.is_busy() or left <= 0:
                return
            if self._turn.acquire(timeout=left):
                self._turn.release()

    @staticmethod
    def _call(function: Callable[[], object]) -> None:
        try:
            function()
        except Exception as error:  # noqa: BLE001  # a function of the user may raise any
            _log.error("a callback of a delivery has failed: %s", error, exc_info=error)
