"""Brokers and clients for the tests of the client; all threads of a test end."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from cloudevents_kafka.protocol.client._client import Client
from tests.support.wire import eventually
from tests.support.wire_broker import Settings, WireBroker

OURS = ("kafka-producer", "kafka-group", "WireBroker")


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert eventually(lambda: not [t.name for t in threading.enumerate() if t.name.startswith(OURS)], 5), (
        threading.enumerate()
    )


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def start(stack):
    """Return a function that starts brokers."""

    def start(release="4.3", **more):
        settings = Settings(**{"session_timeouts": (10, 60_000), "partitions": 1, **more.pop("settings", {})})
        return stack.enter_context(WireBroker(release, settings=settings, **more))

    return start


@pytest.fixture
def connect(stack):
    """Return a function that creates clients."""

    def connect(broker, **more):
        servers = broker if isinstance(broker, str) else broker.bootstrap_servers
        return stack.enter_context(Client(servers, **{"timeout": 5.0, **more}))

    return connect


@pytest.fixture
def broker(start):
    return start()


@pytest.fixture
def client(connect, broker):
    return connect(broker)
