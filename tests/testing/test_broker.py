"""The local broker is a real one, and leaves nothing behind."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

pytestmark = pytest.mark.broker


def test_serves(kafka_broker, kafka_topic):
    """A record produced to a local broker comes back with its key, value and headers."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce(kafka_topic, b"value", b"key", headers=[("name", None), ("name", b"\xff")])
    assert producer.flush(10) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": kafka_broker.bootstrap_servers,
            "group.id": "test-serves",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([kafka_topic])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert (message.key(), message.value()) == (b"key", b"value")
    assert message.headers() == [("name", None), ("name", b"\xff")]
