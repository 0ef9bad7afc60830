"""Short-lived confluent-kafka clients for the administration of a local broker."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

# A starting broker refuses connections: retry often, without log messages.
_RETRY: Final = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50}
_WARM_UP_TOPIC: Final = "warm-up"


def admin_client(bootstrap_servers: str) -> AdminClient:
    """Return an admin client that logs nothing while the broker starts."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": bootstrap_servers, **_RETRY})


def is_ready(client: AdminClient, seconds: float) -> bool:
    """Return whether a broker answers and every partition has a leader."""
    from confluent_kafka import KafkaException

    try:
        cluster = client.list_topics(timeout=seconds)
    except KafkaException:
        return False
    partitions = [part for topic in cluster.topics.values() for part in topic.partitions.values()]
    return bool(cluster.brokers) and all(part.leader >= 0 for part in partitions)


def create_topic(bootstrap_servers: str, name: str, partitions: int, config: Mapping[str, object]) -> None:
    """Create a topic with one replica. Raises KafkaException if the broker refuses."""
    from confluent_kafka.cimpl import NewTopic

    texts = {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()
    }
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=texts)
    client = admin_client(bootstrap_servers)
    _wait(client.create_topics([topic], operation_timeout=10))


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Delete a topic. Raises KafkaException if the broker refuses."""
    client = admin_client(bootstrap_servers)
    _wait(client.delete_topics([name], operation_timeout=10))


def warm_up(bootstrap_servers: str) -> None:
    """Use a broker as tests do, so that it loads the classes and creates the internal topics."""
    create_topic(bootstrap_servers, _WARM_UP_TOPIC, 2, {"cleanup.policy": "compact"})
    common = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
    _produce(common)
    for protocol in ("classic", "consumer"):
        _consume(common, protocol)
    _list_offsets(bootstrap_servers)
    delete_topic(bootstrap_servers, _WARM_UP_TOPIC)


def _produce(common: Mapping[str, object]) -> None:
    from confluent_kafka import Producer

    producer = Producer({**common, "transactional.id": "warm-up", "compression.type": "lz4"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(_WARM_UP_TOPIC, b"value", b"key", headers=[("name", b"value")])
    producer.commit_transaction(30)


def _consume(common: Mapping[str, object], protocol: str) -> None:
    from confluent_kafka import Consumer

    group = {"group.id": f"warm-up-{protocol}", "group.protocol": protocol}
    consumer = Consumer({**common, **group, "auto.offset.reset": "earliest"})
    consumer.subscribe([_WARM_UP_TOPIC])
    message = consumer.poll(30)
    if message is not None and message.error() is None:
        consumer.commit(message=message, asynchronous=False)
    consumer.close()


def _list_offsets(bootstrap_servers: str) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions

    client = admin_client(bootstrap_servers)
    _wait(client.list_consumer_group_offsets([ConsumerGroupTopicPartitions("warm-up-classic")]))


def _wait(futures: Mapping[Any, Future[Any]]) -> None:
    # The caller keeps the client: a client that is deleted fails its pending operations.
    for future in futures.values():
        future.result(30)
