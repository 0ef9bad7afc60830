"""Schema registries that accept a connection and do not answer, or not to the end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n"


class _Server:
    """A server that accepts all connections, and after each request sends what ``drips`` says."""

    def __init__(self, *, drips: bool) -> None:
        self.asked = threading.Event()
        self.ended = threading.Event()
        self._drips = drips
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            self.asked.set()
            connection.sendall(_HEAD if self._drips else b"")
            while not self.ended.wait(0.02):
                connection.sendall(b" " if self._drips else b"")

    def close(self) -> None:
        self.ended.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def slow_registry(*, drips: bool = False) -> Iterator[_Server]:
    """Yield a registry that never answers, or whose answer never ends, as it comes byte by byte."""
    server = _Server(drips=drips)
    try:
        yield server
    finally:
        server.close()
