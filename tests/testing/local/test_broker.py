"""The local broker is a real Kafka, and leaves nothing on the machine."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from cloudevents_kafka.testing import BrokerFailed, LocalBroker
from cloudevents_kafka.testing.local import _broker
from tests.testing.local.programs import eventually, is_alive, python

pytestmark = pytest.mark.broker


def write(servers, topic, *values):
    """Produce values and wait for their delivery."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def consume(servers, topic, number):
    """Return a number of messages, consumed by a group."""
    settings = {"bootstrap.servers": servers, "group.id": "g", "log_level": 0}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        return consumer.consume(number, 20)
    finally:
        consumer.close()


def read(servers, topic, number):
    """Return the values of a number of messages."""
    return [message.value() for message in consume(servers, topic, number)]


def test_serves(kafka_broker, kafka_topic):
    """A consumed record has the key, value and headers of the produced one."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce(kafka_topic, b"value", b"key", headers=[("name", None), ("name", b"\xff")])
    assert producer.flush(10) == 0
    (message,) = consume(kafka_broker.bootstrap_servers, kafka_topic, 1)
    assert (message.key(), message.value()) == (b"key", b"value")
    assert message.headers() == [("name", None), ("name", b"\xff")]


def test_listens_on_loopback_only(kafka_broker):
    """The broker listens on 127.0.0.1 and advertises no other address."""
    host, _, port = kafka_broker.bootstrap_servers.partition(":")
    assert (host, int(port)) == ("127.0.0.1", kafka_broker.port)
    metadata = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers}).list_topics(timeout=10)
    assert [(broker.host, broker.port) for broker in metadata.brokers.values()] == [(host, int(port))]


def test_topic_settings(kafka_broker):
    """A topic has its partitions and its configuration, and can be deleted."""
    name = kafka_broker.create_topic(
        "settings", partitions=3, config={"cleanup.policy": "compact", "preallocate": True}
    )
    client = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    assert len(client.list_topics(name, timeout=10).topics[name].partitions) == 3
    (future,) = client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name)]).values()
    config = future.result(10)
    assert (config["cleanup.policy"].value, config["preallocate"].value) == ("compact", "true")
    with pytest.raises(KafkaException, match="already exists"):
        kafka_broker.create_topic(name)
    kafka_broker.delete_topic(name)
    assert eventually(lambda: name not in client.list_topics(timeout=10).topics)


def cluster_id(broker):
    """Return the id of a broker's cluster."""
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    return client.describe_cluster().result(10).cluster_id


@pytest.mark.release  # tests/jvm/test_cache.py has two processes
def test_two_at_once(kafka_broker):
    """Two brokers are two clusters with their own data."""
    with LocalBroker() as other:
        assert other.port != kafka_broker.port
        assert cluster_id(other) != cluster_id(kafka_broker)
        folder, pid = other.folder, other.pid
    assert not folder.exists()
    assert not other.running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.release
def test_kill_and_restart_keep_data():
    """After a crash and after a restart the broker has its data, port and committed offsets."""
    with LocalBroker(properties={"auto.create.topics.enable": False}) as broker:
        servers = broker.bootstrap_servers
        broker.create_topic("kept")
        write(servers, "kept", b"1", b"2")
        assert read(servers, "kept", 1) == [b"1"]
        broker.kill()
        assert not broker.running
        broker.start()
        assert read(servers, "kept", 1) == [b"2"]
        write(servers, "kept", b"3")
        broker.restart()
        assert broker.bootstrap_servers == servers
        assert read(servers, "kept", 1) == [b"3"]


@pytest.mark.release
def test_data_dir(tmp_path):
    """A data folder keeps the data for the next broker."""
    for expected in ([], [b"first"]):
        with LocalBroker(data_dir=tmp_path / "kept") as broker:
            if expected:
                assert read(broker.bootstrap_servers, "orders", 1) == expected
            else:
                broker.create_topic("orders")
                write(broker.bootstrap_servers, "orders", b"first")
    assert (tmp_path / "kept" / "broker.log").exists()


def test_bad_setting():
    """The error of a broker that does not start has the end of its log; no folder remains."""
    broker = LocalBroker(properties={"num.io.threads": "many"})
    with pytest.raises(BrokerFailed, match=r"num\.io\.threads") as caught:
        broker.start()
    assert "exit code 1" in str(caught.value)
    assert not caught.value.log_file.parent.exists()
    assert not broker.running


def test_slow_start():
    """A broker that is not ready in time is ended."""
    with pytest.raises(BrokerFailed, match="was not ready after 0 s"):
        LocalBroker(start_seconds=0.0).start()


@pytest.fixture
def taken():
    """A port on which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.release
def test_port_taken_meanwhile(monkeypatch, taken):
    """If another program takes the chosen port, other ports are tried."""
    free = _broker.free_ports
    answers = iter([[taken, *free(1)]])
    monkeypatch.setattr(_broker, "free_ports", lambda count: next(answers, None) or free(count))
    with LocalBroker() as broker:
        assert broker.port != taken


def test_fixed_port(taken):
    """A fixed port that is taken is an error at once."""
    with pytest.raises(BrokerFailed, match=f"port {taken} must be free"):
        LocalBroker(port=taken).start()


@pytest.mark.release
def test_settings_of_internal_topics():
    """Settings of internal topics apply, although the prepared data has such topics."""
    with LocalBroker(properties={"offsets.topic.num.partitions": 3}) as broker:
        broker.create_topic("t")
        write(broker.bootstrap_servers, "t", b"1")
        read(broker.bootstrap_servers, "t", 1)
        topics = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics
        assert len(topics["__consumer_offsets"].partitions) == 3


PARENT = """
    import sys, time
    from cloudevents_kafka.testing import LocalBroker
    with LocalBroker() as broker:
        print(broker.pid, broker.folder, flush=True)
        time.sleep(100)
"""


@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGINT", marks=pytest.mark.release)])
def test_parent_ends(tmp_path, name):
    """Neither broker nor data remain after Ctrl-C or a crash of the program."""
    with python(PARENT) as parent:
        pid, folder = parent.stdout.readline().split()
        os.killpg(parent.pid, getattr(signal, name))
        parent.wait()
        assert eventually(lambda: not is_alive(int(pid)))
        assert eventually(lambda: not Path(folder).exists())


def test_interrupted_start(tmp_path):
    """Nothing remains after Ctrl-C during a start."""
    source = f"""
        import tempfile
        tempfile.tempdir = {str(tmp_path)!r}
        from cloudevents_kafka.testing import LocalBroker
        print("up", flush=True)
        LocalBroker().start()
    """
    with python(source) as parent:
        parent.stdout.readline()
        assert eventually(lambda: any(tmp_path.glob("cloudevents-kafka-*/broker.log")))
        os.killpg(parent.pid, signal.SIGINT)
        parent.wait()
        # In place of an interrupt within the constructor of a client, confluent-kafka raises a TypeError.
        assert re.search("KeyboardInterrupt|TypeError: expected configuration", parent.stderr.read())
    assert eventually(lambda: not list(tmp_path.iterdir()))


def test_not_started():
    """The properties of a broker that was not started are errors."""
    broker = LocalBroker()
    assert not broker.running
    for name in ("bootstrap_servers", "pid", "folder"):
        with pytest.raises(RuntimeError, match="the broker"):
            getattr(broker, name)
    broker.stop()
