"""Records of open transactions on a real broker: the same as confluent-kafka reads, from every start."""

from __future__ import annotations

import confluent_kafka
import pytest
from click.testing import CliRunner

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.protocol import EARLIEST, LATEST, BrokerError, TopicPartition
from cloudevents_kafka.testing.local import KAFKA_VERSION

from .kafkas import delivered, read, write

pytestmark = pytest.mark.parametrize("kafka", [KAFKA_VERSION], indirect=True)

WITHIN = [b"%d" % n for n in range(5)]


@pytest.fixture
def transaction(kafka, client, topic):
    """A transaction of five records after one record and before another, which is not committed yet."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(30)
    delivered(write(client, topic, [{"value": b"before"}]))
    producer.begin_transaction()
    for value in WITHIN:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    delivered(write(client, topic, [{"value": b"behind"}]))
    yield producer
    producer.commit_transaction(30)


def librdkafka(kafka, topic, **settings):
    """Return a consumer of confluent-kafka."""
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.servers,
            "group.id": f"{topic}-theirs",
            "log_level": 0,
            "auto.offset.reset": "latest",
            **settings,
        }
    )


def values(messages):
    return [message.value() for message in messages]


def test_committed_records_are_delivered(kafka, client, topic, transaction):
    """From the latest offset, in a new group, and after a reset, all that is committed later is read."""
    theirs = librdkafka(kafka, topic)
    theirs.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_END)])
    assert theirs.poll(2) is None
    at_end = client.consumer(auto_commit=None)
    at_end.assign([TopicPartition(topic, 0, LATEST)])
    sought = client.consumer(auto_commit=None)
    sought.assign([TopicPartition(topic, 0, EARLIEST)])
    sought.seek(TopicPartition(topic, 0, LATEST))
    reset = client.consumer(auto_commit=None)
    reset.assign([TopicPartition(topic, 0, 99)])
    grouped = client.consumer(group=topic, reset="latest")
    grouped.subscribe([topic])
    ours = [at_end, sought, reset, grouped]
    while not grouped.assignment():
        assert grouped.poll(0.5) is None
    for consumer in ours:
        assert consumer.poll(0.2) is None
    transaction.commit_transaction(30)
    transaction.begin_transaction()  # for the fixture, which ends it
    wanted = [*WITHIN, b"behind"]
    assert values(theirs.consume(6, 20)) == wanted
    assert [values(consumer.consume(6, 20)) for consumer in ours] == [wanted] * 4
    for consumer in [theirs, *ours]:
        consumer.close()


def test_ends_are_those_of_committed_records(kafka, client, topic, transaction):
    """`get_watermark_offsets` and `offset_at` return the last stable offset, or with the setting the end."""
    partition = confluent_kafka.TopicPartition(topic, 0)
    for committed_only, level in ((True, "read_committed"), (False, "read_uncommitted")):
        theirs = librdkafka(kafka, topic, **{"isolation.level": level})
        wanted = theirs.get_watermark_offsets(partition, 20)
        theirs.close()
        assert wanted == ((0, 1) if committed_only else (0, 7))
        with client.consumer(committed_only=committed_only) as ours:
            assert ours.get_watermark_offsets(TopicPartition(topic, 0), 20) == wanted
        assert client.offset_at(topic, 0, LATEST, committed_only=committed_only) == wanted[1]


def test_fetch_ends_at_the_last_committed_record(kafka, client, topic, transaction):
    """``protocol fetch`` prints what is committed, and ends."""
    result = CliRunner().invoke(app, ["protocol", "fetch", "-b", kafka.servers, topic, "--timeout", "5"])
    assert (result.exit_code, "before" in result.output, "behind" in result.output) == (0, True, False)


def test_offsets_of_an_open_transaction(kafka, client, topic, transaction):
    """A member begins at an offset that a transaction has committed, and not before it ends."""
    client.commit(topic, {(topic, 0): 0})
    member = confluent_kafka.Consumer({"bootstrap.servers": kafka.servers, "group.id": topic, "log_level": 0})
    offsets = [confluent_kafka.TopicPartition(topic, 0, 1)]
    transaction.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), 30)
    member.close()
    partition = TopicPartition(topic, 0)
    with client.consumer(group=topic, auto_commit=None) as consumer:
        with pytest.raises(BrokerError, match="UNSTABLE_OFFSET_COMMIT"):
            consumer.committed([partition], 0.5)
        assert client.committed(topic, [(topic, 0)], committed_only=False) == {(topic, 0): 0}
        consumer.subscribe([topic])
        for _ in range(3):
            assert consumer.poll(0.5) is None
        transaction.commit_transaction(30)
        transaction.begin_transaction()  # for the fixture, which ends it
        assert values(consumer.consume(6, 20)) == [*WITHIN, b"behind"]
    assert values(read(client, topic, 7)) == [b"before", *WITHIN, b"behind"]
