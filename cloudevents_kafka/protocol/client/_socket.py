"""`FrameSocket`: sends and receives frames over a socket, optionally with TLS; each call has a deadline."""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from cloudevents_kafka.primitives import forks
from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._dialing import dial
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.errors import ClientError, DeadlineExceeded, Disconnected, Malformed

OTHER_PROCESS: Final = (
    "a client must be used in the process that has created it, got a child that was forked later; "
    "create a client in the child"
)
_CHUNK: Final = 1 << 18
_MIN_TIMEOUT: Final = 1e-4  # seconds; a timeout of 0 would not read data that has arrived


class AuthenticationFailed(ClientError):
    """The broker refused the credentials, or failed to prove its identity.

    Examples:
        >>> from cloudevents_kafka.protocol import AuthenticationFailed, Client, Plain
        >>> try:
        ...     Client("localhost:9094", sasl=Plain("shop", "wrong")).metadata()
        ... except AuthenticationFailed as error:
        ...     print(str(error).partition(": ")[2])
        unknown user or wrong password: 'shop'
    """


class FrameSocket:
    """A socket to a broker; only `abort` may be called from another thread."""

    def __init__(
        self,
        address: Address,
        deadline: Deadline,
        *,
        tls: ssl.SSLContext | None = None,
        max_frame_bytes: int = frames.MAX_SIZE,
    ) -> None:
        """Connect; raise `Disconnected`, `DeadlineExceeded` or `AuthenticationFailed`."""
        self.address: Final = address
        self.closed = False
        self._forks: Final = forks.number
        self.aborted: Final = threading.Event()
        self.arrived = 0  # bytes
        self._max_frame_bytes: Final = max_frame_bytes
        self._received = bytearray()
        self._tls: Final = tls
        self._socket = _connect(address, deadline, tls)

    def readable(self, seconds: float = 0) -> bool:
        """Return whether bytes of a frame, or the end of the connection, arrive within ``seconds``."""
        # A selector does not see data that TLS has read from the socket.
        pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()
        return bool(self.closed or pending or wait_readable([self], seconds))

    def ended(self) -> bool:
        """Return whether either side has closed the connection; call this only if no frame is expected."""
        if self.closed or self._forks != forks.number:
            return self.closed
        try:
            self._socket.settimeout(0)
            return self._socket.recv(1) is not None  # the end, or bytes that were not requested
        except (BlockingIOError, ssl.SSLWantReadError):  # TLS may have read only a session ticket
            return False
        except OSError:
            return True

    def fileno(self) -> int:
        """Return the socket's file descriptor, for selectors."""
        return self._socket.fileno()

    def reopen(self, deadline: Deadline) -> None:
        """Connect again, after the broker has closed the connection.

        Raises the errors of the constructor.
        """
        self._socket.close()
        self._received.clear()
        self._socket = _connect(self.address, deadline, self._tls)

    def close(self) -> None:
        self.closed = True
        self._socket.close()

    def abort(self) -> None:
        """End all reading, writing and waiting on the socket; another thread may call this method."""
        self.aborted.set()
        if self._forks == forks.number:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def check_open(self) -> None:
        if self._forks != forks.number:  # the parent reads and writes the same connection
            raise ClientError(f"{self.address}: {OTHER_PROCESS}")
        if self.closed:
            raise Disconnected(f"{self.address}: the connection is closed")

    def disconnect_hint(self) -> str:
        """Return why a broker may have closed the connection; "" if the reason is unknown."""
        return ""

    def write(self, frame: bytes, deadline: Deadline) -> None:
        self.check_open()
        deadline.check(f"sending to {self.address}")
        try:
            self._socket.settimeout(deadline.remaining())
            self._socket.sendall(frame)
        except BaseException as error:  # KeyboardInterrupt too
            self.close()  # a part of the frame may be sent
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(f"{self.address}: sending the request timed out") from error
            if isinstance(error, OSError):
                raise Disconnected(f"{self.address}: {error}") from error
            raise

    def read(self, deadline: Deadline) -> bytes:
        """Return the next frame, without its size; after a timeout, call again to continue the same frame."""
        self._fill(4, deadline)
        try:
            size = frames.decode_size(bytes(self._received[:4]), max_size=self._max_frame_bytes)
        except Malformed:
            self.close()
            raise
        self._fill(4 + size, deadline)
        with memoryview(self._received) as received:
            data = bytes(received[4 : 4 + size])
        self._received.clear()
        return data

    def _fill(self, size: int, deadline: Deadline) -> None:
        while len(self._received) < size:
            self.check_open()
            try:
                remaining = deadline.remaining()
                self._socket.settimeout(None if remaining is None else max(remaining, _MIN_TIMEOUT))
                chunk = self._socket.recv(min(_CHUNK, size - len(self._received)))
            except TimeoutError as error:
                raise DeadlineExceeded(no_response(str(self.address), deadline)) from error
            except OSError as error:
                self.close()
                raise Disconnected(f"{self.address}: {error}") from error
            if not chunk:
                hint = self.disconnect_hint()
                self.close()
                raise Disconnected(f"{self.address}: the broker closed the connection{hint}")
            self._received += chunk
            self.arrived += len(chunk)


def no_response(who: str, deadline: Deadline) -> str:
    """Return the text of the error for a response that does not arrive in time."""
    return f"{who}: no response within {deadline.seconds} s; the broker may have processed the request"


def _connect(address: Address, deadline: Deadline, tls: ssl.SSLContext | None) -> socket.socket:
    dialed = dial(address, deadline)
    try:
        dialed.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        deadline.check(f"connecting to {address}")
        dialed.settimeout(deadline.remaining())
        # Names in DNS may end with a dot; names in certificates and SNI do not (RFC 6066 3).
        name = address.host.removesuffix(".")
        return dialed if tls is None else tls.wrap_socket(dialed, server_hostname=name)
    except BaseException as error:
        dialed.close()
        if isinstance(error, TimeoutError) and not isinstance(error, ClientError):
            raise DeadlineExceeded(f"{address}: connecting timed out in the handshake of TLS") from error
        if isinstance(error, ssl.SSLCertVerificationError):
            raise AuthenticationFailed(f"{address}: {error}") from error
        if isinstance(error, OSError | ValueError) and not isinstance(error, ClientError):
            raise Disconnected(f"{address}: cannot connect: {error}") from error
        raise


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


_Socket = TypeVar("_Socket", bound=_HasFileno)


def wait_readable(sockets: Iterable[_Socket], seconds: float) -> list[_Socket]:
    """Return the open sockets that become readable within ``seconds``."""
    with selectors.DefaultSelector() as selector:  # select() fails for file descriptors above 1023
        for one in sockets:
            selector.register(one, selectors.EVENT_READ, one)
        return [key.data for key, _ in selector.select(seconds)]
