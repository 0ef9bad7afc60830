"""The nodes of 0.7 in a real ZooKeeper: watched, written, and gone after their session."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise

import pytest

from cloudevents_kafka.protocol.errors import Disconnected, Malformed
from cloudevents_kafka.protocol.v07 import zookeeper
from cloudevents_kafka.protocol.v07.partitions import BrokerPartition, Cluster, Group
from cloudevents_kafka.protocol.v07.zookeeper import Broker, Consumer, NodeExists
from tests.support import docstrings
from tests.support.kafka07 import zookeeper_server

pytestmark = pytest.mark.legacy

ONE, TWO = Broker(1, "one-1795", "127.0.0.1", 9001), Broker(20, "two-1795", "127.0.0.1", 9020)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Yield the address of a ZooKeeper with a short session timeout."""
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture
def connect(hosts):
    """Yield a factory of clients with a new tree."""
    clients = []
    root = f"/test-{time.monotonic_ns()}"

    def connect():
        if not clients:
            clients.append(zookeeper.connect(hosts))
            clients[0].create(root)
        clients.append(zookeeper.connect(hosts + root))
        return clients[-1]

    yield connect
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def client(connect):
    """Return the client under test."""
    return connect()


@pytest.fixture
def brokers(connect):
    """Return the client that acts as the brokers."""
    return connect()


