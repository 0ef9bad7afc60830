"""A listener on 127.0.0.1 with one thread that accepts and one for each client."""

from __future__ import annotations

import itertools
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from cloudevents_kafka.protocol import frames

_CHUNK: Final = 65_536


class ClientSocket:
    """The socket of one client; reading returns None once the client is gone."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.number: Final = number
        self._socket: Final = sock

    def read_frame(self, max_bytes: int) -> bytes | None:
        """Return a frame without its size; raise `Malformed` if that is negative or above ``max_bytes``."""
        prefix = self.read(4)
        return None if prefix is None else self.read(frames.decode_size(prefix, max_size=max_bytes))

    def read(self, size: int) -> bytes | None:
        """Return ``size`` bytes; memory grows with the received bytes, not with ``size``."""
        data = bytearray()
        while len(data) < size:
            try:
                chunk = self._socket.recv(min(_CHUNK, size - len(data)))
            except OSError:
                return None
            if not chunk:
                return None
            data += chunk
        return bytes(data)

    def send(self, data: bytes) -> bool:
        """Send all bytes; return whether the client is still there."""
        with suppress(OSError):
            self._socket.sendall(data)
            return True
        return False

    def handshake(self) -> bool:
        """Do the TLS handshake, if there is TLS; return whether it succeeded."""
        with suppress(OSError):
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.do_handshake()
            return True
        return False

    def shut(self) -> None:
        """End all reading and writing, from any thread; TLS sends no close_notify."""
        with suppress(OSError):  # the client has closed first
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket; only for the client's own thread."""
        self.shut()
        self._socket.close()


class Listener:
    """Listens on a free port from its creation on; ``serve`` is called with each client, in a thread."""

    def __init__(
        self, serve: Callable[[ClientSocket], None], *, name: str, tls: ssl.SSLContext | None = None
    ) -> None:
        """Listen; ``serve`` returns, or raises, when it is done with a client."""
        self._serve: Final = serve
        self._name: Final = name
        self._tls: Final = tls
        self._open: Final[dict[ClientSocket, threading.Thread]] = {}
        self._lock: Final = threading.Lock()
        self._stopping = False
        self._socket: Final = socket.create_server(("127.0.0.1", 0))
        self.port: Final[int] = self._socket.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept_all, name=f"{name} accepts", daemon=True)
        self._acceptor.start()

    def close_connections(self) -> None:
        """Close all connections, and keep listening."""
        with self._lock:
            for client in self._open:
                client.shut()

    def stop(self) -> None:
        """Close everything and wait for all threads to end."""
        self._stopping = True
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            self._acceptor.join()  # which the connection wakes
        self.close_connections()
        with self._lock:
            threads = list(self._open.values())
        for thread in threads:
            thread.join()

    def _accept_all(self) -> None:
        with self._socket:
            for number in itertools.count(1):
                with suppress(OSError):  # the client has closed first
                    sock, _ = self._socket.accept()
                    if self._stopping:
                        sock.close()
                        return
                    self._accept(sock, number)

    def _accept(self, sock: socket.socket, number: int) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            sock = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        client = ClientSocket(sock, number)
        thread = threading.Thread(
            target=self._run, args=(client,), name=f"{self._name} #{number}", daemon=True
        )
        with self._lock:
            self._open[client] = thread
        thread.start()

    def _run(self, client: ClientSocket) -> None:
        try:
            if client.handshake():
                self._serve(client)
        finally:
            client.close()
            with self._lock:
                del self._open[client]
