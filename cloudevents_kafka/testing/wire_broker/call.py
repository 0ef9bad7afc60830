"""One request on its way: what handlers and faults know of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.schema import NO_UUID
from cloudevents_kafka.testing.wire_broker.broker_versions import Dialect
from cloudevents_kafka.testing.wire_broker.cluster import Cluster, Node, Partition
from cloudevents_kafka.testing.wire_broker.errors import Refused
from cloudevents_kafka.testing.wire_broker.requests import Asked
from cloudevents_kafka.testing.wire_broker.sasl import Login


class Denial(NamedTuple):
    """An error that is answered in place of the truth; None stands for any."""

    code: int
    topic: str | None
    partition: int | None


class Call:
    """A request, the node that got it, and how its answer is to be spoilt."""

    def __init__(
        self, asked: Asked, *, cluster: Cluster, node: Node, dialect: Dialect, login: Login, connection: int
    ) -> None:
        """Begin with nothing spoilt."""
        self.cluster: Final = cluster
        self.node: Final = node
        self.dialect: Final = dialect
        self.login: Final = login
        self.connection: Final = connection
        self.key: Final = asked.key
        self.version: Final = asked.version
        self.correlation_id: Final = asked.correlation_id
        self.client_id: Final = asked.client_id
        self.message: Final = asked.message
        self.known: Final = asked.known
        self.denials: Final[list[Denial]] = []
        self.edits: Final[list[Callable[[bytes], bytes]]] = []
        """What is done to the frame of the answer, its size included."""
        self.hang_up = False
        """Whether the connection is closed once the answer is sent."""

    def check(self, topic: str | None = None, partition: int | None = None) -> None:
        """Raise the error that this topic or partition, or without both the whole request, is to get."""
        for denial in self.denials:
            if denial.topic in {None, topic} and denial.partition in {None, partition}:
                raise Refused(denial.code)

    def name(self, name: str, id: uuid.UUID) -> str:
        """Return a topic's name, which newer versions give by its id; `Refused`."""
        return self.cluster.topic_of(id).name if id != NO_UUID else name

    def led(self, topic: str, partition: int, epoch: int = -1) -> Partition:
        """Find a partition that this node must lead; `Refused`."""
        self.check(topic, partition)
        return self.cluster.led(self.node.id, topic, partition, epoch)
