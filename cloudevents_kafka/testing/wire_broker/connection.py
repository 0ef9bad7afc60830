"""A connection of today's protocol: its requests are read, handled and answered one after the other."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.testing.wire_broker import requests
from cloudevents_kafka.testing.wire_broker.apis import HANDLERS
from cloudevents_kafka.testing.wire_broker.broker_versions import Dialect
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.cluster import Cluster, Node
from cloudevents_kafka.testing.wire_broker.errors import Hangup, Muted
from cloudevents_kafka.testing.wire_broker.faults import Faults
from cloudevents_kafka.testing.wire_broker.listener import Connection
from cloudevents_kafka.testing.wire_broker.sasl import Login
from cloudevents_kafka.testing.wire_broker.scram import Denied

_REMEMBERED: Final = 10_000
_SIZE: Final = struct.Struct(">i")


class Desk:
    """What the sessions of all nodes have in common, beside the cluster itself."""

    def __init__(self, cluster: Cluster, dialect: Dialect, users: Mapping[str, str]) -> None:
        """Begin with nothing seen."""
        self.cluster: Final = cluster
        self.dialect: Final = dialect
        self.users: Final = users
        self.faults: Final = Faults()
        self.calls: Final[deque[Call]] = deque(maxlen=_REMEMBERED)
        self.notes: Final[deque[str]] = deque(maxlen=_REMEMBERED)


class Session:
    """One connection to one node."""

    def __init__(self, desk: Desk, node: Node, connection: Connection) -> None:
        """Begin before the login."""
        self._desk: Final = desk
        self._node: Final = node
        self._connection: Final = connection
        self._login: Final = Login(desk.users)

    def serve(self) -> None:
        """Serve the client until it, or the broker, has enough; why the broker has is noted."""
        most = self._desk.cluster.settings.max_request_bytes
        try:
            while (frame := self._connection.frame(most)) is not None:
                self._one(frame)
        except Hangup as hangup:
            self._note(hangup.reason)
        except ProtocolError as error:
            self._note(f"{type(error).__name__}: {error}")

    def _one(self, frame: bytes) -> None:
        if self._login.bare:
            self._log_in(frame)
            return
        try:
            asked = requests.read(self._desk.dialect, frame)
        except Muted as muted:
            self._note(f"not answered: {muted}")
            return
        call = Call(
            asked,
            cluster=self._desk.cluster,
            node=self._node,
            dialect=self._desk.dialect,
            login=self._login,
            connection=self._connection.number,
        )
        self._desk.calls.append(call)
        if not self._login.allows(call.key):
            raise Hangup(f"API key {call.key} before the login")
        response = self._desk.faults.applied(call, lambda: self._handled(call))()
        if response is not None:
            self._answer(call, response)
        if call.hang_up:
            raise Hangup

    def _handled(self, call: Call) -> Structure | None:
        with call.cluster.changed:
            if call.cluster.closed:
                raise Hangup
            return HANDLERS[call.key](call, call.message)

    def _answer(self, call: Call, response: Structure) -> None:
        frame = frames.encode_response(response, call.version, correlation_id=call.correlation_id)
        for edit in call.edits:
            frame = edit(frame)
        self._send(frame)

    def _log_in(self, message: bytes) -> None:
        """Take one of the mechanism's own messages, which have only a size in front."""
        try:
            answer = self._login.answer(message)
        except Denied as denied:
            raise Hangup(f"login failed: {denied}") from denied
        self._send(_SIZE.pack(len(answer)) + answer)

    def _send(self, data: bytes) -> None:
        if not self._connection.send(data):
            raise Hangup

    def _note(self, text: str) -> None:
        if text:
            self._desk.notes.append(f"node {self._node.id}, connection {self._connection.number}: {text}")
