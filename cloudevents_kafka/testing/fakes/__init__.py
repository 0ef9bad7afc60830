"""Fakes of confluent-kafka's clients, in memory.

A `FakeProducer` writes `FakeMessage` objects to a `FakeLog`, and a `FakeConsumer` reads them. Read
`_message`, `_log`, then `_producer` and `_consumer`. Tests run each case against the fakes and against
confluent-kafka.
"""

from cloudevents_kafka.testing.fakes._consumer import FakeConsumer
from cloudevents_kafka.testing.fakes._log import FakeLog
from cloudevents_kafka.testing.fakes._message import FakeMessage
from cloudevents_kafka.testing.fakes._producer import FakeProducer

__all__ = ["FakeConsumer", "FakeLog", "FakeMessage", "FakeProducer"]
