"""The Metadata and CreateTopics APIs."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import topics as messages
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._cluster import Topic
from cloudevents_kafka.testing.wire_broker._errors import ApiError, error_in

_MAX_PARTITIONS: Final = 10_000


def metadata(call: Call, request: messages.MetadataRequest) -> messages.MetadataResponse:
    """Return nodes and topics; a topic requested by name may be created."""
    cluster = call.cluster
    topics = request.topics
    if topics is None or (call.version == 0 and not topics):
        topics = [messages.MetadataRequestTopic(name=name) for name in cluster.topics]
    return messages.MetadataResponse(
        brokers=[
            messages.MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)
            for node in cluster.nodes.values()
        ],
        cluster_id=cluster.id,
        controller_id=min(cluster.nodes),
        topics=[_topic(call, topic, create=request.allow_auto_topic_creation) for topic in topics],
    )


def _topic(
    call: Call, request: messages.MetadataRequestTopic, *, create: bool
) -> messages.MetadataResponseTopic:
    name = request.name if call.version >= 12 else request.name or ""
    row = messages.MetadataResponseTopic(
        error_code=ErrorCode.NONE, name=name, topic_id=request.topic_id, partitions=[]
    )
    with error_in(row):
        row.name = call.topic_name(name or "", request.topic_id) or name
        topic = _find_topic(call, row.name or "", create=create)
        row.topic_id = topic.id
        row.partitions = [_partition(call, topic, number) for number in range(len(topic.partitions))]
    return row


def _find_topic(call: Call, name: str, *, create: bool) -> Topic:
    cluster, settings = call.cluster, call.cluster.settings
    if name not in cluster.topics:
        cluster.check_topic_name(name)
        if not (create and settings.auto_create):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        cluster.create_topic(name)
        if not settings.elects_leaders_at_once:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
    call.check(name)
    return cluster.topics[name]


def _partition(call: Call, topic: Topic, number: int) -> messages.MetadataResponsePartition:
    """Return a partition; its replicas are all nodes, the leader first."""
    partition = topic.partitions[number]
    others = [id for id in call.cluster.nodes if id != partition.leader]
    replicas = [partition.leader, *others] if partition.leader >= 0 else others
    row = messages.MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if partition.leader < 0 else ErrorCode.NONE,
        partition_index=number,
        leader_id=partition.leader,
        leader_epoch=partition.epoch,
        replica_nodes=replicas,
        isr_nodes=replicas,
    )
    with error_in(row):
        call.check(topic.name, number)
    return row


def create_topics(call: Call, request: messages.CreateTopicsRequest) -> messages.CreateTopicsResponse:
    """Create topics, on any node, and return the response."""
    return messages.CreateTopicsResponse(
        topics=[_create_topic(call, topic, validate_only=request.validate_only) for topic in request.topics]
    )


def _create_topic(
    call: Call, request: messages.CreatableTopic, *, validate_only: bool
) -> messages.CreatableTopicResult:
    name, count, replicas = request.name, request.num_partitions, request.replication_factor
    if count == -1:
        count = len(request.assignments) or call.cluster.settings.partitions
    row = messages.CreatableTopicResult(
        name=name, error_code=ErrorCode.NONE, error_message=None, num_partitions=-1, replication_factor=-1
    )
    with error_in(row):
        call.check(name)
        if name in call.cluster.topics:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS)
        if not 0 < count <= _MAX_PARTITIONS:
            raise ApiError(ErrorCode.INVALID_PARTITIONS)
        if replicas != -1 and not 0 < replicas <= len(call.cluster.nodes):
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR)
        if validate_only:
            call.cluster.check_topic_name(name)
        else:
            row.topic_id = call.cluster.create_topic(name, count).id
        row.num_partitions, row.replication_factor = count, len(call.cluster.nodes)
    return row
