"""`Cluster`: bootstrap addresses, metadata and retries."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from cloudevents_kafka.protocol.client import _opening
from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._broker import connect
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, ClientError, DeadlineExceeded, Disconnected
from cloudevents_kafka.protocol.messages.topics import MetadataRequest
from tests.support.wire import eventually
from tests.support.wire_broker import faults

METADATA, LIST_OFFSETS = 3, 2


@pytest.fixture
def make(stack):
    """Return a function that creates clusters."""

    def make(*brokers):
        found = [b if isinstance(b, Address) else Address(b.nodes[0].host, b.nodes[0].port) for b in brokers]
        cluster = Cluster(found, ConnectionSettings())
        stack.callback(cluster.close)
        return cluster

    return make


@pytest.fixture
def listening():
    """Yield an address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Address(*server.getsockname())


@pytest.fixture
def dead():
    """Return an address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Address(*server.getsockname())


@pytest.fixture
def web():
    """Yield the address of a web server."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            try:
                while True:
                    peer, _ = server.accept()
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    peer.recv(10_000)
                    peer.close()
            except OSError:
                return

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address(*server.getsockname())
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("first", ["dead", "listening", "web"])
def test_the_first_address_may_be_dead(broker, make, request, first):
    """A dead, silent or foreign server is skipped in time."""
    cluster = make(request.getfixturevalue(first), broker)
    began = time.monotonic()
    assert cluster.fetch_metadata(["t"], Deadline(20)).topics[0].name == "t"
    assert time.monotonic() - began < 15


def test_all_addresses_may_be_dead(dead, listening, make):
    """The error has each address and its failure."""
    with pytest.raises(Disconnected, match=f"no broker can be reached: {dead}: .*refused"):
        make(dead).any_broker(Deadline(2))
    with pytest.raises(DeadlineExceeded, match=f"{dead}: .*; .*{listening}"):
        make(dead, listening).any_broker(Deadline(0.3))
    with pytest.raises(Disconnected, match="the address list is empty"):
        make().any_broker(Deadline(0.3))


def test_metadata_is_kept(broker, make):
    """Leaders of one topic are looked up with one request."""
    broker.create_topic("t")
    cluster = make(broker)
    for _ in range(5):
        assert cluster.partitions("t", Deadline(2)) == [0]
        assert cluster.leader("t", 0, Deadline(2)) == 1
    assert len(broker.calls(METADATA)) == 1
    time.sleep(0.05)
    cluster.invalidate()
    cluster.leader("t", 0, Deadline(2))
    assert len(broker.calls(METADATA)) == 2


def test_a_new_topic_is_waited_for(start, make):
    """A topic without leaders is requested again until it has them."""
    broker = start(settings={"elects_leaders_at_once": False})
    assert make(broker).partitions("new", Deadline(5), create=True) == [0]
    assert len(broker.calls(METADATA)) >= 2


def test_an_unknown_partition_is_an_error(broker, make):
    """Error 3 has the range of partitions; a partition without a leader is error 5."""
    broker.create_topic("u", 3)
    cluster = make(broker)
    with pytest.raises(BrokerError, match=r"u\[7\]: UNKNOWN.*the topic has the partitions 0 to 2"):
        cluster.leader("u", 7, Deadline(2))
    broker.move_leader("u", 1, -1)
    cluster.invalidate()
    with pytest.raises(BrokerError, match=r"u\[1\]: LEADER_NOT_AVAILABLE"):
        cluster.leader("u", 1, Deadline(2))


def test_an_unknown_node_is_looked_up_once(broker, make):
    """A broker that is not in the metadata raises `Disconnected` after one request."""
    with pytest.raises(Disconnected, match="the cluster has no broker with the id 99"):
        make(broker).broker(99, Deadline(2))
    assert len(broker.calls(METADATA)) == 1


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER), 3),
        (Disconnected("x"), 3),
        (BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 1),
        (ClientError("x"), 1),
    ],
)
def test_retriable_errors_are_retried(make, error, tries):
    """Retriable errors are retried until success; others are raised at once."""
    tried = []

    def attempt():
        tried.append(1)
        if len(tried) < 3:
            raise error
        return "done"

    if tries == 3:
        assert make().retry("trying", attempt, Deadline(5)) == "done"
    else:
        with pytest.raises(type(error)):
            make().retry("trying", attempt, Deadline(5))
    assert len(tried) == tries


def test_retries_end_with_the_deadline(make):
    """The error has the action, the time and the last error; pauses grow."""
    tried = []

    def attempt():
        tried.append(1)
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "group g")

    with pytest.raises(
        DeadlineExceeded, match=r"trying: not done within 0.3 s; the last error: group g: COORD"
    ):
        make().retry("trying", attempt, Deadline(0.3))
    assert 2 < len(tried) < 7


def test_a_lost_connection_is_replaced(broker, make):
    """After a closed connection the request is sent over a new one."""
    cluster = make(broker)
    cluster.fetch_metadata(["t"], Deadline(2))
    broker.close_connections()
    assert cluster.retry("x", lambda: cluster.fetch_metadata(["t"], Deadline(2)), Deadline(2)).topics
    assert len({call.connection for call in broker.calls()}) == 2


