"""FindCoordinator (10), in the guide ConsumerMetadata: the coordinator of a group or transactional id."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import Int8, Int16, Int32, MessageSpec, String, Structure, wire


class FindCoordinatorRequest(Structure, kw_only=True):
    """Find the coordinator of a group (key type 0) or transactional id (1); from version 4 on, of several."""

    spec: ClassVar = MessageSpec.of(
        "FindCoordinator", 10, "request", versions="0-6", flexible="3+", guide="ConsumerMetadataRequest"
    )

    key: Annotated[String, wire("0-3", guide="ConsumerGroup")] = ""
    key_type: Annotated[Int8, wire("1+")] = 0
    coordinator_keys: Annotated[list[String], wire("4+")] = []


class Coordinator(Structure, kw_only=True):
    """A coordinator."""

    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: Annotated[String | None, wire(nullable="4+", ignorable=True)]


class FindCoordinatorResponse(Structure, kw_only=True):
    """The coordinator's id and address; -1 and "" for an error."""

    spec: ClassVar = MessageSpec.of(
        "FindCoordinator", 10, "response", versions="0-6", flexible="3+", guide="ConsumerMetadataResponse"
    )

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Annotated[Int16, wire("0-3")] = 0
    error_message: Annotated[String | None, wire("1-3", nullable="1-3", ignorable=True)] = ""
    node_id: Annotated[Int32, wire("0-3", guide="CoordinatorId", optional="0")] = 0
    host: Annotated[String, wire("0-3", guide="CoordinatorHost", optional="0")] = ""
    port: Annotated[Int32, wire("0-3", guide="CoordinatorPort", optional="0")] = 0
    coordinators: Annotated[list[Coordinator], wire("4+")] = []
