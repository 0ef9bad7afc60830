"""`Connection`: sends requests to a broker, and receives responses; `first_answer` waits for several brokers.

A broker answers in the order of the requests (Kafka's 0.8 protocol guide, "Network"), so requests may be sent
before earlier responses arrive. The connection is closed if a response breaks the protocol or belongs to
another request, or if a call times out. If the connection stayed open, later responses could be assigned to
wrong requests.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._api_versions import FIRST_VERSIONS, choose_version
from cloudevents_kafka.protocol.client._capture import CapturedFrame, Direction
from cloudevents_kafka.protocol.client._retry import MAX_SECONDS, Deadline
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.client._socket import FrameSocket, wait_readable
from cloudevents_kafka.protocol.client._throttle import throttle_of
from cloudevents_kafka.protocol.errors import DeadlineExceeded, Disconnected, Malformed, ProtocolError
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of


class _PendingResponse(NamedTuple):
    correlation_id: int
    structure: type[Structure]
    version: int
    since: float


_MIN_SESSION: Final = 1.0
_PATIENCE: Final = 2.0
"""If a broker has not responded for this number of seconds, other brokers are asked first."""


class Connection(FrameSocket):
    """A socket to a broker; each request is sent in the highest version that client and broker accept.

    ``versions`` maps each API key to the versions that the broker accepts.
    """

    def __init__(
        self,
        address: Address,
        deadline: Deadline,
        settings: ConnectionSettings = ConnectionSettings(),  # noqa: B008  # immutable
    ) -> None:
        """Connect; raise `Disconnected`, `DeadlineExceeded` or `AuthenticationFailed`."""
        super().__init__(address, deadline, tls=settings.tls, max_frame_bytes=settings.max_response_bytes)
        self.versions: Mapping[int, Versions] = FIRST_VERSIONS
        self.answered_at = 0.0
        self.session_lifetime = 0.0
        """The seconds after which the broker ends the session, or 0 if the session never ends."""
        self.throttle = Deadline(0)
        """The time until which the broker throttles the client; the next request is sent after this time."""
        self._session: tuple[Deadline, Callable[[Deadline], object]] | None = None
        self._settings: Final = settings
        self._pending: Final[deque[_PendingResponse]] = deque()
        self._responses: Final[dict[int, Structure]] = {}
        self._forgotten: Final[set[int]] = set()
        self._last_id = 0

    def version(self, request: type[Structure]) -> int:
        """Return the version in which to send a request; raise `Unsupported` if there is none."""
        return choose_version(request, self.versions)

    def request(self, message: Structure, deadline: Deadline, *, secret: bool = False) -> Any:
        """Send a request and return the response; close the connection on a timeout."""
        correlation_id = self.send(message, deadline, secret=secret)
        try:
            return self.receive(correlation_id, deadline, secret=secret)
        except DeadlineExceeded:
            self.close()
            raise

    def send(
        self, message: Structure, deadline: Deadline, *, expects_response: bool = True, secret: bool = False
    ) -> int:
        """Send a request and return its correlation id, for `receive`.

        ``expects_response`` is False for Produce with acks 0. A ``secret`` request is not passed to the trace
        function. While the broker throttles the client, the call waits before it sends the request.
        """
        self._wait_for_throttle(deadline)
        self._renew_session_if_due(deadline)
        version = self.version(type(message))
        self._last_id = (self._last_id + 1) % (1 << 31)
        frame = frames.encode_request(
            message, version, correlation_id=self._last_id, client_id=self._settings.client_id
        )
        if not (secret or self.closed):
            self._trace("sent", frame)
        self.write(frame, deadline)
        if expects_response:
            response = APIS[spec_of(type(message)).key].response
            self._pending.append(_PendingResponse(self._last_id, response, version, time.monotonic()))
        return self._last_id

    def _wait_for_throttle(self, deadline: Deadline) -> None:
        if self.closed or self.throttle.expired():
            return
        self.aborted.wait(deadline.at_most(self.throttle.at_most(MAX_SECONDS)))
        if deadline.expired() and not self.throttle.expired():
            raise DeadlineExceeded(self.throttled())

    def throttled(self) -> str:
        """Return the text of an error that states for how long the broker throttles the client."""
        seconds = self.throttle.at_most(MAX_SECONDS)
        return f"{self.address}: the broker throttles this client for {seconds:.1f} s more; see its quotas"

    def renew_session(self, log_in: Callable[[Deadline], object]) -> None:
        """Set the function that is called before a request if the SASL session is about to end."""
        if self.session_lifetime > 0:
            # KIP-368: "between 85% and 95% of that time has elapsed"; brokers refuse a login within 1 s
            seconds = max(_MIN_SESSION, self.session_lifetime * random.uniform(0.85, 0.95))
            self._session = Deadline(seconds), log_in

    def _renew_session_if_due(self, deadline: Deadline) -> None:
        if self._session is None or self.closed or not self._session[0].expired():
            return
        (_, log_in), self._session = self._session, None  # a login sends requests, too
        try:
            log_in(deadline)
        except ProtocolError:
            self.close()
            raise

    def receive(self, correlation_id: int, deadline: Deadline, *, secret: bool = False) -> Any:
        """Return the response to a request; store the responses to earlier requests for later calls."""
        while correlation_id not in self._responses:
            if not self._pending:
                raise Disconnected(f"{self.address}: the connection is closed")
            self._receive_next(deadline, secret=secret)
        return self._responses.pop(correlation_id)

    def _receive_next(self, deadline: Deadline, *, secret: bool) -> None:
        pending = self._pending[0]
        data = self.read(deadline)
        self._pending.popleft()
        self.answered_at = time.monotonic()
        if not secret:
            self._trace("received", len(data).to_bytes(4), data)
        try:
            correlation_id, message = frames.decode_response(
                pending.structure, pending.version, data, memory=self._settings.max_response_memory
            )
            # S0-F3: "passed back in the response by the server, unmodified"
            if correlation_id != pending.correlation_id:
                raise Malformed(
                    f"{self.address}: the correlation id must be {pending.correlation_id}, "
                    f"got {correlation_id}"
                )
        except ProtocolError:
            self.close()
            raise
        if (seconds := throttle_of(message, pending.version)) > self.throttle.at_most(MAX_SECONDS):
            self.throttle = Deadline(seconds)
        if correlation_id in self._forgotten:
            self._forgotten.remove(correlation_id)
        else:
            self._responses[correlation_id] = message

    def forget(self, correlation_id: int) -> None:
        """Drop the response to a request, now or when the response arrives."""
        if self._responses.pop(correlation_id, None) is None:
            self._forgotten.add(correlation_id)

    def readable(self, seconds: float = 0) -> bool:
        return bool(self._responses) or super().readable(seconds)

    def ended(self) -> bool:
        """Return whether the connection is closed by the client or by the broker.

        While a response is pending, the function does not check whether the broker has closed the connection.
        """
        owed = self._pending or self._responses
        return self.closed if owed else super().ended()

    def silence(self) -> float:
        """Return the age in seconds of the oldest unanswered request, or 0 if the broker responds in time."""
        waited = time.monotonic() - self._pending[0].since if self._pending else 0.0
        return 0.0 if waited < _PATIENCE or self.readable() else waited

    def close(self) -> None:
        super().close()
        self._pending.clear()
        self._responses.clear()
        self._forgotten.clear()

    def disconnect_hint(self) -> str:
        """Return why a broker may have closed the connection instead of answering."""
        if not self._pending:
            return ""
        pending = self._pending[0]
        return (
            f" instead of sending {pending.structure.__name__} v{pending.version}; brokers do so for "
            "versions they do not have, for frames that are too large, and on listeners with TLS or SASL"
        )

    def _trace(self, direction: Direction, *parts: bytes) -> None:
        if self._settings.trace is not None:
            frame = b"".join(parts)
            self._settings.trace(CapturedFrame(time.time(), str(self.address), direction, frame))


def first_answer(asked: dict[Connection, int], deadline: Deadline) -> Any:
    """Return the first response to any of the requests, or None at the deadline; drop all other responses.

    ``asked`` maps each connection to the correlation id of its request. A connection that fails is removed
    from ``asked``. If no other connection is left, the error of the failed connection is raised.
    """
    while True:
        ready = [one for one in asked if one.readable()] or wait_readable(
            asked, deadline.at_most(MAX_SECONDS)
        )
        for broker in ready:
            try:
                answer = broker.receive(asked[broker], Deadline(0))
            except DeadlineExceeded:
                continue  # only a part of the response has arrived
            except ProtocolError:
                del asked[broker]
                if not asked:
                    raise
                continue
            for other in asked.keys() - {broker}:
                other.forget(asked[other])
            return answer
        if deadline.expired():
            return None
