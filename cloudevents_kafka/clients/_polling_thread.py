"""`PollingThread`: a thread that polls a client while messages of the client are not reported yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol
from weakref import ReferenceType, ref

SECONDS: Final = 0.1
"""The longest time, in seconds, that one client call waits."""

_LOOK_SECONDS: Final = 0.02  # between two checks whether another thread polls
SHORT_SECONDS: Final = 0.002
"""The pause, in seconds, between two calls of a client that does not wait, such as a fake client."""


class Polled(Protocol):
    """An object whose client is polled by a `PollingThread`."""

    def poller(self) -> Callable[[float], int]:
        """Return a function that waits for reports; it must not have a reference to this object."""

    def serve(self, error: BaseException | None, *, is_idle: bool) -> None:
        """Continue after a poll of the client; ``error`` is the error of the poll, or None.

        ``is_idle`` says whether the poll has returned no delivery report.
        """

    def is_busy(self) -> bool:
        """Return whether a sent message waits for its report, or a function must still be called."""


class PollingThread:
    """A daemon thread that polls a client for an object.

    The thread has no reference to the object, so the object can be freed.
    """

    def __init__(self, polled: Polled, name: str) -> None:
        self._polled: ReferenceType[Polled] = ref(polled)
        self._name = name
        self._lock = threading.Lock()
        self.thread: threading.Thread | None = None
        self.was_polled = False
        """Whether another thread has polled; if so, this thread waits before its next poll."""
        self._asked = threading.Event()
        self.turn = threading.Lock()
        """The lock of the thread that polls: this thread, a thread that waits, or a thread that sends."""
        self.holder: int | None = None
        """The id of the thread that polls; within a callback of the client, this thread must not poll."""

    def start(self) -> None:
        """Start the thread, unless it is running already; this method is called after a message was sent."""
        if self.thread is None:
            with self._lock:
                if self.thread is None:
                    self.thread = threading.Thread(target=self._poll_all, name=self._name, daemon=True)
                    self.thread.start()

    def ask(self) -> None:
        """Start the thread if it is not running, and let it poll at once, because another thread waits."""
        self.start()
        self._asked.set()

    def _poll_all(self) -> None:
        while (polled := self._polled()) is not None:
            # Two threads in the client would contend for Python's interpreter lock.
            if self.was_polled or not self.turn.acquire(blocking=False):
                self.was_polled = False
                del polled
                self._asked.wait(_LOOK_SECONDS)
                self._asked.clear()
                continue
            poll = polled.poller()
            del polled
            began, error = time.monotonic(), None
            self.holder = threading.get_ident()
            try:
                is_idle = not poll(SECONDS)
            except BaseException as failure:  # noqa: BLE001  # of error_cb; its sys.exit would end only this thread
                is_idle, error = True, failure
            finally:
                self.holder = None
                self.turn.release()
            if (polled := self._polled()) is None:
                return
            polled.serve(error, is_idle=is_idle)
            if is_idle and self._may_end(polled):
                return
            del polled, error
            if is_idle and time.monotonic() - began < SHORT_SECONDS:
                time.sleep(SHORT_SECONDS)

    def _may_end(self, polled: Polled) -> bool:
        """Return whether this thread may end, because all messages are reported.

        If another message was sent in the meantime, this thread or a new thread continues to poll.
        """
        if polled.is_busy():
            return False
        mine, self.thread = self.thread, None
        if not polled.is_busy():
            return True
        with self._lock:
            if self.thread is None:
                self.thread = mine
        return self.thread is not mine
