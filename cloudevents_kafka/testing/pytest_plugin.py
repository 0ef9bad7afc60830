"""Fixtures for pytest, available wherever this package is installed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from cloudevents_kafka.testing.local import LocalBroker

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[LocalBroker]:
    """Run one real local Kafka for the whole test session."""
    with LocalBroker() as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: LocalBroker) -> str:
    """Create a topic of one partition for one test; return its name."""
    return kafka_broker.create_topic(f"test-{next(_numbers)}")
