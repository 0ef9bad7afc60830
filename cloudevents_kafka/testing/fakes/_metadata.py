"""The result of `list_topics` in the fakes: metadata objects of confluent-kafka that describe one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudevents_kafka.testing.fakes._checks import check_seconds, is_topic
from cloudevents_kafka.testing.fakes._log import FakeLog, kafka_error

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import ClusterMetadata, TopicMetadata

_BROKER = 1


def cluster_metadata(log: FakeLog, topic: str | None, timeout: float) -> ClusterMetadata:
    """Return the metadata of a topic, or of all topics in the log that contain messages."""
    # The import takes long, and few tests need it.
    from confluent_kafka.admin._metadata import BrokerMetadata, ClusterMetadata

    if not (topic is None or isinstance(topic, str)):
        raise TypeError(f"argument 1 must be str or None, not {type(topic).__name__}")
    check_seconds(timeout)
    broker: Any = BrokerMetadata()  # its attributes have the types of their first values
    broker.id, broker.host, broker.port = _BROKER, "localhost", 9092
    cluster: Any = ClusterMetadata()
    cluster.cluster_id, cluster.controller_id, cluster.brokers = "fake", _BROKER, {_BROKER: broker}
    cluster.orig_broker_id, cluster.orig_broker_name = _BROKER, f"localhost:9092/{_BROKER}"
    names = {name for name, _ in log.topic_partitions()} if topic is None else {topic}
    cluster.topics = {name: _topic_metadata(log, name) for name in sorted(names)}
    made: ClusterMetadata = cluster
    return made


def _topic_metadata(log: FakeLog, name: str) -> TopicMetadata:
    from confluent_kafka.admin._metadata import PartitionMetadata, TopicMetadata

    topic: Any = TopicMetadata()
    topic.topic = name
    if not log.has_topic(name):
        topic.error = kafka_error("UNKNOWN_TOPIC_OR_PART" if is_topic(name) else "TOPIC_EXCEPTION")
    for number in range(0 if topic.error else log.partition_count(name)):
        partition: Any = PartitionMetadata()
        partition.id, partition.leader, partition.replicas, partition.isrs = (
            number,
            _BROKER,
            [_BROKER],
            [_BROKER],
        )
        topic.partitions[number] = partition
    made: TopicMetadata = topic
    return made
