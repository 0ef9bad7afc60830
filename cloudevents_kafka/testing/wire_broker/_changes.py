"""`Changes`: the lock of a cluster's state, and the wait for the state to change."""

from __future__ import annotations

import threading
import time

from cloudevents_kafka.testing.wire_broker._errors import CloseConnection


class Changes(threading.Condition):
    """A condition that is notified of each change, and that can be closed for good."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def close(self) -> None:
        """Wake all waiting threads; each raises `CloseConnection`."""
        with self:
            self.closed = True
            self.notify_all()

    def wait_until(self, end: float) -> None:
        """Wait for a change, until ``end`` (`time.monotonic`) at most; `CloseConnection` once closed."""
        if not self.closed:
            self.wait(max(0.0, end - time.monotonic()))
        if self.closed:
            raise CloseConnection
