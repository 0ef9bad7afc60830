"""Short-lived confluent-kafka clients for looking after a local broker."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

# A broker that is starting refuses connections: try often, say nothing.
_PATIENT = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50}


def admin(bootstrap_servers: str) -> AdminClient:
    """Make an admin client that is quiet about a broker that is not there yet."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": bootstrap_servers, **_PATIENT})


def is_ready(client: AdminClient, seconds: float) -> bool:
    """Say whether a broker answers and every partition it knows has a leader."""
    from confluent_kafka import KafkaException

    try:
        cluster = client.list_topics(timeout=seconds)
    except KafkaException:
        return False
    led = all(part.leader >= 0 for topic in cluster.topics.values() for part in topic.partitions.values())
    return bool(cluster.brokers) and led


def create_topic(bootstrap_servers: str, name: str, partitions: int, config: Mapping[str, object]) -> None:
    """Create a topic with one replica; KafkaException if the broker refuses."""
    from confluent_kafka.cimpl import NewTopic

    texts = {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()
    }
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=texts)
    client = admin(bootstrap_servers)
    _wait(client.create_topics([topic], operation_timeout=10))


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Delete a topic; KafkaException if the broker refuses."""
    client = admin(bootstrap_servers)
    _wait(client.delete_topics([name], operation_timeout=10))


def exercise(bootstrap_servers: str) -> None:
    """Let a broker do once what tests do, so that it has loaded the classes for it."""
    from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer

    create_topic(bootstrap_servers, "warm-up", 2, {"cleanup.policy": "compact"})
    common = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
    producer = Producer({**common, "transactional.id": "warm-up", "compression.type": "lz4"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("warm-up", b"value", b"key", headers=[("name", b"value")])
    producer.commit_transaction(30)
    for protocol in ("classic", "consumer"):
        settings = {
            "group.id": f"warm-up-{protocol}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer({**common, **settings})
        consumer.subscribe(["warm-up"])
        message = consumer.poll(30)
        if message is not None and message.error() is None:
            consumer.commit(message=message, asynchronous=False)
        consumer.close()
    client = admin(bootstrap_servers)
    _wait(client.list_consumer_group_offsets([ConsumerGroupTopicPartitions("warm-up-classic")]))
    delete_topic(bootstrap_servers, "warm-up")


def _wait(futures: Mapping[Any, Future[Any]]) -> None:
    # The client must outlive this: dropped, it fails what it has not done yet.
    for future in futures.values():
        future.result(30)
