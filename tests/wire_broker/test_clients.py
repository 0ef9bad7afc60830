"""librdkafka and kafka-python as clients of the broker."""

from __future__ import annotations

import gc
import logging
import threading
import time
import warnings
from collections import Counter
from itertools import product

import confluent_kafka
import kafka
import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient, ConfigResource

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.error_codes import ErrorCode
from tests.support.wire import eventually, meanwhile
from tests.support.wire_broker import RELEASES, Settings, WireBroker, faults

# kafka-python leaves some of its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
MODERN = ["0.10", "1.1", "3.9", "4.3"]
COUNT = 40


@pytest.fixture(scope="module", autouse=True)
def _last_sockets():
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # close the last sockets here, and not in a test of another module


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL, logger="kafka")
    yield
    assert [t.name for t in threading.enumerate() if t.name.startswith("WireBroker")] == []


def conf(broker, **more):
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "log_level": 0,
        "linger.ms": 1,
        "retry.backoff.ms": 10,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def send(broker, count=COUNT, **more):
    """Produce by librdkafka; return the errors of deliveries."""
    producer = confluent_kafka.Producer(conf(broker, **more))
    errors = []
    for n in range(count):
        producer.produce(
            "t",
            b"%d" % n,
            key=b"%d" % n,
            on_delivery=lambda error, message: errors.append(error) if error else None,
        )
    assert producer.flush(10) == 0
    return errors


def reader(broker, topics=("t",), **more):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "log_level": 0,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 100,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    if topics:
        consumer.subscribe(list(topics))
    return consumer


def take(consumer, count, seconds=10.0):
    got, deadline = [], time.monotonic() + seconds
    while len(got) < count and time.monotonic() < deadline:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            got.append(message)
    return got


@pytest.mark.parametrize(
    ("release", "codec"),
    [*product(MODERN, ["none", "gzip"]), *product(["0.10", "4.3"], ["snappy", "lz4"]), ("4.3", "zstd")],
)
def test_librdkafka_produces_reads_and_commits(release, codec):
    """Librdkafka reads all records of two partitions in a group, and its offsets are committed."""
    with WireBroker(release, settings=Settings(partitions=2)) as broker:
        assert send(broker, compression_type=codec) == []
        consumer = reader(broker)
        got = take(consumer, COUNT)
        consumer.commit(asynchronous=False)
        consumer.close()
        assert sorted(int(m.value()) for m in got) == list(range(COUNT))
        assert all(m.key() == m.value() for m in got)
        assert sum(p.offset for p in broker.committed_offsets("g").values()) == COUNT
        assert broker.connection_errors == []


@pytest.mark.parametrize(
    ("release", "version"), [("0.8.2-beta", "0.8.2"), ("0.8.2", "0.8.2.2"), ("0.9", "0.9.0.1")]
)
def test_librdkafka_works_with_old_brokers(release, version):
    """With api.version.request off, librdkafka produces and reads with the old versions."""
    old = {"api_version_request": False, "broker_version_fallback": version}
    # Of one partition alone librdkafka cannot read Metadata 0: it reckons with longer answers.
    with WireBroker(release, settings=Settings(partitions=2)) as broker:
        assert send(broker, **old) == []
        consumer = reader(broker, [], **old)
        consumer.assign([confluent_kafka.TopicPartition("t", n, 0) for n in (0, 1)])
        got = take(consumer, COUNT)
        consumer.close()
        assert sorted(int(m.value()) for m in got) == list(range(COUNT))
        assert all(call.version <= RELEASES[release].versions[call.key].last for call in broker.calls())


def test_librdkafka_retries_are_idempotent():
    """A batch whose response is lost is sent again, and appended once."""
    with WireBroker("4.3") as broker:
        broker.faults.add(faults.drop_after(), api=ApiKey.PRODUCE, times=2)
        broker.faults.add(faults.error(ErrorCode.REQUEST_TIMED_OUT), api=ApiKey.PRODUCE, times=1)
        assert send(broker, enable_idempotence=True) == []
        assert [record.value for record in broker.records("t")] == [b"%d" % n for n in range(COUNT)]
        assert {call.key for call in broker.calls()} >= {0, 22}


def test_librdkafka_follows_the_leader():
    """After error 6 librdkafka sends to the new leader."""
    with WireBroker("4.3", brokers=2) as broker:
        broker.create_topic("t")
        broker.faults.add(faults.move_leader("t", 0, 2), api=ApiKey.PRODUCE)
        assert send(broker) == []
        assert Counter(call.node.id for call in broker.calls(ApiKey.PRODUCE)).keys() == {1, 2}
        assert len(broker.records("t")) == COUNT


@pytest.mark.parametrize("release", ["0.10", "4.3"])
def test_two_consumers_of_librdkafka_share_a_topic(release):
    """The second consumer gets half of the partitions, and all once the first has left."""
    with WireBroker(release, settings=Settings(partitions=4)) as broker:
        broker.create_topic("t", 4)
        one = reader(broker)
        assert eventually(lambda: one.poll(0.02) is None and len(one.assignment()) == 4, 10)
        two = reader(broker)

        def shared(first, second):
            one.poll(0.02)
            two.poll(0.02)
            return (len(one.assignment()), len(two.assignment())) == (first, second)

        assert eventually(lambda: shared(2, 2), 10)
        generation = broker.group("g").generation
        one.close()
        assert eventually(lambda: two.poll(0.02) is None and len(two.assignment()) == 4, 10)
        two.close()
        assert broker.group("g").generation > generation


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_and_kafka_python_log_in(mechanism):
    """Both clients log in by each mechanism."""
    with WireBroker("4.3", users={"ann": "secret"}) as broker:
        security = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
        assert send(broker, 1, **security, sasl_username="ann", sasl_password="secret") == []
        producer = python_producer(
            broker, **security, sasl_plain_username="ann", sasl_plain_password="secret"
        )
        producer.send("t", b"x").get(5)
        producer.close()
        assert len(broker.records("t")) == 2


