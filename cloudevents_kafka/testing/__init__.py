"""Tools for tests: a real local Kafka, stand-ins for the client, pytest fixtures.

Installing this package gives pytest the fixtures `kafka_broker` and
`kafka_topic` (see `pytest_plugin`).
"""

from __future__ import annotations

from cloudevents_kafka.testing.broker import LocalBroker
from cloudevents_kafka.testing.errors import BrokerFailed

__all__ = ["BrokerFailed", "LocalBroker"]
