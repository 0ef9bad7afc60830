"""Functions that administer a local broker with short-lived confluent-kafka clients.

The import of this module is slow, because the module imports confluent-kafka.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cloudevents_kafka.testing.local._process import Process
from cloudevents_kafka.testing.local._settings import as_texts


def wait_until_ready(process: Process, bootstrap_servers: str, seconds: float) -> None:
    """Wait until a local broker is ready.

    Raises `BrokerFailed` if the broker ends, or if the broker is not ready after ``seconds``.
    """
    client = _admin_client(bootstrap_servers)
    process.wait_until(lambda: _is_ready(client), seconds)


def create_topic(bootstrap_servers: str, name: str, partitions: int, config: Mapping[str, object]) -> None:
    """Create a topic with one replica, and wait until the broker shows a leader of each partition.

    Raises KafkaException if the broker refuses to create the topic.
    """
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=as_texts(config))
    client = _admin_client(bootstrap_servers)
    _wait(client.create_topics([topic], operation_timeout=10))
    # The controller answers before the broker knows the topic.
    deadline = time.monotonic() + 30
    while not _has_leaders(client, name):
        if time.monotonic() > deadline:
            raise TimeoutError(f"topic {name} must have leaders within 30 seconds of its creation")
        time.sleep(0.01)


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Delete a topic; raise KafkaException if the broker refuses to delete it."""
    client = _admin_client(bootstrap_servers)
    _wait(client.delete_topics([name], operation_timeout=10))


def warm_up(bootstrap_servers: str) -> None:
    """Use a broker as tests use a broker, so that it loads its classes and creates the internal topics."""
    topic, common = "warm-up", {"bootstrap.servers": bootstrap_servers, "log_level": 0}
    create_topic(bootstrap_servers, topic, 2, {"cleanup.policy": "compact"})
    producer = Producer({**common, "transactional.id": "warm-up", "compression.type": "lz4"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"value", b"key", headers=[("name", b"value")])
    producer.commit_transaction(30)
    for protocol in ("classic", "consumer"):
        group = {"group.id": f"warm-up-{protocol}", "group.protocol": protocol}
        consumer = Consumer({**common, **group, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        message = consumer.poll(30)
        if message is not None and message.error() is None:
            consumer.commit(message=message, asynchronous=False)
        consumer.close()
    client = _admin_client(bootstrap_servers)
    _wait(client.list_consumer_group_offsets([ConsumerGroupTopicPartitions("warm-up-classic")]))
    delete_topic(bootstrap_servers, topic)


def _admin_client(bootstrap_servers: str) -> AdminClient:
    # A starting broker refuses connections: retry often, without log messages.
    retry = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50}
    return AdminClient({"bootstrap.servers": bootstrap_servers, **retry})


def _is_ready(client: AdminClient) -> bool:
    """Return whether a broker responds, and every partition has a leader."""
    try:
        cluster = client.list_topics(timeout=0.25)
    except KafkaException:
        return False
    partitions = [part for topic in cluster.topics.values() for part in topic.partitions.values()]
    return bool(cluster.brokers) and all(part.leader >= 0 for part in partitions)


def _has_leaders(client: AdminClient, topic: str) -> bool:
    """Return whether the broker shows a leader of each partition of a topic; do not create the topic."""
    [future] = client.describe_topics(TopicCollection([topic])).values()
    try:
        description = future.result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return False
    return all(partition.leader is not None for partition in description.partitions)


def _wait(futures: Mapping[Any, Future[Any]]) -> None:
    # The caller keeps the client: a client that is deleted fails its pending operations.
    for future in futures.values():
        future.result(30)
