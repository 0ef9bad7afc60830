"""Brokers, one at a time, each for all tests that use it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.local import KAFKA_VERSION
from tests.support.old_brokers import LegacyKafka

from .kafkas import ALL, Kafka


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of today's broker, which run at each change, and those of the others."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        here = item.nodeid.startswith("tests/protocol/live/")
        if here and callspec is not None and "kafka" in callspec.params:
            item.add_marker("broker" if callspec.params["kafka"] == KAFKA_VERSION else "legacy")


@pytest.fixture(scope="session", params=ALL)
def kafka(request):
    """A running broker of a version."""
    if request.param == KAFKA_VERSION:
        yield Kafka(request.param, request.getfixturevalue("kafka_broker"))
        return
    with _started(request.param) as broker:
        yield Kafka(request.param, broker)


@contextmanager
def _started(version):
    made = LocalBroker(version=version) if version == "3.9.1" else LegacyKafka(version)
    with made as broker:
        yield broker


@pytest.fixture
def client(kafka):
    """A client of that broker."""
    with kafka.client() as made:
        yield made


@pytest.fixture
def topic(kafka, client):
    """A new topic of one partition."""
    return kafka.topic(client)
