"""`Call`: one request with its broker and connection, for handlers and faults."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey, api_name
from cloudevents_kafka.protocol.errors import Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest, RequestHeader
from cloudevents_kafka.protocol.messages.offsets import OffsetCommitRequestBeta
from cloudevents_kafka.protocol.schema import NEWEST, NO_UUID, Structure
from tests.support.wire_broker._cluster import Cluster, Node, Partition
from tests.support.wire_broker._errors import ApiError
from tests.support.wire_broker._new_groups import ConsumerGroupHeartbeatRequest
from tests.support.wire_broker._releases import Release
from tests.support.wire_broker._requests import decode_request
from tests.support.wire_broker._sasl import Login

_BY_ID: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 13,
    ApiKey.FETCH: 13,
    ApiKey.OFFSET_COMMIT: 10,
    ApiKey.OFFSET_FETCH: 10,
}
"""The versions from which requests have the ids of topics, in place of names."""
_START: Final = struct.Struct(">hhi")  # API key, API version, correlation id


class InjectedError(NamedTuple):
    """An error to answer with; None as a topic or partition matches all."""

    code: int
    topic: str | None
    partition: int | None


@dataclass(eq=False, repr=False, kw_only=True)
class Call:
    """A request, the node that received it, and the faults in its response.

    Examples:
        >>> from cloudevents_kafka.protocol import Client
        >>> from wire_broker import WireBroker
        >>> with WireBroker() as broker:
        ...     with Client(broker.bootstrap_servers, client_id="mail") as client:
        ...         partitions = client.partitions("orders")
        ...     {call.client_id for call in broker.calls()}
        {'mail'}
    """

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: Structure
    supported: bool = True
    """False for an ApiVersions request of a version that the release does not have."""
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
        is_by_id = id != NO_UUID or self.version >= _BY_ID.get(self.key, NEWEST)
        return self.cluster.topic_by_id(id).name if is_by_id else name

    def led_partition(self, topic: str, partition: int, epoch: int = -1) -> Partition:
        """Return a partition; raise `ApiError` if this node does not lead it."""
        self.check(topic, partition)
        return self.cluster.led_partition(self.node.id, topic, partition, epoch)


def read_call(frame: bytes, release: Release, **context: Any) -> Call:
    """Return the call of a request in a context; raise `ProtocolError` if the release cannot read it."""
    if len(frame) < _START.size:
        raise Truncated(_START.size - len(frame), at=0)
    key, version, _ = _START.unpack_from(frame)
    accepted = release.versions.get(key)
    if accepted is None:
        raise Unsupported(
            f"{api_name(key)} (API key {key}), version {version}: this {release.name} has no such API"
        )
    is_accepted = version in accepted
    if not is_accepted:
        is_clamped = version > accepted.last and key in release.clamped_apis
        if key != ApiKey.API_VERSIONS and not is_clamped:
            raise Unsupported(
                f"{api_name(key)}, version {version}: the broker {release.name} accepts {accepted}"
            )
        version = accepted.last
    header, at = decode_request(RequestHeader, frames.request_header(key, version), frame)
    context |= {"release": release, "correlation_id": header.correlation_id, "client_id": header.client_id}
    if key == ApiKey.API_VERSIONS and not is_accepted:
        return Call(key=key, version=0, message=ApiVersionsRequest(), supported=False, **context)
    beta = release.beta_offset_commit and (key, version) == (ApiKey.OFFSET_COMMIT, 0)
    # Bytes may follow: brokers ignore them, and librdkafka sends some after Metadata 13.
    message, _ = decode_request(OffsetCommitRequestBeta if beta else _request_of(key), version, frame, at)
    return Call(key=key, version=version, message=message, **context)


def _request_of(key: int) -> type[Structure]:
    return ConsumerGroupHeartbeatRequest if key == ApiKey.CONSUMER_GROUP_HEARTBEAT else APIS[key].request