def test_metadata_is_asked_of_a_broker_that_answers(start, make):
    """A broker that has fallen silent is not asked while another one has answered since."""
    broker = start(brokers=2)
    cluster = make(broker)
    for node in (1, 2, 1):
        cluster.fetch_metadata([], Deadline(5))
        cluster.broker(node, Deadline(5))
    other = cluster.any_broker(Deadline(5)).address.port
    silent = next(node for node in broker.nodes if node.port != other)
    broker.faults.add(faults.no_response(), times=None, when=lambda call: call.node.id == silent.id)
    for _ in range(3):
        assert cluster.fetch_metadata([], Deadline(5)).brokers
    assert not [call for call in broker.calls(METADATA)[-3:] if call.node.id == silent.id]


def test_a_broker_that_falls_silent_delays_metadata_shortly(start, make):
    """What is asked of a broker that says nothing is soon asked of another one."""
    broker = start(brokers=2)
    cluster = make(broker)
    cluster.fetch_metadata([], Deadline(5))
    first = cluster.any_broker(Deadline(5))
    silent = next(node for node in broker.nodes if node.port == first.address.port)
    broker.faults.add(faults.no_response(), api=METADATA, when=lambda call: call.node.id == silent.id)
    began = time.monotonic()
    assert len(cluster.fetch_metadata([], Deadline(30)).brokers) == 2
    assert time.monotonic() - began < 5
    assert not first.closed
    assert {call.node.id for call in broker.calls(METADATA)} == {1, 2}


def test_a_late_answer_is_dropped(start, make, stack):
    """A broker that answers after another one is used again, and its answer is not kept."""
    broker = start(brokers=2)
    cluster = make(broker)
    cluster.fetch_metadata([], Deadline(5))
    first = cluster.any_broker(Deadline(5))
    go = threading.Event()
    stack.callback(go.set)

    def wait(call, handle):
        go.wait(20)
        return handle()

    broker.faults.add(wait, api=METADATA)
    assert cluster.fetch_metadata([], Deadline(30)).brokers
    go.set()
    assert eventually(first.readable)
    assert first.request(MetadataRequest(topics=[]), Deadline(5)).brokers
    assert not first._responses


def test_the_last_answer_counts(broker, make):
    """The only broker is waited for until the deadline, and its connection is closed then."""
    broker.faults.add(faults.delay(1.2), api=METADATA)
    cluster = make(broker)
    assert cluster.fetch_metadata([], Deadline(10)).brokers
    broker.faults.add(faults.no_response(), api=METADATA)
    with pytest.raises(
        DeadlineExceeded, match=r"127.0.0.1:\d+: no response within 0.8\d* s; the broker may have"
    ):
        cluster.fetch_metadata([], Deadline(0.8))
    assert cluster.fetch_metadata([], Deadline(5)).brokers


def test_a_silent_address_delays_shortly(broker, make, listening):
    """An address that takes connections and says nothing is left for another one soon."""
    began = time.monotonic()
    assert make(listening, listening, broker).fetch_metadata([], Deadline(60)).brokers
    assert time.monotonic() - began < 8


def test_abort_ends_calls_of_other_threads(broker, make):
    """Calls that wait for a response, or between retries, fail as soon as `abort` is called."""
    broker.faults.add(faults.no_response(), api=METADATA)
    cluster = make(broker)
    cluster.any_broker(Deadline(2))
    timer = threading.Timer(0.1, cluster.abort)
    timer.start()
    began = time.monotonic()
    with pytest.raises(ClientError, match="closed during the call"):
        cluster.retry("x", lambda: cluster.fetch_metadata(["t"], Deadline(9)), Deadline(9))
    assert time.monotonic() - began < 8
    timer.join()
    with pytest.raises(ClientError, match="closed during the call"):
        cluster.fetch_metadata(["t"], Deadline(2))


def test_no_socket_is_left_by_a_deadline(broker):
    """If the deadline ends between connecting and the first request, the connection is closed."""
    opened, node = [], broker.nodes[0]
    deadline = Deadline(0.2)

    def wait(connection):
        opened.append(connection)
        while not deadline.expired():
            time.sleep(0.01)

    with pytest.raises(DeadlineExceeded):
        connect(Address(node.host, node.port), ConnectionSettings(), deadline, wait)
    assert [connection.closed for connection in opened] == [True]


def test_a_deadline_does_not_hide_the_reason(make):
    """The error of a last attempt that has no time left has the error of the one before it."""
    deadline, errors = Deadline(0.3), [BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "group g")]

    def attempt():
        if errors:
            raise errors.pop()
        while not deadline.expired():
            time.sleep(0.01)
        deadline.check("sending")

    with pytest.raises(
        DeadlineExceeded, match=r"sending: not done within 0.3 s; the last error: group g: COORD"
    ):
        make().retry("trying", attempt, deadline)


def test_any_error_while_connecting_is_the_reason(broker, make, monkeypatch):
    """An error that is not one of the protocol's is the cause of the error, and nothing waits."""

    def fail(*_):
        raise RuntimeError("no memory")

    monkeypatch.setattr(_opening, "connect", fail)
    cluster = make(broker)
    cluster.fetch_metadata([], Deadline(5))
    cluster.close()

    def opened():
        return cluster.open_broker(broker.nodes[0].id, Deadline(5)) is not None

    with pytest.raises(ClientError, match="connecting failed: RuntimeError") as caught:
        eventually(opened)
    assert isinstance(caught.value.__cause__, RuntimeError)
