"""Brokers stop and start while records are produced: acknowledged records remain."""

from __future__ import annotations

import threading
import time

import pytest

from cloudevents_kafka.protocol import EARLIEST, BrokerError, Client, TopicPartition
from cloudevents_kafka.protocol.client import _fetcher as fetcher
from cloudevents_kafka.protocol.client import _sender as sender
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.local import free_ports
from tests.support.old_brokers import LegacyKafka

from .kafkas import delivered, pairs, read, write

pytestmark = pytest.mark.legacy


class Stream:
    """Numbers that threads produce and consume until they are stopped."""

    def __init__(self, client, topic, **settings):
        self.client, self.topic, self.settings = client, topic, settings
        self.partitions = client.partitions(topic)
        self.sent, self.acknowledged, self.errors, self.found = 0, [], [], []
        self._over, self._done = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=run) for run in (self._produce, self._consume)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._threads[0].join()
        end = time.monotonic() + 30
        while not set(self.acknowledged) <= set(self.values()) and time.monotonic() < end:
            time.sleep(0.05)
        self._done.set()
        self._threads[1].join()

    def values(self):
        return [int(message.value()) for message in list(self.found)]

    def await_more(self, number=200, seconds=40.0):
        """Wait until a number of further records are acknowledged and read."""
        wanted = len(self.acknowledged) + number, len(self.found) + number
        end = time.monotonic() + seconds
        while len(self.acknowledged) < wanted[0] or len(self.found) < wanted[1]:
            assert time.monotonic() < end, (len(self.acknowledged), len(self.found), wanted, self.errors[:3])
            time.sleep(0.02)

    def _produce(self):
        with self.client.producer(delivery_timeout=60.0, **self.settings) as producer:
            while not self._over.is_set():
                partition = self.partitions[self.sent % len(self.partitions)]
                producer.produce(self.topic, b"%d" % self.sent, partition=partition, on_delivery=self._note)
                self.sent += 1
                producer.poll(0)
                time.sleep(0.001)

    def _note(self, error, message):
        if error is None:
            self.acknowledged.append(int(message.value()))
        else:
            self.errors.append(error)

    def _consume(self):
        with self.client.consumer() as consumer:
            consumer.assign([TopicPartition(self.topic, number, EARLIEST) for number in self.partitions])
            while not self._done.is_set():
                message = consumer.poll(0.2)
                if message is not None:
                    self.found.append(message)


@pytest.fixture(scope="module")
def pair():
    """Two brokers of 0.8.2.2 with two replicas; the preferred leaders are elected again soon."""
    soon = {"leader.imbalance.check.interval.seconds": 1, "num.partitions": 4}
    with LegacyKafka("0.8.2.2", brokers=2, properties=soon) as made:
        yield made


@pytest.fixture
def codes(monkeypatch):
    """Return the error codes in the responses to producers and consumers."""
    seen = {sender: set(), fetcher: set()}
    for module, into in seen.items():

        class Noted(BrokerError):
            def __init__(self, code, *more, into=into):
                into.add(code)
                super().__init__(code, *more)

        monkeypatch.setattr(module, "BrokerError", Noted)
    return seen


def leaders(client, topic):
    return {p.partition_index: p.leader_id for p in client.metadata([topic]).topics[0].partitions}


def await_leaders(client, topic, wanted):
    end = time.monotonic() + 30
    while set(leaders(client, topic).values()) != wanted:
        assert time.monotonic() < end, leaders(client, topic)
        time.sleep(0.1)


@pytest.mark.release  # test_a_broker_is_killed_in_mid_stream is its sample
def test_leaders_move(pair, codes):
    """A broker stops and starts: leaders move to the other broker and back, and the stream continues.

    Acknowledged records remain. When leaders move back, connections stay: brokers refuse
    requests, and the client reads the metadata again.
    """
    with Client(pair.bootstrap_servers, timeout=30.0) as client:
        client.partitions("moves")
        await_leaders(client, "moves", {1, 2})
        with Stream(client, "moves") as stream:
            stream.await_more()
            pair.brokers[0].kill()
            await_leaders(client, "moves", {2})
            stream.await_more()
            pair.brokers[0].start()
            await_leaders(client, "moves", {1, 2})
            stream.await_more()
    assert stream.errors == []
    assert len(stream.acknowledged) == stream.sent
    assert set(stream.values()) == set(range(stream.sent))
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER in codes[sender]
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER in codes[fetcher]


def test_the_first_address_may_be_dead(pair):
    """A bootstrap address without a listener is skipped."""
    dead = f"127.0.0.1:{free_ports(1)[0]}"
    with Client([dead, pair.brokers[1].address], timeout=20.0) as client:
        delivered(write(client, "dead", [{"value": b"v", "partition": 2}]))
        assert pairs(read(client, "dead", 1, partition=2)) == [(None, b"v")]


@pytest.mark.parametrize(
    ("make", "once"),
    [(lambda: LegacyKafka("0.10.2.2"), False), (LocalBroker, True)],
    ids=["0.10.2.2", "4.3.1"],
)
def test_a_broker_is_killed_in_mid_stream(make, once):
    """After SIGKILL and a restart, all acknowledged records are read; with a producer id, once each."""
    with make() as kafka, Client(kafka.bootstrap_servers, timeout=30.0) as client:
        client.create_topic("stream")
        broker = kafka if once else kafka.brokers[0]
        with Stream(client, "stream", idempotent=once) as stream:
            stream.await_more()
            broker.kill()
            broker.start()
            stream.await_more()
    assert stream.errors == []
    assert len(stream.acknowledged) == stream.sent
    found = stream.values()
    assert sorted(set(found)) == list(range(stream.sent))
    assert list(dict.fromkeys(found)) == list(range(stream.sent))
    assert [m.offset() for m in stream.found] == list(range(len(found)))
    if once:
        assert found == list(range(stream.sent))
