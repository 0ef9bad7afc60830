"""Fixtures that run the command line, and the mock cluster of librdkafka."""

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
def _settings_in_environment(request, monkeypatch):
    """No settings, but that the brokers of this process create topics on use; real ones must not."""
    for name in [name for name in os.environ if name.startswith("CE_KAFKA_")]:
        monkeypatch.delenv(name)
    if {"mock_cluster", "broker", "old_broker"} & {*request.fixturenames}:
        monkeypatch.setenv("CE_KAFKA_ALLOW_AUTO_CREATE_TOPICS", "true")


@pytest.fixture
def run() -> Run:
    """A function that runs a command in this process and returns its exit code, stdout and stderr."""

    def call(*args: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, prog_name="cloudevents-kafka")

    return call


@pytest.fixture(scope="session")
def mock_cluster() -> Iterator[str]:
    """The addresses of a mock cluster in this process; it creates topics on use, with four partitions."""
    host = Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 0})
    brokers = host.list_topics(timeout=10).brokers
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers.values())
    host.flush(1)


@pytest.fixture
def topic() -> str:
    return f"cli-{next(_numbers)}"
