"""The Metadata and CreateTopics APIs."""

from __future__ import annotations

from collections import Counter
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import topics as messages
from cloudevents_kafka.protocol.schema import NO_UUID
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._cluster import Topic
from tests.support.wire_broker._errors import ApiError, error_in
from tests.support.wire_broker.apis._configs import topic_configs

_MAX_PARTITIONS: Final = 10_000
_NO_OPERATIONS: Final = -(1 << 31)
_TOPIC_OPERATIONS: Final = 3576
_CLUSTER_OPERATIONS: Final = 8096
"""The bits of what a client may do: everything."""


def metadata(call: Call, request: messages.MetadataRequest) -> messages.MetadataResponse:
    """Return nodes and topics; a topic requested by name may be created.

    0.8 lists only the nodes that have a partition of the topics.
    """
    cluster = call.cluster
    topics = request.topics
    if topics is None or (call.version == 0 and not topics):
        topics = [messages.MetadataRequestTopic(name=name) for name in cluster.topics]
    rows = [_topic(call, topic, request) for topic in _distinct(topics)]
    has_brokers = call.release.number >= (0, 9) or any(row.partitions for row in rows)
    return messages.MetadataResponse(
        brokers=[
            messages.MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)
            for node in (cluster.nodes.values() if has_brokers else ())
        ],
        cluster_id=cluster.id,
        controller_id=min(cluster.nodes),
        topics=rows,
        cluster_authorized_operations=(
            _CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else _NO_OPERATIONS
        ),
    )


def _distinct(topics: list[messages.MetadataRequestTopic]) -> list[messages.MetadataRequestTopic]:
    return list({(topic.name, topic.topic_id): topic for topic in topics}.values())


def _topic(
    call: Call, request: messages.MetadataRequestTopic, whole: messages.MetadataRequest
) -> messages.MetadataResponseTopic:
    by_id = request.topic_id != NO_UUID
    row = messages.MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=None if by_id else request.name or "",
        topic_id=request.topic_id,
        partitions=[],
    )
    with error_in(row):
        row.name = call.topic_name(request.name or "", request.topic_id)
        topic = _find_topic(call, row.name, create=whole.allow_auto_topic_creation and not by_id)
        if whole.include_topic_authorized_operations:
            row.topic_authorized_operations = _TOPIC_OPERATIONS
        row.topic_id = topic.id
        row.partitions = [_partition(call, topic, number) for number in range(len(topic.partitions))]
    return row


def _find_topic(call: Call, name: str, *, create: bool) -> Topic:
    cluster, settings = call.cluster, call.cluster.settings
    if name not in cluster.topics:
        cluster.check_topic_name(name)
        if not (create and settings.auto_create):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            cluster.create_topic(name)
        except ApiError as error:
            if call.release.number < (3, 9):
                raise
            # KRaft's controller creates it later, and the broker says nothing of the reason.
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from error
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
    """Create topics, on any node, and return the response; a name that is there twice is refused."""
    times = Counter(topic.name for topic in request.topics)
    rows = {topic.name: topic for topic in request.topics}.values()
    created: list[Topic] = []
    response = messages.CreateTopicsResponse(topics=[])
    for topic in rows:
        response.topics.append(_create_topic(call, topic, created, is_single=times[topic.name] == 1))
        if call.release.number < (3, 9):  # later topics of a request do not collide with each other
            _add(call, request, created)
    _add(call, request, created)
    return response


def _add(call: Call, request: messages.CreateTopicsRequest, created: list[Topic]) -> None:
    while created:
        topic = created.pop(0)
        if not request.validate_only:
            call.cluster.add_topic(topic)


def _create_topic(
    call: Call, request: messages.CreatableTopic, created: list[Topic], *, is_single: bool
) -> messages.CreatableTopicResult:
    """Add a topic to those that are created, and return its row of the response."""
    row = messages.CreatableTopicResult(
        name=request.name,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=-1,
        replication_factor=-1,
    )
    with error_in(row):
        call.check(request.name)
        if not is_single:
            raise ApiError(ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name.")
        topic = _new_topic(call, request)
        created.append(topic)
        row.topic_id, row.num_partitions = topic.id, len(topic.partitions)
        row.replication_factor = len(call.cluster.nodes)
        row.configs = [
            messages.CreatableTopicConfigs(
                name=one.name,
                value=one.value,
                read_only=one.read_only,
                config_source=one.config_source,
                is_sensitive=one.is_sensitive,
            )
            for one in topic_configs(call, topic)
        ]
    return row


def _new_topic(call: Call, request: messages.CreatableTopic) -> Topic:
    """Return the topic of a request; raise `ApiError` if it cannot be created."""
    cluster = call.cluster
    settings = {config.name: config.value for config in request.configs}
    topic = cluster.new_topic(request.name, [], settings)
    if request.assignments:
        leaders = _assigned_leaders(call, request)
    else:
        count, replicas = request.num_partitions, request.replication_factor
        if count != -1 and not 0 < count <= _MAX_PARTITIONS:
            raise ApiError(ErrorCode.INVALID_PARTITIONS)
        if replicas != -1 and not 0 < replicas <= len(cluster.nodes):
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR)
        leaders = cluster.leaders(None if count == -1 else count)
    return cluster.new_topic(topic.name, leaders, settings)


def _assigned_leaders(call: Call, request: messages.CreatableTopic) -> list[int]:
    """Return the first replica of each partition; raise `ApiError` for an assignment that cannot be."""
    if (request.num_partitions, request.replication_factor) != (-1, -1):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    replicas = {one.partition_index: one.broker_ids for one in request.assignments}
    sizes = {len(ids) for ids in replicas.values()}
    if (
        sorted(replicas) != list(range(len(request.assignments)))
        or len(sizes) != 1
        or any(not ids or len(set(ids)) < len(ids) for ids in replicas.values())
        or any(not call.cluster.nodes.keys() >= set(ids) for ids in replicas.values())
    ):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    return [replicas[number][0] for number in range(len(replicas))]
