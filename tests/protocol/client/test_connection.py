"""Connections: frames out and in, in order, closed where order is lost."""

from __future__ import annotations

import os
import resource
import signal
import socket
import ssl
import threading
import time

import pytest
from wire import metadata

from cloudevents_kafka.protocol.client._connection import Address, Connection
from cloudevents_kafka.protocol.client._deadline import Deadline
from cloudevents_kafka.protocol.client._security import Security
from cloudevents_kafka.protocol.errors import DeadlineExceeded, Disconnected, Malformed, ProtocolError
from cloudevents_kafka.protocol.messages.api_versions import ApiVersionsRequest
from cloudevents_kafka.testing.wire_broker import faults

METADATA = 3


@pytest.fixture
def connection(broker):
    node = broker.nodes[0]
    opened = Connection(Address(node.host, node.port), Deadline(5))
    yield opened
    opened.close()


@pytest.fixture
def mute():
    """An address where connections are taken and nothing is ever read or said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Address(*server.getsockname())


def soon(seconds=2.0):
    return Deadline(seconds)


def test_many_requests_are_on_their_way_at_once(broker, connection):
    """Three are sent before the first answer is read, and each is given to who asked, in any order."""
    asked = [connection.send(metadata(name), 1, soon()) for name in ("a", "b", "c")]
    got = [connection.receive(number, soon()).topics[0].name for number in reversed(asked)]
    assert got == ["c", "b", "a"]
    assert [call.correlation_id for call in broker.calls(METADATA)] == asked


@pytest.mark.parametrize(
    ("fault", "error", "text"),
    [
        (faults.wrong_correlation_id(), Malformed, r"the correlation id must be 1, got 2"),
        (faults.truncate(3), Disconnected, "closed the connection instead of sending MetadataResponse v1"),
        (faults.truncate(11), Disconnected, "closed the connection instead of sending MetadataResponse v1"),
        (faults.drop_before(), Disconnected, "closed the connection instead of sending MetadataResponse v1"),
        (faults.frame_size(-1), Malformed, "a frame must have"),
        (faults.frame_size(0x7FFFFFFF), Malformed, "a frame must have"),
        (faults.frame_size(2), ProtocolError, "Metadata|byte"),
        (faults.frame_size(9), ProtocolError, "Metadata|byte"),
    ],
    ids=["id", "size-cut", "cut", "none", "negative", "huge", "tiny", "short"],
)
def test_what_breaks_the_protocol_closes(broker, connection, fault, error, text):
    """The error says what was seen, and nothing can be sent or received afterwards."""
    broker.faults.add(fault, api=METADATA)
    asked = connection.send(metadata("a"), 1, soon())
    also = connection.send(metadata("b"), 1, soon())
    with pytest.raises(error, match=text):
        connection.receive(asked, soon())
    assert connection.closed
    with pytest.raises(Disconnected, match="is closed"):
        connection.receive(also, soon())
    with pytest.raises(Disconnected, match="is closed"):
        connection.send(metadata("c"), 1, soon())
    with pytest.raises(Disconnected, match="is closed"):
        connection.request(metadata("c"), 1, soon())


def test_a_late_answer_closes_what_waited_for_it(broker, connection):
    """`request` gives up at the deadline, and a later answer cannot be taken for another one's."""
    broker.faults.add(faults.delay(0.3), api=METADATA)
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match="no response within"):
        connection.request(metadata("a"), 1, Deadline(0.05))
    assert time.monotonic() - began < 0.25
    assert connection.closed


def test_an_answer_outlives_a_deadline_of_receive(broker, connection):
    """`receive` may be asked again, for an answer that was not there in time."""
    broker.faults.add(faults.delay(0.1), api=METADATA)
    asked = connection.send(metadata("a"), 1, soon())
    with pytest.raises(DeadlineExceeded):
        connection.receive(asked, Deadline(0.02))
    assert not connection.closed
    assert connection.receive(asked, soon()).topics[0].name == "a"