def eventually(read, expected):
    deadline = time.monotonic() + 20
    while (found := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    assert found == expected


def value_of(broker):
    return f"{broker.creator}:{broker.host}:{broker.port}".encode()


def announce_broker(client, broker, **more):
    """Create the node that a broker creates when it starts."""
    zookeeper.announce(client, f"/brokers/ids/{broker.id}", value_of(broker), broker.creator, **more)


def announce_topic(client, topic, broker, partitions):
    """Create the node that a broker creates with a topic's first message."""
    path, value = f"/brokers/topics/{topic}/{broker.id}", str(partitions).encode()
    zookeeper.announce(client, path, value, broker.creator)


def test_brokers_come_and_go(client, brokers):
    """A watcher starts without nodes, and follows brokers and topics; it reports each change once."""
    changes = []
    cluster = zookeeper.watch_cluster(client, on_change=changes.append)
    assert cluster.current == Cluster({}, {})
    announce_broker(brokers, ONE)
    eventually(lambda: cluster.current, Cluster({1: ONE}, {}))
    assert cluster.current.destinations("t") == [BrokerPartition(1, 0)]
    announce_topic(brokers, "t", ONE, 2)
    eventually(lambda: cluster.current.topics, {"t": {1: 2}})
    announce_broker(brokers, TWO)
    eventually(lambda: cluster.current, Cluster({1: ONE, 20: TWO}, {"t": {1: 2}}))
    assert cluster.current.destinations("t") == [
        BrokerPartition(1, 0),
        BrokerPartition(1, 1),
        BrokerPartition(20, 0),
    ]
    assert cluster.current.partitions("t") == [BrokerPartition(1, 0), BrokerPartition(1, 1)]
    brokers.delete("/brokers/ids/1")
    brokers.delete("/brokers/topics/t/1")
    eventually(lambda: cluster.current, Cluster({20: TWO}, {"t": {}}))
    assert all(before != after for before, after in pairwise(changes))
    eventually(lambda: changes[-1], cluster.current)
    cluster.close()


def test_address_changes(client, brokers):
    """A broker that returns with another address or more partitions has its current values."""
    announce_broker(brokers, ONE)
    announce_topic(brokers, "t", ONE, 2)
    cluster = zookeeper.watch_cluster(client, ["t"])
    moved = ONE._replace(host="127.0.0.2")
    with brokers.transaction() as both:  # so fast that its children never seem to change
        both.delete("/brokers/ids/1")
        both.create("/brokers/ids/1", value_of(moved), ephemeral=True)
    brokers.set("/brokers/topics/t/1", b"5")
    eventually(lambda: cluster.current, Cluster({1: moved}, {"t": {1: 5}}))
    cluster.close()


def test_closed_view(client, brokers):
    """A closed watcher keeps its value."""
    cluster = zookeeper.watch_cluster(client)
    watching = zookeeper.watch_cluster(client)
    cluster.close()
    announce_broker(brokers, ONE)
    eventually(lambda: watching.current.brokers, {1: ONE})
    assert cluster.current == Cluster({}, {})
    watching.close()


def test_malformed_nodes(client, brokers):
    """Malformed nodes are problems; the others are read."""
    announce_broker(brokers, ONE)
    brokers.create("/brokers/ids/x", b"c:h:1")
    brokers.create("/brokers/ids/7", b"nothing")
    announce_topic(brokers, "t", ONE, 2)
    brokers.create("/brokers/topics/t/7", b"many")
    cluster = zookeeper.watch_cluster(client).current
    assert (cluster.brokers, cluster.topics) == ({1: ONE}, {"t": {1: 2}})
    assert [problem.split(":")[0] for problem in cluster.problems] == [
        "/brokers/ids/7",
        "/brokers/ids/x",
        "/brokers/topics/t/7",
    ]


def test_parents_of_a_node(client):
    """The first consumer creates the parents of its node, with its id as value; the next keeps them."""
    first = Consumer(client, "g", "first", {"t": 1})
    Consumer(client, "g", "second", {"t": 2})
    first.commit("t", BrokerPartition(1, 0), 77)
    values = {
        path: client.get(path)[0]
        for path in ("/consumers", "/consumers/g", "/consumers/g/ids", "/consumers/g/offsets/t")
    }
    assert values == dict.fromkeys(values, b"first")
    assert client.get("/consumers/g/ids/second")[0] == b'{"t":2}'
    assert client.get("/consumers/g/offsets/t/1-0")[0] == b"77"
    assert client.get("/consumers/g/offsets/t/1-0")[1].ephemeralOwner == 0


def test_ephemeral_nodes(client, brokers):
    """Brokers, topics, consumers and owners end with their session; offsets and parents remain."""
    announce_broker(brokers, ONE)
    announce_topic(brokers, "t", ONE, 2)
    consumer = Consumer(client, "g", "c", {"t": 1})
    consumer.claim("t", BrokerPartition(1, 0))
    consumer.commit("t", BrokerPartition(1, 0), 7)
    owners = {
        "/brokers/ids/1": brokers,
        "/brokers/topics/t/1": brokers,
        "/consumers/g/ids/c": client,
        "/consumers/g/owners/t/1-0": client,
    }
    for path, owner in owners.items():
        assert client.get(path)[1].ephemeralOwner == owner.client_id[0], path
    for path in ("/brokers/ids", "/brokers/topics/t", "/consumers/g", "/consumers/g/offsets/t/1-0"):
        assert client.get(path)[1].ephemeralOwner == 0, path


def test_offsets(client):
    """Offsets are by group, topic and partition; a missing one is None, an invalid one `Malformed`."""
    consumer = Consumer(client, "g", "c", {"t": 1})
    assert consumer.offset("t", BrokerPartition(1, 0)) is None
    for offset in (0, 77, 2**40):
        consumer.commit("t", BrokerPartition(1, 0), offset)
        assert consumer.offset("t", BrokerPartition(1, 0)) == offset
    assert consumer.offset("t", BrokerPartition(1, 1)) is None
    client.set("/consumers/g/offsets/t/1-0", b"no number")
    with pytest.raises(Malformed, match="/consumers/g/offsets/t/1-0"):
        consumer.offset("t", BrokerPartition(1, 0))


def test_group_shares(client, connect, brokers):
    """All watchers of a group compute the same assignment, and again after a change."""
    for broker in (ONE, TWO):
        announce_broker(brokers, broker)
        announce_topic(brokers, "t", broker, 3)
    cluster = zookeeper.watch_cluster(client).current
    other = connect()
    Consumer(client, "g", "a", {"t": 1})
    group = zookeeper.watch_group(client, "g")
    assert group.current == Group({"a": {"t": 1}})
    Consumer(other, "g", "b", {"t": 2, "u": 1})
    eventually(lambda: list(group.current.consumers), ["a", "b"])
    assert group.current.assignment("t", cluster) == {
        "a-0": [BrokerPartition(1, 0), BrokerPartition(1, 1)],
        "b-0": [BrokerPartition(1, 2), BrokerPartition(20, 0)],
        "b-1": [BrokerPartition(20, 1), BrokerPartition(20, 2)],
    }
    other.stop()
    eventually(lambda: list(group.current.consumers), ["a"])
    assert len(group.current.assignment("t", cluster)["a-0"]) == 6
    client.set("/consumers/g/ids/a", b"nonsense")
    eventually(lambda: group.current.consumers, {})
    assert group.current.problems[0].startswith("/consumers/g/ids/a: ")


def test_one_owner_each(client, connect):
    """A partition has one owner, and another one after its release."""
    first = Consumer(client, "g", "a", {"t": 1})
    second = Consumer(connect(), "g", "b", {"t": 1})
    partition = BrokerPartition(1, 0)
    first.claim("t", partition)
    first.claim("t", partition, stream=1)
    assert client.get("/consumers/g/owners/t/1-0")[0] == b"a-1"
    with pytest.raises(NodeExists, match="/consumers/g/owners/t/1-0 must not exist"):
        second.claim("t", partition, timeout=0)
    second.release("t", partition)
    assert client.get("/consumers/g/owners/t/1-0")[0] == b"a-1"
    first.release("t", partition)
    second.claim("t", partition, timeout=0)
    assert client.get("/consumers/g/owners/t/1-0")[0] == b"b-0"


CRASH = """
import os, sys
from cloudevents_kafka.protocol.v07 import zookeeper
client = zookeeper.connect(sys.argv[1], timeout=2.0)
zookeeper.announce(client, "/brokers/ids/1", b"crashed:127.0.0.1:9001", "crashed")
os._exit(9)
"""


def crash(client, hosts):
    """Return the client of a broker that registered and died."""
    done = subprocess.run([sys.executable, "-c", CRASH, hosts + client.chroot], timeout=60, check=False)
    assert done.returncode == 9


def test_crash(client, hosts):
    """A dead broker remains until its session expires; then the watcher follows."""
    cluster = zookeeper.watch_cluster(client)
    crash(client, hosts)
    eventually(lambda: [b.creator for b in cluster.current.brokers.values()], ["crashed"])
    eventually(lambda: cluster.current.brokers, {})
    cluster.close()


def test_fast_restart(client, hosts):
    """A restart that finds its own node raises an error, or waits until the node expires."""
    crash(client, hosts)
    with pytest.raises(NodeExists, match=r"/brokers/ids/1 must not exist, but session 0x"):
        announce_broker(client, ONE, timeout=0)
    announce_broker(client, ONE, timeout=20)
    assert client.get("/brokers/ids/1")[0] == value_of(ONE)


def test_session_lost(client, hosts, connect):
    """After a lost session, all nodes are read and watched again."""
    cluster = zookeeper.watch_cluster(client)
    brokers = connect()
    announce_broker(brokers, ONE)
    eventually(lambda: cluster.current.brokers, {1: ONE})
    lost = []
    client.add_listener(lambda state: lost.append(state) if state == "LOST" else None)
    session, password = client.client_id
    thief = type(client)(hosts, client_id=(session, password))  # who closes another's session ends it
    thief.start(20)
    thief.stop()
    thief.close()
    announce_broker(brokers, TWO)
    eventually(lambda: cluster.current.brokers, {1: ONE, 20: TWO})
    eventually(lambda: len(lost), 1)
    brokers.delete("/brokers/ids/20")
    eventually(lambda: cluster.current.brokers, {1: ONE})


def test_stopped_client(client):
    """Each call with a stopped client raises `Disconnected`."""
    consumer = Consumer(client, "g", "c", {"t": 1})
    client.stop()
    for call in (
        lambda: zookeeper.watch_cluster(client),
        lambda: announce_broker(client, ONE),
        lambda: consumer.offset("t", BrokerPartition(1, 0)),
        lambda: consumer.commit("t", BrokerPartition(1, 0), 1),
        lambda: consumer.release("t", BrokerPartition(1, 0)),
    ):
        with pytest.raises(Disconnected, match="ZooKeeper: "):
            call()


def test_no_server():
    """Connecting to an address without ZooKeeper raises `Disconnected` in time."""
    with pytest.raises(Disconnected, match="ZooKeeper: "):
        zookeeper.connect("127.0.0.1:1", timeout=0.3)


@pytest.mark.parametrize(
    "doc", [doc for doc in docstrings.with_examples() if doc.needs == "ZooKeeper"], ids=lambda doc: doc.name
)
def test_docstrings(doc, client, hosts):
    """Each example in a docstring prints what it says."""
    docstrings.run(doc, zookeeper=hosts + client.chroot)
