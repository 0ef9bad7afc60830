"""`Callbacks`: calls functions of the user, one at a time, after the Kafka client has reported a delivery.

A Kafka client calls its callbacks while one of its methods, such as ``poll``, is running. If a user's
function called the client from such a callback, the process would end (confluent-kafka stores the state of
only one call for each thread). Therefore, a delivery report only adds functions to a queue. A thread calls
these functions after its call of the client has returned. One thread at a time calls the queued functions, in
the order of the reports. Any thread may call a queued function. If such a function calls ``sys.exit``, this
is logged as an error and does not end the program. A thread that calls queued functions owns no lock that
another thread needs for its other work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

_SECONDS: Final = 0.05  # the longest time that a thread waits for the thread that calls the functions
_log: Final = logging.getLogger("cloudevents_kafka.deliveries")


class Callbacks:
    """A queue of the user's functions; any thread may add functions, and any thread may call them."""

    def __init__(self) -> None:
        self.due: deque[Callable[[], object]] = deque()
        self._turn = threading.Lock()
        self._thread: int | None = None  # the thread that is calling functions

    def is_busy(self) -> bool:
        """Return whether a function is in the queue, or a thread is calling a function."""
        return bool(self.due) or self._turn.locked()

    def serve(self) -> None:
        """Call the queued functions, unless another thread is calling them; log errors of the functions."""
        while self.due and self._turn.acquire(blocking=False):
            self._thread = threading.get_ident()
            try:
                while self.due:
                    self._call(self.due.popleft())
            finally:
                self._thread = None
                self._turn.release()

    def finish(self, deadline: float | None) -> None:
        """Call the queued functions, or wait until a deadline for the thread that is calling them.

        If a queued function calls this method, the method returns without waiting.
        """
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
        except (Exception, SystemExit) as error:  # noqa: BLE001  # of the user; an exit would end only this thread
            _log.error("a callback of a delivery has failed: %s", error, exc_info=error)