def test_nobody_there(mute):
    """A port where nobody listens is a Disconnected with the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
    with pytest.raises(Disconnected, match=f"{address}: cannot connect"):
        Connection(address, soon())
    with pytest.raises(DeadlineExceeded, match="connecting to"):
        Connection(mute, Deadline(0))


HOSTS = ["a..b", ".a", "a" * 64, "a" * 64 + ".b", "\udcff", "a\0b", "é" * 64]


@pytest.mark.parametrize("host", HOSTS, ids=ascii)
def test_no_host(host):
    """Of a name that no host can have it is said that it cannot be connected to."""
    with pytest.raises(Disconnected, match="cannot connect"):
        Connection(Address(host, 1), soon())


@pytest.mark.parametrize("port", [-1, 65536, 2**31 - 1, -(2**31)])
def test_no_port(port):
    """The same of a port that there is not, as a broker's metadata may name one."""
    with pytest.raises(Disconnected, match="cannot connect"):
        Connection(Address("127.0.0.1", port), soon())


def test_no_host_for_tls(mute):
    """The same of no name at all, which is this host's, but which no certificate can have."""
    with pytest.raises(Disconnected, match="cannot connect"):
        Connection(Address("", mute.port), soon(), security=Security(ssl.create_default_context()))


def test_a_request_that_is_not_taken_closes(mute):
    """Where the broker reads nothing, sending ends at the deadline; a part of the frame may be out."""
    connection = Connection(mute, soon())
    began = time.monotonic()

    def flood():
        for _ in range(100):
            connection.send(metadata("x" * 30_000), 1, Deadline(0.1), expects_response=False)
            connection.write(b"\0" * 1_000_000, Deadline(0.1))

    with pytest.raises(DeadlineExceeded, match="sending the request timed out"):
        flood()
    assert time.monotonic() - began < 3
    assert connection.closed


def test_ctrl_c_while_sending_closes(mute):
    """A frame that is half out cannot be gone on with."""
    connection = Connection(mute, soon())
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()

    def flood():
        for _ in range(100):
            connection.write(b"\0" * 1_000_000, Deadline(5))

    with pytest.raises(KeyboardInterrupt):
        flood()
    timer.join()
    assert connection.closed


def test_a_trace_that_fails_leaves_order(broker):
    """What the trace raises comes through, and the next answer is still the right one."""
    broken = [True, False, False]

    def trace(_frame):
        if broken.pop(0):
            raise RuntimeError("disk full")

    node = broker.nodes[0]
    connection = Connection(Address(node.host, node.port), soon(), trace=trace)
    with pytest.raises(RuntimeError):
        connection.request(ApiVersionsRequest(), 0, soon())
    assert connection.request(ApiVersionsRequest(), 0, soon()).error_code == 0
    connection.close()


def test_memory_grows_with_what_arrives():
    """A size of 99 MB with nothing behind it takes no memory, and the wait for it ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection(Address(*server.getsockname()), soon())
        peer, _ = server.accept()
        peer.sendall((99_000_000).to_bytes(4, "big") + b"\0" * 10)
        asked = connection.send(metadata("a"), 1, soon())
        with pytest.raises(DeadlineExceeded):
            connection.receive(asked, Deadline(0.05))
        assert len(connection._received) == 14  # what memory it holds shows nowhere else
        connection.close()
        peer.close()


def test_answers_are_noticed_without_waiting(connection):
    """`readable` is False before the answer, True from then on, and True for a closed connection."""
    assert not connection.readable()
    asked = connection.send(metadata("a"), 1, soon())
    while not connection.readable():
        time.sleep(0.001)
    connection.receive(asked, soon())
    assert not connection.readable()
    connection.close()
    assert connection.readable()


def test_file_numbers_may_be_large(broker, stack):
    """A process with more than a thousand open files can still wait for an answer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    for _ in range(1100):
        stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
    node = broker.nodes[0]
    connection = Connection(Address(node.host, node.port), soon())
    assert connection.fileno() > 1023
    assert not connection.readable()
    connection.close()


def test_another_thread_can_end_a_wait(broker, connection):
    """`abort` makes a call that waits come to the end of the connection."""
    broker.faults.add(faults.no_response(), api=METADATA)
    timer = threading.Timer(0.05, connection.abort)
    timer.start()
    with pytest.raises(Disconnected):
        connection.request(metadata("a"), 1, Deadline(10))
    timer.join()


@pytest.mark.parametrize(
    ("address", "text"), [(Address("a", 1), "a:1"), (Address("::1", 9092), "[::1]:9092")]
)
def test_addresses_are_written_as_users_do(address, text):
    """Brackets go around IPv6."""
    assert str(address) == text
