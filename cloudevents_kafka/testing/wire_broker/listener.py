"""A listener on 127.0.0.1: one thread that accepts, one for each connection, all gone after `stop`."""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Final

from cloudevents_kafka.protocol import frames

_PIECE: Final = 65_536


class Connection:
    """One client's connection; reading gives None once it is gone, for whatever reason."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        """Wrap an accepted socket; connections of a listener count from 1."""
        self.number: Final = number
        self._socket: Final = sock

    def frame(self, most: int) -> bytes | None:
        """Read a frame without its size; `Malformed` for one that is negative or above ``most``."""
        prefix = self.read(4)
        return None if prefix is None else self.read(frames.decode_size(prefix, max_size=most))

    def read(self, size: int) -> bytes | None:
        """Read so many bytes; memory grows with what arrives, not with what was announced."""
        data = bytearray()
        while len(data) < size:
            try:
                piece = self._socket.recv(min(_PIECE, size - len(data)))
            except OSError:
                return None
            if not piece:
                return None
            data += piece
        return bytes(data)

    def send(self, data: bytes) -> bool:
        """Send all bytes; False if the client is gone."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def greet(self) -> bool:
        """Do the handshake of TLS, where there is TLS; False if it fails."""
        try:
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.do_handshake()
        except OSError:
            return False
        return True

    def shut(self) -> None:
        """End all reading and writing, from whichever thread; TLS is not said goodbye to."""
        try:
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:  # the client was quicker
            return

    def close(self) -> None:
        """Give the socket back; for the connection's own thread."""
        self.shut()
        self._socket.close()


class Listener:
    """Listens on a free port from the start on, and gives each connection to ``serve``, in a thread."""

    def __init__(
        self, serve: Callable[[Connection], None], *, name: str, tls: ssl.SSLContext | None = None
    ) -> None:
        """Listen; ``serve`` returns, or raises, when it is done with a connection."""
        self._serve: Final = serve
        self._name: Final = name
        self._tls: Final = tls
        self._open: Final[dict[Connection, threading.Thread]] = {}
        self._lock: Final = threading.Lock()
        self._stopping = False
        self._socket: Final = socket.create_server(("127.0.0.1", 0))
        self.port: Final[int] = self._socket.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._acceptor = threading.Thread(target=self._accept_all, name=f"{name} accepts", daemon=True)
        self._acceptor.start()

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._open)

    def hang_up(self) -> None:
        """Close all connections, and go on listening."""
        with self._lock:
            for connection in self._open:
                connection.shut()

    def stop(self) -> None:
        """Close everything and wait for all threads to end."""
        self._stopping = True
        self._wake.send(b"!")
        self._acceptor.join()
        self.hang_up()
        with self._lock:
            threads = list(self._open.values())
        for thread in threads:
            thread.join()
        for sock in (self._wake, self._woken):
            sock.close()

    def _accept_all(self) -> None:
        number = 0
        with self._socket, selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._stopping:
                selector.select()
                if not self._stopping:
                    number += 1
                    self._accept(number)

    def _accept(self, number: int) -> None:
        try:
            sock, _ = self._socket.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError:  # gone before it was accepted
            return
        connection = Connection(sock, number)
        thread = threading.Thread(
            target=self._run, args=(connection,), name=f"{self._name} #{number}", daemon=True
        )
        with self._lock:
            self._open[connection] = thread
        thread.start()

    def _run(self, connection: Connection) -> None:
        try:
            if connection.greet():
                self._serve(connection)
        finally:
            connection.close()
            with self._lock:
                del self._open[connection]
