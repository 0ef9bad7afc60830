"""`Connection`: one connection to one broker; frames out and in, in order, any number in flight.

A broker answers in the order of the requests (guide, "Network"), so requests may be sent before
earlier responses arrive. A response that breaks the protocol or is out of turn, or a call that times
out, closes the connection, because later responses could no longer be matched.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client._capture import CapturedFrame, Direction
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._security import AuthenticationFailed
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.errors import DeadlineExceeded, Disconnected, Malformed, ProtocolError
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import Structure, spec_of

_CHUNK: Final = 1 << 18
_MIN_TIMEOUT: Final = 1e-4  # seconds; a timeout of 0 would not read data that has arrived
_DEFAULT_PORT: Final = 9092


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return ``host:port``, or ``[host]:port`` for IPv6."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(bootstrap: str | Sequence[str]) -> list[Address]:
    """Return the addresses of ``host:port``, ``[v6]:port`` or ``host``, one or several; ValueError."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    addresses = [_parse_address(part.strip()) for part in parts if part.strip()]
    if not addresses:
        raise ValueError("a bootstrap address is missing; write host:port")
    return addresses


def _parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(_DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 1 << 16:
        raise ValueError(f"an address must be host:port, got {text!r}")
    return Address(host, int(port))


class _PendingResponse(NamedTuple):
    correlation_id: int
    structure: type[Structure]
    version: int


class Connection:
    """A socket to a broker, optionally with TLS; for one thread, except `abort`."""

    def __init__(
        self,
        address: Address,
        deadline: Deadline,
        settings: ConnectionSettings = ConnectionSettings(),  # noqa: B008  # immutable
    ) -> None:
        """Connect; `Disconnected`, `DeadlineExceeded` or `AuthenticationFailed` on failure."""
        self.address: Final = address
        self._settings: Final = settings
        self._pending: deque[_PendingResponse] = deque()
        self._responses: dict[int, Structure] = {}
        self._received = bytearray()
        self._last_id = 0
        self.closed = False
        self._socket: Final = self._open_socket(deadline, settings.tls)

    def send(
        self,
        message: Structure,
        version: int,
        deadline: Deadline,
        *,
        expects_response: bool = True,
        secret: bool = False,
    ) -> int:
        """Send a request and return its correlation id, for `receive`.

        ``expects_response`` is False for Produce with acks 0. A ``secret`` request is kept out of
        the trace.
        """
        self._last_id = (self._last_id + 1) % (1 << 31)
        data = frames.encode_request(
            message, version, correlation_id=self._last_id, client_id=self._settings.client_id
        )
        self.write(data, deadline, secret=secret)
        if expects_response:
            response = APIS[spec_of(type(message)).key].response
            self._pending.append(_PendingResponse(self._last_id, response, version))
        return self._last_id

    def receive(self, correlation_id: int, deadline: Deadline, *, secret: bool = False) -> Any:
        """Return the response to a request; keep the responses to earlier ones for later calls."""
        while correlation_id not in self._responses:
            if not self._pending:
                raise Disconnected(f"{self.address}: the connection is closed")
            self._receive_next(deadline, secret=secret)
        return self._responses.pop(correlation_id)

    def _receive_next(self, deadline: Deadline, *, secret: bool) -> None:
        pending = self._pending[0]
        data = self.read(deadline, secret=secret)
        self._pending.popleft()
        try:
            correlation_id, message = frames.decode_response(pending.structure, pending.version, data)
            if correlation_id != pending.correlation_id:
                raise Malformed(
                    f"{self.address}: the correlation id must be {pending.correlation_id}, "
                    f"got {correlation_id}"
                )
        except ProtocolError:
            self.close()
            raise
        self._responses[correlation_id] = message

    def request(self, message: Structure, version: int, deadline: Deadline) -> Any:
        """Send a request and return the response; close the connection on a timeout."""
        correlation_id = self.send(message, version, deadline)
        try:
            return self.receive(correlation_id, deadline)
        except DeadlineExceeded:
            self.close()
            raise

    def readable(self, seconds: float = 0) -> bool:
        """Return whether a response, a part of one, or the end arrives within ``seconds``."""
        if (
            self.closed
            or self._responses
            or self._received
            or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending())
        ):
            return True  # a selector does not see data that TLS has read from the socket
        return bool(wait_readable([self], seconds))

    def fileno(self) -> int:
        """Return the socket's file descriptor, for selectors."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket and discard pending responses."""
        self.closed = True
        self._pending.clear()
        self._responses.clear()
        self._socket.close()

    def abort(self) -> None:
        """End all reading and writing; may be called from another thread."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _trace(self, direction: Direction, data: bytes) -> None:
        if self._settings.trace is not None:
            self._settings.trace(CapturedFrame(time.time(), str(self.address), direction, data))

    # --- bytes ---------------------------------------------------------------------------

    def write(self, data: bytes, deadline: Deadline, *, secret: bool = False) -> None:
        """Send a frame; ``secret`` keeps it out of the trace."""
        if self.closed:
            raise Disconnected(f"{self.address}: the connection is closed")
        if not secret:
            self._trace("sent", data)
        deadline.check(f"sending to {self.address}")
        try:
            self._socket.settimeout(deadline.remaining())
            self._socket.sendall(data)
        except BaseException as error:  # KeyboardInterrupt too
            self.close()  # a part of the frame may be sent
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(f"{self.address}: sending the request timed out") from error
            if isinstance(error, OSError):
                raise Disconnected(f"{self.address}: {error}") from error
            raise

    def read(self, deadline: Deadline, *, secret: bool = False) -> bytes:
        """Return the next frame, without its size; a timeout keeps the part that has arrived."""
        self._fill(4, deadline)
        try:
            size = frames.decode_size(bytes(self._received[:4]), max_size=self._settings.max_response_bytes)
        except Malformed:
            self.close()
            raise
        self._fill(4 + size, deadline)
        data = bytes(self._received[4 : 4 + size])
        if not secret:
            self._trace("received", bytes(self._received[: 4 + size]))
        del self._received[: 4 + size]
        return data

    def _fill(self, size: int, deadline: Deadline) -> None:
        while len(self._received) < size:
            if self.closed:
                raise Disconnected(f"{self.address}: the connection is closed")
            try:
                remaining = deadline.remaining()
                self._socket.settimeout(None if remaining is None else max(remaining, _MIN_TIMEOUT))
                chunk = self._socket.recv(min(_CHUNK, size - len(self._received)))
            except TimeoutError as error:
                raise DeadlineExceeded(
                    f"{self.address}: no response within {deadline.seconds} s; "
                    "the broker may have processed the request"
                ) from error
            except OSError as error:
                self.close()
                raise Disconnected(f"{self.address}: {error}") from error
            if not chunk:
                hint = self._disconnect_hint()
                self.close()
                raise Disconnected(f"{self.address}: the broker closed the connection{hint}")
            self._received += chunk

    def _disconnect_hint(self) -> str:
        if not self._pending:
            return ""
        pending = self._pending[0]
        return (
            f" instead of sending {pending.structure.__name__} v{pending.version}; brokers do so for "
            "versions they do not have, for frames that are too large, and on listeners with TLS or SASL"
        )

    def _open_socket(self, deadline: Deadline, tls: ssl.SSLContext | None) -> socket.socket:
        deadline.check(f"connecting to {self.address}")
        try:
            opened = socket.create_connection(self.address, deadline.remaining())
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is None:
                return opened
            try:
                return tls.wrap_socket(opened, server_hostname=self.address.host)
            except BaseException:
                opened.close()
                raise
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self.address}: connecting timed out") from error
        except ssl.SSLCertVerificationError as error:
            raise AuthenticationFailed(f"{self.address}: {error}") from error
        except (OSError, OverflowError, ValueError) as error:  # the last two: no such port or host name
            raise Disconnected(f"{self.address}: cannot connect: {error}") from error


def wait_readable(connections: Iterable[Connection], seconds: float) -> list[Connection]:
    """Return the open connections that become readable within ``seconds``."""
    with selectors.DefaultSelector() as selector:  # select() fails for file descriptors above 1023
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
        return [key.data for key, _ in selector.select(seconds)]
