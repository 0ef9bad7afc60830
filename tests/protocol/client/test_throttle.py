"""Brokers that throttle a client: it waits, and its calls return in time (KIP-219)."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from cloudevents_kafka.protocol.client import CLIENT_VERSIONS, EARLIEST, TopicPartition
from cloudevents_kafka.protocol.client._retry import MAX_SECONDS
from cloudevents_kafka.protocol.client._throttle import throttle_of
from cloudevents_kafka.protocol.errors import DeadlineExceeded
from cloudevents_kafka.protocol.layout import default_of, fields_of
from cloudevents_kafka.protocol.messages import APIS
from tests.support.wire import eventually, fill, numbers, take

PRODUCE, FETCH, METADATA = 0, 1, 3


def throttled(ms):
    """Return a fault: the answer asks the client to wait, and later requests are answered."""

    def fault(_call, answer):
        response = answer()
        response.throttle_time_ms = ms
        return response

    return fault


def sent(frames, key):
    """Return the times of the requests of an API."""
    return [one.time for one in frames if one.direction == "sent" and one.data[4:6] == bytes([0, key])]


def test_a_consumer_waits(broker, connect):
    """A broker that throttles each fetch for half a second gets two fetches a second, and polls return."""
    frames = []
    with connect(broker, trace=frames.append).consumer(max_wait=0.0) as consumer:
        fill(connect(broker), numbers(3))
        broker.faults.add(throttled(500), api=FETCH, times=None)
        consumer.assign([TopicPartition("t", 0, EARLIEST)])
        assert take(consumer, 3) == numbers(3)
        for _ in range(10):
            began = time.monotonic()
            assert consumer.poll(0.1) is None
            assert time.monotonic() - began < 5
    times = sent(frames, FETCH)
    assert all(later - earlier >= 0.49 for earlier, later in pairwise(times)), times


def test_a_producer_waits(broker, connect):
    """Records are delivered after the time; a time beyond their timeout is the reason of their failure."""
    frames, errors = [], []
    with connect(broker, trace=frames.append).producer(delivery_timeout=1.0) as producer:
        for ms in (500, 0, 60_000, 0):
            broker.faults.add(throttled(ms), api=PRODUCE)
            producer.produce("t", b"v", partition=0, on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(20) == 0
    first, second, third = sent(frames, PRODUCE)
    assert second - first >= 0.49
    assert errors[:3] == [None] * 3
    assert "not delivered in time" in str(errors[3])
    assert "the broker throttles this client for" in str(errors[3])
    assert third >= second


def test_other_requests_wait_up_to_their_timeout(broker, connect):
    """A request waits for the time; its error names it if the timeout comes first."""
    frames = []
    client = connect(broker, trace=frames.append, timeout=1.0)
    for ms in (300, 60_000):
        broker.faults.add(throttled(ms), api=METADATA)
        client.metadata()
    with pytest.raises(DeadlineExceeded, match="throttles this client for"):
        client.metadata()
    first, second = sent(frames, METADATA)[-2:]
    assert second - first >= 0.29


def test_another_broker_is_asked_meanwhile(start, connect):
    """What any broker can answer is asked of one that does not throttle."""
    broker = start(brokers=2)
    client = connect(broker)
    broker.faults.add(throttled(60_000), api=METADATA)
    for _ in range(3):
        assert len(client.metadata().brokers) == 2


def test_abort_ends_the_wait(broker, connect):
    """Closing a producer does not wait for the end of the time."""
    broker.faults.add(throttled(60_000), api=PRODUCE)
    producer = connect(broker).producer()
    for value in numbers(2):
        producer.produce("t", value, partition=0)
        producer.flush(0.5)
    began = time.monotonic()
    assert producer.close(0.1) == 1
    assert time.monotonic() - began < 20


def test_times_are_those_of_kafka():
    """Each response with the field has a first version, before which brokers wait; times are bounded."""
    for key, versions in CLIENT_VERSIONS.items():
        response = APIS[key].response
        fields = {field.name: default_of(field) for field in fields_of(response)}
        if "throttle_time_ms" not in fields:
            continue
        for ms, seconds in ((1500, 1.5), (0, 0.0), (-5, 0.0), (2**31 - 1, MAX_SECONDS)):
            message = response(**{**fields, "throttle_time_ms": ms})
            assert throttle_of(message, versions.last) == seconds
            assert throttle_of(message, versions.first) == 0.0


def test_old_brokers_have_waited(start, connect):
    """A broker of 1.1 delays its response itself, and is asked again at once."""
    broker = start("1.1")
    client = connect(broker, timeout=2.0)
    broker.faults.add(throttled(60_000), api=METADATA, times=None)
    assert eventually(lambda: [client.metadata() for _ in range(3)], 10)
