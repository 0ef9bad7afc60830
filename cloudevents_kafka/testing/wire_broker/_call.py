"""`Call`: one request with its broker and connection, for handlers and faults."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.schema import NO_UUID
from cloudevents_kafka.testing.wire_broker._cluster import Cluster, Node, Partition
from cloudevents_kafka.testing.wire_broker._errors import ApiError
from cloudevents_kafka.testing.wire_broker._releases import Release
from cloudevents_kafka.testing.wire_broker._requests import ParsedRequest
from cloudevents_kafka.testing.wire_broker._sasl import Login


class InjectedError(NamedTuple):
    """An error to answer with; None as a topic or partition matches all."""

    code: int
    topic: str | None
    partition: int | None


class Call:
    """A request, the node that received it, and the faults in its response."""

    def __init__(
        self,
        request: ParsedRequest,
        *,
        cluster: Cluster,
        node: Node,
        release: Release,
        login: Login,
        connection: int,
    ) -> None:
        self.cluster: Final = cluster
        self.node: Final = node
        self.release: Final = release
        self.login: Final = login
        self.connection: Final = connection
        """The connection's number on its node, from 1."""
        self.key: Final = request.key
        self.version: Final = request.version
        self.correlation_id: Final = request.correlation_id
        self.client_id: Final = request.client_id
        self.message: Final = request.message
        self.supported: Final = request.supported
        self.injected_errors: Final[list[InjectedError]] = []
        self.response_edits: Final[list[Callable[[bytes], bytes]]] = []
        """Functions that change the response's frame, its size included."""
        self.close_after_response = False

    def check(self, topic: str | None = None, partition: int | None = None) -> None:
        """Raise the injected error of a topic or partition; of the whole request if both are None."""
        for injected in self.injected_errors:
            if injected.topic in {None, topic} and injected.partition in {None, partition}:
                raise ApiError(injected.code)

    def topic_name(self, name: str, id: uuid.UUID) -> str:
        """Return ``name``, or the name of the topic with ``id`` as newer versions send; `ApiError`."""
        return self.cluster.topic_by_id(id).name if id != NO_UUID else name

    def led_partition(self, topic: str, partition: int, epoch: int = -1) -> Partition:
        """Return a partition that this node must lead; `ApiError`."""
        self.check(topic, partition)
        return self.cluster.led_partition(self.node.id, topic, partition, epoch)
