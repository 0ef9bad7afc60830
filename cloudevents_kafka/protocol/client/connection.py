"""One connection to one broker: frames out and in, in order, any number on their way.

A broker answers in the order of the requests (guide, "Network"), so requests may be
sent before earlier answers are there. An answer that breaks the protocol, an answer
out of turn, or a call that waits in vain closes the connection: what would come
later could not be told apart.
"""

from __future__ import annotations

import selectors
import socket
import ssl
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client.capture import Trace, frame
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.security import AuthenticationFailed, Security
from cloudevents_kafka.protocol.errors import DeadlineExceeded, Disconnected, Malformed, ProtocolError
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import Structure, spec_of

_CHUNK: Final = 1 << 18
_LAST_ID: Final = (1 << 31) - 1


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        """Write it as users do."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Expected(NamedTuple):
    """An answer that is still to come."""

    correlation_id: int
    structure: type[Structure]
    version: int


class Connection:
    """A socket to a broker, with TLS if it is asked for; not for several threads at once."""

    def __init__(
        self,
        address: Address,
        deadline: Deadline,
        *,
        client_id: str | None = None,
        security: Security = Security(),  # noqa: B008  # immutable
        most: int = frames.MAX_SIZE,
        trace: Trace | None = None,
    ) -> None:
        """Connect; `Disconnected` or `DeadlineExceeded` where that fails."""
        self.address: Final = address
        self._client_id: Final = client_id
        self._most: Final = most
        self._trace: Final = trace
        self._expected: deque[Expected] = deque()
        self._answers: dict[int, Structure] = {}
        self._received = bytearray()
        self._next_id = 0
        self.closed = False
        self._socket: Final = self._opened(deadline, security)

    def send(
        self,
        message: Structure,
        version: int,
        deadline: Deadline,
        *,
        answered: bool = True,
        secret: bool = False,
    ) -> int:
        """Send a request, and return its correlation id, which `receive` gives the answer for.

        None will come where it is not ``answered`` (acks 0). A ``secret`` one is kept out of
        the trace.
        """
        about = spec_of(type(message))
        self._next_id = 0 if self._next_id == _LAST_ID else self._next_id + 1
        data = frames.encode_request(
            message, version, correlation_id=self._next_id, client_id=self._client_id
        )
        self.write(data, deadline, secret=secret)
        if answered:
            self._expected.append(Expected(self._next_id, APIS[about.key].response, version))
        return self._next_id

    def receive(self, correlation_id: int, deadline: Deadline, *, secret: bool = False) -> Structure:
        """Return the answer to a request; answers to earlier ones are kept for who asked."""
        while correlation_id not in self._answers:
            if not self._expected:
                raise Disconnected(f"{self.address}: the connection is closed")
            self._receive_next(deadline, secret=secret)
        return self._answers.pop(correlation_id)

    def _receive_next(self, deadline: Deadline, *, secret: bool) -> None:
        awaited = self._expected[0]
        data = self.read(deadline, secret=secret)
        self._expected.popleft()
        try:
            correlation_id, message = frames.decode_response(awaited.structure, awaited.version, data)
            if correlation_id != awaited.correlation_id:
                raise Malformed(
                    f"{self.address} answers request {correlation_id}; {awaited.correlation_id} is next"
                )
        except ProtocolError:
            self.close()
            raise
        self._answers[correlation_id] = message

    def request(self, message: Structure, version: int, deadline: Deadline) -> Structure:
        """Send a request and wait for its answer; where that takes too long, close."""
        correlation_id = self.send(message, version, deadline)
        try:
            return self.receive(correlation_id, deadline)
        except DeadlineExceeded:
            self.close()
            raise

    def readable(self, seconds: float = 0) -> bool:
        """Tell whether there is an answer, or a part of it, or the end, within so many seconds."""
        if (
            self.closed
            or self._answers
            or self._received
            or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending())
        ):
            return True  # select does not see what TLS has taken from the socket
        return bool(answering([self], seconds))

    def fileno(self) -> int:
        """Return the socket's number, for selectors."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket; answers that were to come are lost."""
        self.closed = True
        self._expected.clear()
        self._answers.clear()
        self._socket.close()

    def abort(self) -> None:
        """End all reading and writing, from another thread: it meets the end of the connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    # --- bytes ---------------------------------------------------------------------------

    def write(self, data: bytes, deadline: Deadline, *, secret: bool = False) -> None:
        """Send a whole frame; ``secret`` keeps it out of the trace."""
        if self.closed:
            raise Disconnected(f"{self.address}: the connection is closed")
        if self._trace is not None and not secret:
            self._trace(frame(str(self.address), "sent", data))
        deadline.check(f"sending to {self.address}")
        try:
            self._socket.settimeout(deadline.left())
            self._socket.sendall(data)
        except BaseException as error:  # Ctrl-C too
            self.close()  # a part of the frame may be out
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(f"{self.address}: did not take a request in time") from error
            if isinstance(error, OSError):
                raise Disconnected(f"{self.address}: {error}") from error
            raise

    def read(self, deadline: Deadline, *, secret: bool = False) -> bytes:
        """Return the next whole frame, without its size; what is there of it outlives a deadline."""
        self._fill(4, deadline)
        try:
            size = frames.decode_size(bytes(self._received[:4]), max_size=self._most)
        except Malformed:
            self.close()
            raise
        self._fill(4 + size, deadline)
        data = bytes(self._received[4 : 4 + size])
        if self._trace is not None and not secret:
            self._trace(frame(str(self.address), "received", bytes(self._received[:4]) + data))
        del self._received[: 4 + size]
        return data

    def _fill(self, size: int, deadline: Deadline) -> None:
        while len(self._received) < size:
            if self.closed:
                raise Disconnected(f"{self.address}: the connection is closed")
            try:
                left = deadline.left()
                # 0 would mean "do not wait" where data that is there shall still be read.
                self._socket.settimeout(left if left is None else max(left, 1e-4))
                chunk = self._socket.recv(min(_CHUNK, size - len(self._received)))
            except TimeoutError as error:
                raise DeadlineExceeded(
                    f"{self.address}: no answer within {deadline.seconds} s; the request may have been done"
                ) from error
            except OSError as error:
                self.close()
                raise Disconnected(f"{self.address}: {error}") from error
            if not chunk:
                hint = self._hint()
                self.close()
                raise Disconnected(f"{self.address}: the broker closed the connection{hint}")
            self._received += chunk

    def _hint(self) -> str:
        if not self._expected:
            return ""
        awaited = self._expected[0]
        return (
            f" where {awaited.structure.__name__} v{awaited.version} was to come; brokers do so "
            "with versions they do not know, frames that are too large, and on listeners with TLS or SASL"
        )

    def _opened(self, deadline: Deadline, security: Security) -> socket.socket:
        deadline.check(f"connecting to {self.address}")
        try:
            opened = socket.create_connection(self.address, deadline.left())
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if security.tls is None:
                return opened
            try:
                return security.tls.wrap_socket(opened, server_hostname=self.address.host)
            except BaseException:
                opened.close()
                raise
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self.address}: no connection in time") from error
        except ssl.SSLCertVerificationError as error:
            raise AuthenticationFailed(f"{self.address}: {error}") from error
        except (OSError, OverflowError, ValueError) as error:  # no such port; nothing that can name a host
            raise Disconnected(f"{self.address}: cannot connect: {error}") from error


def answering(connections: Iterable[Connection], seconds: float) -> list[Connection]:
    """Wait for so many seconds at most; return the open connections on which something came."""
    with selectors.DefaultSelector() as selector:  # select alone knows no file numbers from 1024 on
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
        return [key.data for key, _ in selector.select(seconds)]
