"""`Waker`: ends the wait of another thread that waits for sockets."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Final


class Waker:
    """A pair of sockets; a call of `wake` makes one socket readable until `clear` is called."""

    def __init__(self) -> None:
        self._receiving, self._sending = socket.socketpair()
        self._receiving.setblocking(False)
        self._sending.setblocking(False)
        self._set = False
        self.closed: Final = False

    def wake(self) -> None:
        """End the current wait, or the next wait if no thread waits now; any thread may call this method."""
        if not self._set:
            self._set = True
            with suppress(OSError):  # closed, or the other end is readable anyway
                self._sending.send(b"\0")

    def clear(self) -> None:
        """Let the next wait block again; only the waiting thread may call this method."""
        self._set = False
        with suppress(OSError):
            self._receiving.recv(64)

    def fileno(self) -> int:
        return self._receiving.fileno()

    def close(self) -> None:
        self._receiving.close()
        self._sending.close()
