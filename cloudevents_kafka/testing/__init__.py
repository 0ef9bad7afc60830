"""Tools for tests: a real local Kafka, stand-ins for the client, pytest fixtures.

Installing this package gives pytest the fixtures `kafka_broker` and
`kafka_topic` (see `pytest_plugin`). A broker in the test's own process, for tests of clients
themselves, is `wire_broker.WireBroker`.
"""

from __future__ import annotations

from cloudevents_kafka.testing.broker import LocalBroker
from cloudevents_kafka.testing.errors import BrokerFailed
from cloudevents_kafka.testing.fake_consumer import FakeConsumer
from cloudevents_kafka.testing.fake_log import FakeLog
from cloudevents_kafka.testing.fake_message import FakeMessage
from cloudevents_kafka.testing.fake_producer import FakeProducer

__all__ = ["BrokerFailed", "FakeConsumer", "FakeLog", "FakeMessage", "FakeProducer", "LocalBroker"]
