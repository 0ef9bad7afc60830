"""Records are produced to and consumed from real brokers from 0.8.2 on."""

from __future__ import annotations

import time

import pytest

from cloudevents_kafka import Event, EventConsumer, EventProducer
from cloudevents_kafka.protocol import EARLIEST, LATEST, TopicPartition, Unsupported

from .kafkas import delivered, pairs, read, since, write


def test_api_versions(kafka, client):
    """A broker lists its versions; 0.8 disconnects and 0.9 does not respond, and are treated as such."""
    versions = client.api_versions()
    assert (18 in versions) is kafka.says_versions
    assert versions[1].last == {"0.10.2.2": 3, "1.1.1": 7, "3.9.1": 17, "4.3.1": 18}.get(kafka.version, 0)


@pytest.mark.parametrize(
    "kafka", ["0.8.2-beta", "0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1", "3.9.1"], indirect=True
)
def test_without_api_versions(kafka, topic):
    """Without ApiVersions, brokers up to 3.x accept the versions of 0.8."""
    with kafka.client(request_api_versions=False) as client:
        assert delivered(write(client, topic, [{"value": b"a"}, {"value": b"b"}])) == [0, 1]
        assert pairs(read(client, topic, 2)) == [(None, b"a"), (None, b"b")]


def test_metadata(kafka, client, topic):
    """Metadata has the broker's listener address, and the topic with its leader."""
    found = client.metadata([topic])
    assert [f"{broker.host}:{broker.port}" for broker in found.brokers] == [kafka.servers]
    assert [(row.name, row.partitions[0].leader_id) for row in found.topics] == [
        (topic, found.brokers[0].node_id)
    ]
    assert topic in {row.name for row in client.metadata().topics}


def test_every_compression(kafka, client, topic):
    """Produced records are consumed in order, with each codec of the broker."""
    values = [b"%d %s" % (number, b"x" * number) for number in range(300)]
    for codec in kafka.codecs:
        batch = [{"key": codec, "value": value} for value in values]
        delivered(write(client, topic, batch, compression=codec, batch_records=100))
    found = read(client, topic, len(values) * len(kafka.codecs))
    assert pairs(found) == [(codec.encode(), value) for codec in kafka.codecs for value in values]
    assert [message.offset() for message in found] == list(range(len(found)))


@pytest.mark.parametrize("kafka", ["0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1"], indirect=True)
def test_zstd_needs_a_broker_of_2_1(client, topic):
    """A codec that the broker does not support raises an error."""
    [(error, _)] = write(client, topic, [{"value": b"a"}], compression="zstd")
    assert isinstance(error, Unsupported)
    assert "zstd needs a broker of 2.1" in str(error)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_null_is_not_empty(client, topic, codec):
    """Null and empty keys and values stay distinct."""
    wanted = [(None, b"v"), (b"", b""), (b"k", None), (None, None), (b"", b"v")]
    delivered(write(client, topic, [{"key": k, "value": v} for k, v in wanted], compression=codec))
    assert pairs(read(client, topic, len(wanted))) == wanted


def test_headers(kafka, client, topic):
    """Headers are consumed from brokers since 0.11; for older brokers they raise an error."""
    headers = [("ce_id", b"1"), ("twice", b"a"), ("twice", b""), ("null", None)]
    [(error, _)] = write(client, topic, [{"value": b"v", "headers": headers}])
    if kafka.has_headers:
        assert [message.headers() for message in read(client, topic, 1)] == [headers]
    else:
        assert isinstance(error, Unsupported)
        assert "brokers before 0.11 have no headers" in str(error)
        assert client.offset_at(topic, 0, LATEST) == 0


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acknowledgement(client, topic, acks):
    """Records arrive with any acks; with 0 their offsets are unknown."""
    client.offset_at(
        topic, 0, LATEST
    )  # returns when the leader is ready; with acks=0 records before are lost
    offsets = delivered(write(client, topic, [{"value": b"a"}, {"value": b"b"}], acks=acks))
    assert offsets == ([-1, -1] if acks == 0 else [0, 1])
    assert pairs(read(client, topic, 2)) == [(None, b"a"), (None, b"b")]


def test_read_from_within_a_compressed_batch(client, topic):
    """Consuming from an offset starts with its record, although brokers return the whole batch."""
    delivered(write(client, topic, [{"value": b"%d" % n} for n in range(20)], compression="gzip"))
    with client.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0, 13)])
        assert [m.offset() for m in consumer.consume(7, 20)] == list(range(13, 20))


