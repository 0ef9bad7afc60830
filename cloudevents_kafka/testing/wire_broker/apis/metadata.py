"""What clients ask first: which versions, which brokers, which topics, which coordinator."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from cloudevents_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from cloudevents_kafka.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from cloudevents_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from cloudevents_kafka.protocol.schema import NO_UUID
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.cluster import Topic
from cloudevents_kafka.testing.wire_broker.errors import Refused, outcome

_API_VERSIONS: Final = 18
_MOST_PARTITIONS: Final = 10_000


def api_versions(call: Call, _asked: ApiVersionsRequest) -> ApiVersionsResponse:
    """List the versions; to an unknown version of the question itself, in version 0 with 35."""
    code = outcome(call.check)
    listed = call.dialect.listed
    if not call.known:
        code = ErrorCode.UNSUPPORTED_VERSION
        listed = {_API_VERSIONS: listed[_API_VERSIONS]} if call.dialect.lists_itself else {}
    return ApiVersionsResponse(
        error_code=code,
        api_keys=[
            ApiVersion(api_key=key, min_version=range_.first, max_version=range_.last)
            for key, range_ in listed.items()
        ],
    )


def metadata(call: Call, asked: MetadataRequest) -> MetadataResponse:
    """Tell nodes and topics; topics that are asked for by name may be made."""
    cluster = call.cluster
    topics = asked.topics
    if topics is None or (call.version == 0 and not topics):
        topics = [MetadataRequestTopic(name=name) for name in cluster.topics]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)
            for node in cluster.nodes.values()
        ],
        cluster_id=cluster.id,
        controller_id=min(cluster.nodes),
        topics=[_topic(call, topic, create=asked.allow_auto_topic_creation) for topic in topics],
    )


def _topic(call: Call, asked: MetadataRequestTopic, *, create: bool) -> MetadataResponseTopic:
    name = asked.name
    try:
        if asked.topic_id != NO_UUID:
            name = call.cluster.topic_of(asked.topic_id).name
        topic = _found(call, name or "", create=create)
    except Refused as refused:
        return MetadataResponseTopic(
            error_code=refused.code,
            name=name if call.version >= 12 else name or "",
            topic_id=asked.topic_id,
            partitions=[],
        )
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        partitions=[_partition(call, topic, number) for number in range(len(topic.partitions))],
    )


def _found(call: Call, name: str, *, create: bool) -> Topic:
    settings = call.cluster.settings
    known = name in call.cluster.topics
    topic = call.cluster.topic(name, create=create and settings.auto_create)
    if not known and not settings.elects_at_once:
        raise Refused(ErrorCode.LEADER_NOT_AVAILABLE)
    call.check(name)
    return topic


def _partition(call: Call, topic: Topic, number: int) -> MetadataResponsePartition:
    """Name the leader first among the replicas, which are all nodes."""
    partition = topic.partitions[number]
    others = [id for id in call.cluster.nodes if id != partition.leader]
    replicas = [partition.leader, *others] if partition.leader >= 0 else others
    code = outcome(lambda: call.check(topic.name, number))
    return MetadataResponsePartition(
        error_code=code or (ErrorCode.LEADER_NOT_AVAILABLE if partition.leader < 0 else ErrorCode.NONE),
        partition_index=number,
        leader_id=partition.leader,
        leader_epoch=partition.epoch,
        replica_nodes=replicas,
        isr_nodes=replicas,
    )


def find_coordinator(call: Call, asked: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Name the node that keeps a group; transactional ids have none here."""
    if call.version >= 4:
        found = [_coordinator(call, key, asked.key_type) for key in asked.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = _coordinator(call, asked.key, asked.key_type)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _coordinator(call: Call, key: str, key_type: int) -> Coordinator:
    code = outcome(call.check) or (ErrorCode.NONE if key_type == 0 else ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if code:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=None)
    id, host, port = call.cluster.coordinator(key)
    return Coordinator(
        key=key, node_id=id, host=host, port=port, error_code=ErrorCode.NONE, error_message=None
    )


def create_topics(call: Call, asked: CreateTopicsRequest) -> CreateTopicsResponse:
    """Make topics; any node does it."""
    return CreateTopicsResponse(
        topics=[_created(call, topic, validate_only=asked.validate_only) for topic in asked.topics]
    )


def _created(call: Call, asked: CreatableTopic, *, validate_only: bool) -> CreatableTopicResult:
    name, count = asked.name, asked.num_partitions
    if count == -1:
        count = len(asked.assignments) or call.cluster.settings.partitions

    def create() -> None:
        call.check(name)
        if name in call.cluster.topics:
            raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS)
        if not 0 < count <= _MOST_PARTITIONS:
            raise Refused(ErrorCode.INVALID_PARTITIONS)
        if not (asked.replication_factor == -1 or 0 < asked.replication_factor <= len(call.cluster.nodes)):
            raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR)
        if validate_only:
            call.cluster.check_name(name)
        else:
            call.cluster.create(name, count)

    code = outcome(create)
    made = call.cluster.topics.get(name)
    return CreatableTopicResult(
        name=name,
        topic_id=NO_UUID if code or made is None else made.id,
        error_code=code,
        error_message=None,
        num_partitions=-1 if code else count,
        replication_factor=-1 if code else len(call.cluster.nodes),
    )
