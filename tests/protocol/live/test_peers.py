"""Other clients consume the records of this client and vice versa, over old and new brokers."""

from __future__ import annotations

import warnings

import confluent_kafka
import pytest

from .kafkas import delivered, pairs, read, since, write

with warnings.catch_warnings(
    action="ignore", category=DeprecationWarning
):  # it reads its own files in an old way
    import kafka as kafka_python

pytestmark = pytest.mark.oracle

RECORDS = [(b"k%d" % n, b"%d" % n * n) for n in range(20)] + [(None, b"no key"), (b"gone", None), (b"", b"")]


def librdkafka(kafka, **settings):
    """Return settings of confluent-kafka, with the broker version for 0.8 and 0.9."""
    fallback = {"api.version.request": False, "broker.version.fallback": kafka.version.removesuffix("-beta")}
    old = {} if kafka.says_versions else fallback
    return {"bootstrap.servers": kafka.servers, "log_level": 0, **old, **settings}


def python(kafka):
    """Return settings of kafka-python."""
    return {
        "bootstrap_servers": kafka.servers,
        "api_version": kafka.since[:3] if kafka.since < (0, 10) else None,
    }


def headers(kafka):
    return [("ce_id", b"1"), ("twice", b"a"), ("twice", b"")] if kafka.has_headers else []


def test_librdkafka_reads_ours(kafka, client, topic):
    """confluent-kafka consumes the records of this client, with every codec."""
    for codec in kafka.codecs:
        batch = [{"key": k, "value": v, "headers": headers(kafka)} for k, v in RECORDS]
        delivered(write(client, topic, batch, compression=codec))
    consumer = confluent_kafka.Consumer(librdkafka(kafka, **{"group.id": "peer"}))
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = consumer.consume(len(RECORDS) * len(kafka.codecs), 20)
    consumer.close()
    assert [message.error() for message in found if message.error()] == []
    assert pairs(found) == RECORDS * len(kafka.codecs)
    assert {tuple(message.headers() or ()) for message in found} == {tuple(headers(kafka))}


def test_ours_reads_librdkafkas(kafka, client, topic):
    """This client consumes the records of confluent-kafka, with every codec."""
    for codec in kafka.codecs:
        producer = confluent_kafka.Producer(librdkafka(kafka, **{"compression.type": codec, "linger.ms": 20}))
        for key, value in RECORDS:
            producer.produce(topic, value, key, headers=headers(kafka))
        assert producer.flush(20) == 0
    found = read(client, topic, len(RECORDS) * len(kafka.codecs))
    assert pairs(found) == RECORDS * len(kafka.codecs)
    assert {tuple(message.headers() or ()) for message in found} == {tuple(headers(kafka))}


def test_kafka_python_reads_ours(kafka, client, topic):
    """kafka-python consumes the records of this client."""
    for codec in ("none", "gzip"):
        delivered(write(client, topic, [{"key": k, "value": v} for k, v in RECORDS], compression=codec))
    consumer = kafka_python.KafkaConsumer(**python(kafka), consumer_timeout_ms=20_000, group_id=None)
    consumer.assign([kafka_python.TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    found = [next(consumer) for _ in range(2 * len(RECORDS))]
    consumer.close()
    assert [(record.key, record.value) for record in found] == RECORDS * 2


def test_ours_reads_kafka_pythons(kafka, client, topic):
    """This client consumes the records of kafka-python."""
    for codec in (None, "gzip"):
        producer = kafka_python.KafkaProducer(**python(kafka), compression_type=codec, linger_ms=20)
        for key, value in RECORDS:
            producer.send(topic, value, key)
        producer.flush(20)
        producer.close()
    assert pairs(read(client, topic, 2 * len(RECORDS))) == RECORDS * 2


@pytest.mark.parametrize("kafka", since(0, 11), indirect=True)
def test_transactions(kafka, client, topic):
    """Only committed transactions of confluent-kafka are consumed, unless uncommitted reads are enabled."""
    producer = confluent_kafka.Producer(librdkafka(kafka, **{"transactional.id": topic}))
    producer.init_transactions(30)
    for value, end in ((b"aborted", "abort"), (b"kept", "commit"), (b"aborted too", "abort")):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(20)
        getattr(producer, f"{end}_transaction")(30)
    delivered(write(client, topic, [{"value": b"plain"}]))
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(20)
    delivered(write(client, topic, [{"value": b"behind"}]))
    everything = [b"aborted", b"kept", b"aborted too", b"plain", b"open", b"behind"]
    assert [m.value() for m in read(client, topic, 6, committed_only=False)] == everything
    assert [m.value() for m in read(client, topic, 6, seconds=2.0)] == [b"kept", b"plain"]
    producer.commit_transaction(30)
    assert [m.value() for m in read(client, topic, 4)] == [b"kept", b"plain", b"open", b"behind"]


@pytest.mark.parametrize("kafka", since(0, 9), indirect=True)
def test_groups_are_shared_with_librdkafka(kafka, client, topic):
    """Both clients share a group's offsets and members: one continues where the other stopped."""
    delivered(write(client, topic, [{"value": b"%d" % n} for n in range(4)]))
    theirs = confluent_kafka.Consumer(
        librdkafka(
            kafka,
            **{
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
            },
        )
    )
    theirs.subscribe([topic])
    messages = theirs.consume(2, 20)
    assert [message.error() for message in messages] == [None, None]
    found = [message.value() for message in messages]
    theirs.commit(asynchronous=False)
    theirs.close()
    with client.consumer(group=topic, reset="error", auto_commit=None) as ours:
        ours.subscribe([topic])
        found += [message.value() for message in ours.consume(2, 20)]
    assert found == [b"0", b"1", b"2", b"3"]
