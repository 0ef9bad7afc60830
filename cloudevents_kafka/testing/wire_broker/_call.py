"""`Call`: one request with its broker and connection, for handlers and faults."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

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


@dataclass(eq=False, repr=False, kw_only=True)
class Call(ParsedRequest):
    """A request, the node that received it, and the faults in its response."""

    cluster: Cluster
    node: Node
    release: Release
    login: Login
    connection: int
    """The connection's number on its node, from 1."""
    injected_errors: list[InjectedError] = field(default_factory=list)
    response_edits: list[Callable[[bytes], bytes]] = field(default_factory=list)
    """Functions that change the response's frame, its size included."""
    close_after_response: bool = False

    def check(self, topic: str | None = None, partition: int | None = None) -> None:
        """Raise the injected error of a topic or partition; of the whole request if both are None."""
        for injected in self.injected_errors:
            if injected.topic in {None, topic} and injected.partition in {None, partition}:
                raise ApiError(injected.code)

    def topic_name(self, name: str, id: uuid.UUID) -> str:
        """Return ``name``, or the name of the topic with the id that newer versions send instead."""
        return self.cluster.topic_by_id(id).name if id != NO_UUID else name

    def led_partition(self, topic: str, partition: int, epoch: int = -1) -> Partition:
        """Return a partition; raise `ApiError` if this node does not lead it."""
        self.check(topic, partition)
        return self.cluster.led_partition(self.node.id, topic, partition, epoch)
