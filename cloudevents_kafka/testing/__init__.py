"""Tools for tests: a real local Kafka broker, fakes of confluent-kafka's clients, and pytest fixtures.

`LocalBroker` runs Apache Kafka on this machine (folder `local`). The fakes are clients that read and write a
log in memory (folder `fakes`). pytest finds the fixtures `kafka_broker` and `kafka_topic` automatically (see
`pytest_plugin`).
"""

from cloudevents_kafka.testing.fakes import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from cloudevents_kafka.testing.local import BrokerFailed, LocalBroker

__all__ = ["BrokerFailed", "FakeConsumer", "FakeLog", "FakeMessage", "FakeProducer", "LocalBroker"]
