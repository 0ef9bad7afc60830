"""`PollingThread`: the thread that polls a client while something is on its way, and only then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol
from weakref import ReferenceType, ref

SECONDS: Final = 0.1
"""The longest call of a client that waits."""

_LOOK_SECONDS: Final = 0.02  # between looks whether another thread polls
SHORT_SECONDS: Final = 0.002
"""Between calls of a client that does not wait, such as a fake."""


class Polled(Protocol):
    """The object that a `PollingThread` polls for."""

    def poller(self) -> Callable[[float], int]:
        """Return a function that waits for reports, for seconds, without a reference to this object."""

    def serve(self, error: Exception | None, *, is_idle: bool) -> None:
        """Continue after a call of the client, which has raised an error, or was ``idle``: no report came."""

    def is_busy(self) -> bool:
        """Return whether a message is on its way, or a function is due."""


class PollingThread:
    """A daemon thread without a reference to the object that it polls for, so that this can be freed."""

    def __init__(self, polled: Polled, name: str) -> None:
        self._polled: ReferenceType[Polled] = ref(polled)
        self._name = name
        self._lock = threading.Lock()
        self.thread: threading.Thread | None = None
        self.was_polled = False
        """Whether another thread has polled, as each `send` does; then this thread waits before it polls."""
        self._asked = threading.Event()
        self.turn = threading.Lock()
        """The lock of the thread that polls: this one, one that waits for a delivery, or one that sends."""
        self.holder: int | None = None
        """The thread with the turn; in a callback of the client it must not poll again."""

    def start(self) -> None:
        """Start the thread, unless it runs; called after a message was sent."""
        if self.thread is None:
            with self._lock:
                if self.thread is None:
                    self.thread = threading.Thread(target=self._poll_all, name=self._name, daemon=True)
                    self.thread.start()

    def ask(self) -> None:
        """Start the thread, unless it runs, and let it poll now, because another thread waits."""
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
            except Exception as failure:  # noqa: BLE001  # a callback of the user, such as error_cb, may raise any
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
        """Return whether the thread may end; an event that was sent in the meantime still has a thread."""
        if polled.is_busy():
            return False
        mine, self.thread = self.thread, None
        if not polled.is_busy():
            return True
        with self._lock:
            if self.thread is None:
                self.thread = mine
        return self.thread is not mine
