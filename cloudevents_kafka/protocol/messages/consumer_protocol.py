"""What consumers of a group tell each other through its coordinator, who does not look into it.

Each is preceded by its version, an int16. Version 0 is understood by all; later ones
add what incremental rebalancing needs.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema.message import MessageSpec, Structure, wire
from cloudevents_kafka.protocol.schema.types import Bytes, Int16, Int32, String


class Subscription(Structure, kw_only=True):
    """What a member wants to read."""

    spec: ClassVar = MessageSpec.of("ConsumerProtocolSubscription", -1, "data", versions="0")

    version: Int16 = 0
    topics: list[String]
    user_data: Annotated[Bytes | None, wire(nullable="0+")] = None


class AssignedTopic(Structure, kw_only=True):
    """The partitions of one topic."""

    topic: String
    partitions: list[Int32]


class Assignment(Structure, kw_only=True):
    """What a member is to read."""

    spec: ClassVar = MessageSpec.of("ConsumerProtocolAssignment", -1, "data", versions="0")

    version: Int16 = 0
    topics: list[AssignedTopic]
    user_data: Annotated[Bytes | None, wire(nullable="0+")] = None
