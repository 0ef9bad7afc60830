"""Connections that a broker closes while they are idle, on a real broker, and what confluent-kafka does."""

from __future__ import annotations

import time

import confluent_kafka
import pytest

from cloudevents_kafka.protocol import Client
from cloudevents_kafka.testing import LocalBroker
from tests.support.wire import eventually, numbers

pytestmark = [pytest.mark.broker, pytest.mark.release]  # it waits; tests/protocol/client has samples


@pytest.fixture(scope="module")
def broker():
    """A broker that closes connections which are idle for some seconds."""
    with LocalBroker(properties={"connections.max.idle.ms": 1000}) as broker:
        yield broker


def test_records_without_acks_after_an_idle_close(broker):
    """Each record that is reported as delivered is in the log, as with confluent-kafka."""
    servers, reported = broker.bootstrap_servers, []
    topics = [broker.create_topic(name) for name in ("ours", "theirs")]
    theirs = confluent_kafka.Producer({"bootstrap.servers": servers, "acks": 0, "log_level": 0})
    with Client(servers, timeout=20.0) as client, client.producer(acks=0) as ours:
        for turn in range(3):
            time.sleep(3 if turn else 0)
            for topic, producer in zip(topics, (ours, theirs), strict=True):
                for value in numbers(100):
                    producer.produce(
                        topic, value, partition=0, on_delivery=lambda error, _: reported.append(error)
                    )
                assert producer.flush(20) == 0
        assert reported == [None] * 600
        assert eventually(lambda: [client.offset_at(topic, 0, -1) for topic in topics] == [300, 300], 20)
