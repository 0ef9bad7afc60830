"""A command line to call, and a mock cluster of librdkafka's to call it on."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from cloudevents_kafka.cli.app import app

_numbers = itertools.count(1)

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    for name in [name for name in os.environ if name.startswith("CE_KAFKA_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def run() -> Run:
    """Run a command in this process; gives its exit code, stdout and stderr."""

    def call(*args: str, given: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args], input=given, prog_name="cloudevents-kafka")

    return call


@pytest.fixture(scope="session")
def mock_cluster() -> Iterator[str]:
    """Run librdkafka's own cluster in this process: topics come by themselves, with four partitions."""
    host = Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 0})
    brokers = host.list_topics(timeout=10).brokers
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers.values())
    host.flush(1)


@pytest.fixture
def topic() -> str:
    return f"cli-{next(_numbers)}"
