"""Topics with a smaller limit than a producer's batches, on a real broker, and what confluent-kafka does."""

from __future__ import annotations

import json

import confluent_kafka
import pytest

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.testing.local import KAFKA_VERSION

from .kafkas import read, write

pytestmark = pytest.mark.parametrize("kafka", [KAFKA_VERSION], indirect=True)

SMALL, LARGE = [b"%05d" % n * 20 for n in range(20_000)], b"large" * 30_000
LIMIT = {"max.message.bytes": "100000"}


def limited(client, topic, **configs):
    """Return the name of a new topic with settings."""
    client.create_topic(f"{topic}-limited", configs=configs)
    return f"{topic}-limited"


def theirs(kafka, topic):
    """Produce with confluent-kafka, whose batches fit; return the failures and the number of requests."""
    failures, stats = [], []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": kafka.servers,
            "log_level": 0,
            "linger.ms": 50,
            "batch.size": 95_000,
            "statistics.interval.ms": 100,
            "stats_cb": stats.append,
        }
    )
    for value in [*SMALL[:100], LARGE, *SMALL[100:]]:
        producer.produce(topic, value, on_delivery=lambda error, message: error and failures.append(message))
    assert producer.flush(60) == 0
    producer.poll(1)
    brokers = json.loads(stats[-1])["brokers"].values()
    return [message.value() for message in failures], sum(one["req"].get("Produce", 0) for one in brokers)


def test_only_the_record_that_is_too_large_fails(kafka, client, topic):
    """The others are delivered in order, in about as few requests as by confluent-kafka."""
    name, frames = limited(client, topic, **LIMIT), []
    with kafka.client(trace=frames.append) as traced:
        records = [{"value": value} for value in [*SMALL[:100], LARGE, *SMALL[100:]]]
        reports = write(traced, name, records, batch_bytes=1_000_000)
    failed = [(message.value(), error.code) for error, message in reports if error is not None]
    assert failed == [(LARGE, ErrorCode.MESSAGE_TOO_LARGE)]
    keys = [int.from_bytes(frame.data[4:6]) for frame in frames if frame.direction == "sent"]
    assert [message.value() for message in read(client, name, len(SMALL))] == SMALL
    their_failures, their_requests = theirs(kafka, limited(client, f"{topic}-theirs", **LIMIT))
    assert their_failures == [LARGE]
    assert keys.count(ApiKey.PRODUCE) <= 2 * their_requests + 10


def test_a_batch_larger_than_a_segment(kafka, client, topic):
    """A batch that fits the limit of the topic, and not a segment of its log, is split, too."""
    name = limited(client, topic, **{"max.message.bytes": "5000000", "segment.bytes": "1048576"})
    values = [bytes([n]) * 100_000 for n in range(40)]
    reports = write(client, name, [{"value": value} for value in values], batch_bytes=3_000_000, linger=1.0)
    assert [error for error, _ in reports if error is not None] == []
    assert [message.value() for message in read(client, name, 40)] == values
