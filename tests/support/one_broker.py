"""One Kafka for all workers of pytest-xdist: ``--one-broker``.

The process that starts the workers starts it, passes on its address, and stops it at the end. Without the
option each process that needs a broker starts its own, as users' tests do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from cloudevents_kafka.testing import LocalBroker

ADDRESS = "kafka_broker"
_numbers = itertools.count(1)


class SharedBroker(LocalBroker):
    """The running broker of another process. Tests use its topics; what they kill is one of their own."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._running_port = port

    @property
    def port(self) -> int:
        return self._running_port

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError("other tests use this broker: a test that starts or stops one needs its own")

    start = stop = restart = kill = _refuse


class Owner:
    """Starts the broker before the workers, whose input gets its port, and stops it after them."""

    def __init__(self) -> None:
        self._broker = LocalBroker()

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist starts its workers
    def pytest_sessionstart(self) -> None:
        self._broker.start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[ADDRESS] = self._broker.port

    def pytest_unconfigure(self) -> None:
        self._broker.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of this plug-in."""
    parser.addoption("--one-broker", action="store_true", help="start one Kafka for all workers")


def pytest_configure(config: pytest.Config) -> None:
    """Own the broker where the workers are started."""
    if config.option.one_broker and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Owner())


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark each test that uses the broker: `make check` needs no broker."""
    if "kafka_broker" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.broker)


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[LocalBroker]:
    """The broker of all workers, else one for this process."""
    port = getattr(request.config, "workerinput", {}).get(ADDRESS)
    if port is not None:
        yield SharedBroker(port)
        return
    with LocalBroker() as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: LocalBroker, worker_id: str) -> str:
    """A new topic of one partition, whose name no other worker uses."""
    return kafka_broker.create_topic(f"test-{worker_id}-{next(_numbers)}")
