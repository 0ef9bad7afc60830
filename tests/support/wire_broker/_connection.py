"""`Connection`: reads the requests of one client, and handles and answers them in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import api_name
from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.schema import Structure
from tests.support.wire_broker._call import Call, read_call
from tests.support.wire_broker._cluster import Cluster, Node
from tests.support.wire_broker._errors import CloseConnection
from tests.support.wire_broker._listener import ClientSocket
from tests.support.wire_broker._releases import Release
from tests.support.wire_broker._sasl import Login, LoginFailed
from tests.support.wire_broker.apis import HANDLERS
from tests.support.wire_broker.faults import Faults

_HISTORY: Final = 10_000


@dataclass(frozen=True)
class ServerState:
    """The state that the connections of all nodes share, apart from the cluster."""

    cluster: Cluster
    release: Release
    users: Mapping[str, str]
    faults: Faults = field(default_factory=Faults)
    calls: deque[Call] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    connection_errors: deque[str] = field(default_factory=lambda: deque(maxlen=_HISTORY))


class Connection:
    """One client's connection to one node."""

    def __init__(self, state: ServerState, node: Node, client: ClientSocket) -> None:
        self._state: Final = state
        self._node: Final = node
        self._client: Final = client
        self._login: Final = Login(state.users)

    def serve(self) -> None:
        """Answer requests until the client or the broker closes; record why the broker did."""
        max_bytes = self._state.cluster.settings.max_request_bytes
        try:
            while (frame := self._client.read_frame(max_bytes)) is not None:
                self._serve_frame(frame)
        except CloseConnection as close:
            self._record_error(str(close))
        except ProtocolError as error:
            self._record_error(f"{type(error).__name__}: {error}")

    def _serve_frame(self, frame: bytes) -> None:
        if self._login.raw:
            self._log_in(frame)
            return
        try:
            call = read_call(
                frame,
                self._state.release,
                cluster=self._state.cluster,
                node=self._node,
                login=self._login,
                connection=self._client.number,
            )
        except ProtocolError as error:
            if not self._state.release.drops_unreadable:
                raise
            self._record_error(f"not answered: {error}")
            return
        self._state.calls.append(call)
        if not self._login.allows(call.key):
            raise CloseConnection(f"{api_name(call.key)} must come after the login")
        response = self._state.faults.wrap(call, lambda: self._handle(call))()
        if response is not None:
            answer = frames.encode_response(response, call.version, correlation_id=call.correlation_id)
            for edit in call.response_edits:
                answer = edit(answer)
            self._send(answer)
        if call.close_after_response:
            raise CloseConnection

    def _handle(self, call: Call) -> Structure | None:
        with call.cluster.changes:
            if call.cluster.changes.closed:
                raise CloseConnection
            return HANDLERS[call.key](call, call.message)

    def _log_in(self, message: bytes) -> None:
        """Answer a message of the mechanism, which has only its size in front."""
        try:
            answer = self._login.answer(message)
        except LoginFailed as failed:
            raise CloseConnection(f"login failed: {failed}") from failed
        self._send(frames.add_size(answer))

    def _send(self, data: bytes) -> None:
        if not self._client.send(data):
            raise CloseConnection

    def _record_error(self, text: str) -> None:
        if text:
            self._state.connection_errors.append(
                f"node {self._node.id}, connection {self._client.number}: {text}"
            )