def test_a_large_message_makes_the_fetch_grow(client, topic):
    """A message larger than the fetch size of a partition is consumed."""
    values = [b"small", b"L" * 300_000, b"after"]
    for value in values:
        delivered(write(client, topic, [{"value": value}]))
    found = read(client, topic, 3, partition_bytes=1000)
    assert [message.value() for message in found] == values


def test_ends(client, topic):
    """The watermarks are a partition's first offset and the one after its last."""
    assert client.offset_at(topic, 0, EARLIEST) == client.offset_at(topic, 0, LATEST) == 0
    delivered(write(client, topic, [{"value": b"v"}] * 3))
    assert (client.offset_at(topic, 0, EARLIEST), client.offset_at(topic, 0, LATEST)) == (0, 3)


@pytest.mark.parametrize("kafka", since(0, 10, 1), indirect=True)
def test_offsets_by_time(client, topic):
    """From 0.10.1 on, the offset of a time is exact, and None after the last record."""
    start = int(time.time() * 1000) - 10_000
    for number in range(3):
        delivered(write(client, topic, [{"value": b"v", "timestamp": start + number * 1000}]))
    times = [start - 1, start, start + 1, start + 2000, start + 2001]
    assert [client.offset_at(topic, 0, at) for at in times] == [0, 0, 1, 2, None]
    assert [m.timestamp() for m in read(client, topic, 3)] == [(1, start + n * 1000) for n in range(3)]


@pytest.mark.parametrize("kafka", ["0.8.2-beta", "0.8.2.2", "0.9.0.1"], indirect=True)
def test_offsets_by_time_of_segments(client, topic):
    """Before 0.10.1, the offset of a time is the newest segment before it, or None."""
    delivered(write(client, topic, [{"value": b"v"}] * 3))
    assert client.offset_at(topic, 0, int(time.time() * 1000) - 3_600_000) is None
    assert client.offset_at(topic, 0, int(time.time() * 1000) + 3_600_000) == 3


def test_events_structured(kafka, client, topic):
    """Events pass any broker in structured mode; without headers, they are read leniently."""
    events = [Event(id=str(n), source="/live", type="t", data={"n": n}) for n in range(3)]
    with client.producer() as producer:
        sender = EventProducer(producer, topic=topic, mode="structured")
        deliveries = [sender.send(event) for event in events]
        sender.flush(20)
    assert [delivery.offset for delivery in deliveries] == [0, 1, 2]
    for lenient in (True, False):
        consumer = client.consumer()
        consumer.assign([TopicPartition(topic, 0, EARLIEST)])
        reader = EventConsumer(consumer, lenient=lenient)
        found = [reader.poll(20) for _ in events]
        reader.close()
        if lenient or kafka.has_headers:
            assert [item.event for item in found] == events
        else:
            assert not any(hasattr(item, "event") for item in found)


@pytest.mark.parametrize("kafka", since(0, 11), indirect=True)
def test_events_binary(client, topic):
    """From 0.11 on, events in binary mode have their attributes in headers."""
    event = Event(id="1", source="/live", type="t", subject="é", data=b"\x00\xff", datacontenttype="a/b")
    with client.producer() as producer:
        EventProducer(producer, topic=topic).send(event).result(20)
    with client.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0, EARLIEST)])
        assert EventConsumer(consumer, strict=True).poll(20).event == event


@pytest.mark.parametrize("kafka", since(0, 11), indirect=True)
def test_idempotent(client, topic):
    """An idempotent producer numbers its batches, and the broker appends each once."""
    batch = [{"value": b"%d" % n} for n in range(50)]
    assert delivered(write(client, topic, batch, idempotent=True, batch_records=7)) == list(range(50))


@pytest.mark.parametrize("kafka", ["0.8.2-beta", "0.8.2.2", "0.9.0.1", "0.10.2.2"], indirect=True)
def test_idempotent_needs_a_broker_of_0_11(client, topic):
    """An idempotent producer on an old broker raises an error."""
    [(error, _)] = write(client, topic, [{"value": b"v"}], idempotent=True)
    assert isinstance(error, Unsupported)
    assert "needs a broker of Kafka 0.11 or later" in str(error)