def python_producer(broker, **more):
    return kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **more)


def python_consumer(broker, **more):
    return kafka.KafkaConsumer(
        "t",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=5000,
        heartbeat_interval_ms=100,
        **more,
    )


@pytest.mark.parametrize(
    ("release", "more"),
    [
        ("4.3", {}),
        ("3.9", {}),
        ("1.1", {}),
        ("0.10", {}),
        ("0.9", {"api_version": (0, 9)}),
        ("0.8.2", {"api_version": (0, 8, 2)}),
    ],
)
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_kafka_python_produces_reads_and_commits(release, more, codec):
    """kafka-python reads all records of two partitions, in a group if the release has groups."""
    with WireBroker(release, settings=Settings(partitions=2)) as broker:
        broker.create_topic("t", 2)
        producer = python_producer(broker, compression_type=codec, **more)
        for n in range(COUNT):
            producer.send("t", b"%d" % n, key=b"%d" % n)
        producer.flush(10)
        producer.close()
        consumer = python_consumer(broker, **more)
        got = [next(consumer) for _ in range(COUNT)]
        consumer.commit()
        consumer.close()
        assert sorted(int(record.value) for record in got) == list(range(COUNT))
        assert all(record.key == record.value for record in got)
        assert sum(p.offset for p in broker.committed_offsets("g").values()) == COUNT
        assert broker.connection_errors == []


def test_two_consumers_of_kafka_python_share_a_topic():
    """The second consumer gets half of the partitions."""
    with WireBroker("4.3", settings=Settings(partitions=4)) as broker:
        broker.create_topic("t", 4)
        sizes, done = {}, threading.Event()

        def consume(name):
            consumer = python_consumer(broker)
            while not done.is_set():
                # Long enough for a rebalance: kafka-python forgets one that its poll was too short for.
                consumer.poll(1000)
                sizes[name] = len(consumer.assignment())
            consumer.close()

        with meanwhile(lambda: consume(1)), meanwhile(lambda: consume(2)):
            shared = eventually(lambda: sizes == {1: 2, 2: 2}, 10)
            done.set()
        assert shared


def test_librdkafka_lists_topics_and_subscribes_to_patterns():
    """Bytes after a request are ignored, as librdkafka sends three after its Metadata of all topics."""
    for release in MODERN:
        with WireBroker(release) as broker:
            broker.create_topic("orders")
            broker.create_topic("other")
            listed = AdminClient(conf(broker)).list_topics(timeout=10)
            assert set(listed.topics) == {"orders", "other"}
            broker.create_topic("t")
            assert send(broker) == []
            consumer = reader(broker, ["^t$"], topic_metadata_refresh_interval_ms=50)
            assert len(take(consumer, COUNT)) == COUNT
            consumer.close()
            assert broker.connection_errors == []


def test_librdkafka_describes_groups_and_settings():
    """Tools see members with their assignments, and the settings of topics and brokers."""
    with WireBroker("4.3", settings=Settings(max_message_bytes=5000)) as broker:
        broker.create_topic("t")
        assert send(broker) == []
        consumer = reader(broker)
        assert len(take(consumer, COUNT)) == COUNT
        tools = AdminClient(conf(broker))
        (listed,) = tools.list_consumer_groups().result(10).valid
        assert (listed.group_id, listed.state) == ("g", ConsumerGroupState.STABLE)
        described = tools.describe_consumer_groups(["g"])["g"].result(10)
        (member,) = described.members
        assert [(one.topic, one.partition) for one in member.assignment.topic_partitions] == [("t", 0)]
        assert (described.partition_assignor, member.host) == ("range", "/127.0.0.1")
        consumer.close()
        resources = [ConfigResource(ConfigResource.Type.TOPIC, "t"), ConfigResource("broker", "1")]
        topic, node = (one.result(10) for one in tools.describe_configs(resources).values())
        assert topic["max.message.bytes"].value == "5000"
        assert topic["cleanup.policy"].is_default
        assert node["num.partitions"].value == "1"


def test_transactions_are_refused_at_once():
    """A transactional producer of librdkafka ends with a fatal error that says why, not with a timeout."""
    with WireBroker("4.3") as broker:
        producer = confluent_kafka.Producer(conf(broker, transactional_id="x"))
        began = time.monotonic()
        with pytest.raises(confluent_kafka.KafkaException) as caught:
            producer.init_transactions(30)
        assert time.monotonic() - began < 10
        assert caught.value.args[0].code() == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_groups_of_the_new_protocol_are_refused():
    """A consumer of KIP-848 ends with a fatal error at once."""
    with WireBroker("4.3") as broker:
        broker.create_topic("t")
        settings = conf(broker) | {"group.id": "g", "group.protocol": "consumer"}
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe(["t"])
        found = []
        assert eventually(lambda: found.append(consumer.poll(0.1)) or found[-1] is not None)
        consumer.close()
        assert found[-1].error().code() == confluent_kafka.KafkaError._FATAL
        assert broker.connection_errors == []
