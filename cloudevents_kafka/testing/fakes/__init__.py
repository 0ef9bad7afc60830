"""Fakes of confluent-kafka's clients that store messages in memory.

A `FakeProducer` writes `FakeMessage` objects to a `FakeLog`, and a `FakeConsumer` reads these messages. Read
the modules `_message` and `_log` first, and then the modules `_producer` and `_consumer`. The tests of this
package run each case with the fakes and with confluent-kafka's clients.
"""

from cloudevents_kafka.testing.fakes._consumer import FakeConsumer
from cloudevents_kafka.testing.fakes._log import FakeLog
from cloudevents_kafka.testing.fakes._message import FakeMessage
from cloudevents_kafka.testing.fakes._producer import FakeProducer

__all__ = ["FakeConsumer", "FakeLog", "FakeMessage", "FakeProducer"]
