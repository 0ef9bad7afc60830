"""Records go in and come out of real brokers, from 0.8.2 to today's, whatever each can take."""

from __future__ import annotations

import time

import pytest

from cloudevents_kafka import Event, EventConsumer, EventProducer
from cloudevents_kafka.protocol import EARLIEST, LATEST, TopicPartition, Unsupported

from .kafkas import delivered, pairs, read, since, write

pytestmark = pytest.mark.legacy


def test_asks_for_versions(kafka, client):
    """A broker says what it takes; 0.8 hangs up and 0.9 is silent where asked, and are spoken to as such."""
    versions = client.api_versions()
    assert (18 in versions) is kafka.says_versions
    assert versions[1].last == {"0.10.2.2": 3, "1.1.1": 7, "3.9.1": 17, "4.3.1": 18}.get(kafka.version, 0)


@pytest.mark.parametrize(
    "kafka", ["0.8.2-beta", "0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1", "3.9.1"], indirect=True
)
def test_need_not_be_asked(kafka, topic):
    """Without being asked, brokers up to 3.x take what 0.8 took."""
    with kafka.client(request_api_versions=False) as client:
        assert delivered(write(client, topic, [{"value": b"a"}, {"value": b"b"}])) == [0, 1]
        assert pairs(read(client, topic, 2)) == [(None, b"a"), (None, b"b")]


def test_metadata(kafka, client, topic):
    """Metadata names the broker as it listens, and the topic with its leader."""
    found = client.metadata([topic])
    assert [f"{broker.host}:{broker.port}" for broker in found.brokers] == [kafka.servers]
    assert [(row.name, row.partitions[0].leader_id) for row in found.topics] == [
        (topic, found.brokers[0].node_id)
    ]
    assert topic in {row.name for row in client.metadata().topics}


def test_every_compression(kafka, client, topic):
    """What goes in comes out, in order, in each compression that the broker has."""
    values = [b"%d %s" % (number, b"x" * number) for number in range(300)]
    for codec in kafka.codecs:
        batch = [{"key": codec, "value": value} for value in values]
        delivered(write(client, topic, batch, compression=codec, batch_records=100))
    found = read(client, topic, len(values) * len(kafka.codecs))
    assert pairs(found) == [(codec.encode(), value) for codec in kafka.codecs for value in values]
    assert [message.offset() for message in found] == list(range(len(found)))


@pytest.mark.parametrize("kafka", ["0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1"], indirect=True)
def test_zstd_needs_a_broker_that_knows_it(client, topic):
    """A compression that the broker does not know is refused, in words."""
    [(error, _)] = write(client, topic, [{"value": b"a"}], compression="zstd")
    assert isinstance(error, Unsupported)
    assert "zstd needs a broker of 2.1" in str(error)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_nothing_is_not_empty(client, topic, codec):
    """No key and no value are told from empty ones."""
    wanted = [(None, b"v"), (b"", b""), (b"k", None), (None, None), (b"", b"v")]
    delivered(write(client, topic, [{"key": k, "value": v} for k, v in wanted], compression=codec))
    assert pairs(read(client, topic, len(wanted))) == wanted


def test_headers(kafka, client, topic):
    """Headers come back from brokers since 0.11; older ones have no room, so they are refused."""
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
    """Records arrive with any acks; with 0 nobody tells their offsets."""
    offsets = delivered(write(client, topic, [{"value": b"a"}, {"value": b"b"}], acks=acks))
    assert offsets == ([-1, -1] if acks == 0 else [0, 1])
    assert pairs(read(client, topic, 2)) == [(None, b"a"), (None, b"b")]


def test_read_from_within_a_compressed_batch(client, topic):
    """Reading from an offset gives that record first, though brokers give the whole batch it lies in."""
    delivered(write(client, topic, [{"value": b"%d" % n} for n in range(20)], compression="gzip"))
    with client.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0, 13)])
        assert [m.offset() for m in consumer.consume(7, 20)] == list(range(13, 20))


def test_a_large_message_makes_the_fetch_grow(client, topic):
    """A message larger than what is fetched of a partition is read all the same."""
    values = [b"small", b"L" * 300_000, b"after"]
    for value in values:
        delivered(write(client, topic, [{"value": value}]))
    found = read(client, topic, 3, partition_bytes=1000)
    assert [message.value() for message in found] == values


def test_ends(client, topic):
    """A partition's first offset and the one behind its last; both the same where it is empty."""
    assert client.offset_at(topic, 0, EARLIEST) == client.offset_at(topic, 0, LATEST) == 0
    delivered(write(client, topic, [{"value": b"v"}] * 3))
    assert (client.offset_at(topic, 0, EARLIEST), client.offset_at(topic, 0, LATEST)) == (0, 3)


@pytest.mark.parametrize("kafka", since(0, 10, 1), indirect=True)
def test_offsets_by_time(client, topic):
    """From 0.10.1 on the offset of a time is exact, and there is none behind the last record."""
    start = int(time.time() * 1000) - 10_000
    for number in range(3):
        delivered(write(client, topic, [{"value": b"v", "timestamp": start + number * 1000}]))
    times = [start - 1, start, start + 1, start + 2000, start + 2001]
    assert [client.offset_at(topic, 0, at) for at in times] == [0, 0, 1, 2, None]
    assert [m.timestamp() for m in read(client, topic, 3)] == [(1, start + n * 1000) for n in range(3)]


@pytest.mark.parametrize("kafka", ["0.8.2-beta", "0.8.2.2", "0.9.0.1"], indirect=True)
def test_offsets_by_time_of_old(client, topic):
    """Before, a time gives the newest segment that began before it, or none."""
    delivered(write(client, topic, [{"value": b"v"}] * 3))
    assert client.offset_at(topic, 0, int(time.time() * 1000) - 3_600_000) is None
    assert client.offset_at(topic, 0, int(time.time() * 1000) + 3_600_000) == 3


def test_events_structured(kafka, client, topic):
    """Events go over any broker in structured mode; without headers, reading must be lenient."""
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
    """Events in binary mode keep their attributes in headers, from 0.11 on."""
    event = Event(id="1", source="/live", type="t", subject="é", data=b"\x00\xff", datacontenttype="a/b")
    with client.producer() as producer:
        EventProducer(producer, topic=topic).send(event).result(20)
    with client.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0, EARLIEST)])
        assert EventConsumer(consumer, strict=True).poll(20).event == event


@pytest.mark.parametrize("kafka", since(0, 11), indirect=True)
def test_idempotent(client, topic):
    """Producing with a producer id numbers the batches on, so the broker takes each once."""
    batch = [{"value": b"%d" % n} for n in range(50)]
    assert delivered(write(client, topic, batch, idempotent=True, batch_records=7)) == list(range(50))


@pytest.mark.parametrize("kafka", ["0.8.2-beta", "0.8.2.2", "0.9.0.1", "0.10.2.2"], indirect=True)
def test_idempotent_needs_a_broker_that_can(client, topic):
    """To ask an old broker for it is refused, in words."""
    [(error, _)] = write(client, topic, [{"value": b"v"}], idempotent=True)
    assert isinstance(error, Unsupported)
    assert "needs a broker of 0.11" in str(error)
