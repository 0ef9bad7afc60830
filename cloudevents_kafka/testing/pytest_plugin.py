"""Fixtures for pytest, which finds them in each environment where this package is installed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from cloudevents_kafka.testing.local import LocalBroker

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[LocalBroker]:
    """Run one real local Kafka broker for the whole test session.

    Examples:
        >>> from cloudevents_kafka.testing import LocalBroker
        >>> def test_orders(kafka_broker: LocalBroker) -> None:
        ...     topic = kafka_broker.create_topic("orders", partitions=3)
    """
    with LocalBroker() as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: LocalBroker) -> str:
    """Create a topic with one partition for one test, and return the name of the topic.

    Examples:
        >>> from confluent_kafka import Producer
        >>> from cloudevents_kafka.testing import LocalBroker
        >>> def test_sending(kafka_broker: LocalBroker, kafka_topic: str) -> None:
        ...     client = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
        ...     client.produce(kafka_topic, b"17")
        ...     assert client.flush(10) == 0
    """
    return kafka_broker.create_topic(f"test-{next(_numbers)}")
