"""Tools for tests: a real local Kafka, stand-ins for the client, pytest fixtures.

Installing this package gives pytest the fixtures `kafka_broker` and
`kafka_topic` (see `pytest_plugin`). A broker in the test's own process, for tests of clients
themselves, is `wire_broker.WireBroker`.
"""

from __future__ import annotations

from cloudevents_kafka.testing.fakes.consumer import FakeConsumer
from cloudevents_kafka.testing.fakes.log import FakeLog
from cloudevents_kafka.testing.fakes.message import FakeMessage
from cloudevents_kafka.testing.fakes.producer import FakeProducer
from cloudevents_kafka.testing.local.broker import LocalBroker
from cloudevents_kafka.testing.local.errors import BrokerFailed

__all__ = ["BrokerFailed", "FakeConsumer", "FakeLog", "FakeMessage", "FakeProducer", "LocalBroker"]
