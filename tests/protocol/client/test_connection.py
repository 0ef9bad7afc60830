"""`Connection`: frames in order, closed once the order is lost."""

from __future__ import annotations

import os
import resource
import socket
import ssl
import threading
import time

import pytest

from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.errors import DeadlineExceeded, Disconnected, Malformed, ProtocolError
from tests.support.cases import each
from tests.support.wire import interrupted, metadata
from tests.support.wire_broker import faults

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


def test_requests_can_be_in_flight_together(broker, connection):
    """Three requests are sent before a response is read, and responses are received in any order."""
    asked = [connection.send(metadata(name), soon()) for name in ("a", "b", "c")]
    got = [connection.receive(number, soon()).topics[0].name for number in reversed(asked)]
    assert got == ["c", "b", "a"]
    assert [call.correlation_id for call in broker.calls(METADATA)] == asked


@pytest.mark.parametrize(
    ("fault", "error", "text"),
    [
        (faults.wrong_correlation_id(), Malformed, r"the correlation id must be 1, got 2"),
        (faults.truncate(3), Disconnected, "closed the connection instead of sending MetadataResponse v0"),
        (faults.truncate(11), Disconnected, "closed the connection instead of sending MetadataResponse v0"),
        (faults.drop_before(), Disconnected, "closed the connection instead of sending MetadataResponse v0"),
        (faults.frame_size(-1), Malformed, "a frame must have"),
        (faults.frame_size(0x7FFFFFFF), Malformed, "a frame must have"),
        (faults.frame_size(2), ProtocolError, "Metadata|byte"),
        (faults.frame_size(9), ProtocolError, "Metadata|byte"),
    ],
    ids=["id", "size-cut", "cut", "none", "negative", "huge", "tiny", "short"],
)
def test_protocol_violations_close_the_connection(broker, connection, fault, error, text):
    """The error has the reason, and later calls raise `Disconnected`."""
    broker.faults.add(fault, api=METADATA)
    asked = connection.send(metadata("a"), soon())
    also = connection.send(metadata("b"), soon())
    with pytest.raises(error, match=text):
        connection.receive(asked, soon())
    assert connection.closed
    with pytest.raises(Disconnected, match="is closed"):
        connection.receive(also, soon())
    with pytest.raises(Disconnected, match="is closed"):
        connection.send(metadata("c"), soon())
    with pytest.raises(Disconnected, match="is closed"):
        connection.request(metadata("c"), soon())


def test_a_timeout_closes_the_connection(broker, connection):
    """`request` closes it, so that a late response is not taken for another one."""
    broker.faults.add(faults.delay(10), api=METADATA)
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match="no response within"):
        connection.request(metadata("a"), Deadline(0.05))
    assert time.monotonic() - began < 8
    assert connection.closed


def test_receive_can_be_repeated(broker, connection):
    """`receive` may be called again for a response that was late."""
    broker.faults.add(faults.delay(0.5), api=METADATA)
    asked = connection.send(metadata("a"), soon())
    with pytest.raises(DeadlineExceeded):
        connection.receive(asked, Deadline(0.02))
    assert not connection.closed
    assert connection.receive(asked, soon()).topics[0].name == "a"


def test_a_refused_connection(mute):
    """A port without a listener raises `Disconnected` with the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
    with pytest.raises(Disconnected, match=f"{address}: cannot connect"):
        Connection(address, soon())
    with pytest.raises(DeadlineExceeded, match="connecting to"):
        Connection(mute, Deadline(0))


HOSTS = ["a..b", ".a", "a" * 64, "a" * 64 + ".b", "\udcff", "a\0b", "é" * 64]


@each("host", HOSTS, ids=ascii)
def test_an_invalid_host(host):
    """A name that cannot be a host raises `Disconnected`."""
    with pytest.raises(Disconnected, match="cannot connect"):
        Connection(Address(host, 1), soon())


@each("port", [-1, 65536, 2**31 - 1, -(2**31)])
def test_an_invalid_port(port):
    """A port out of range, as in a broker's metadata, raises `Disconnected`."""
    with pytest.raises(Disconnected, match="cannot connect"):
        Connection(Address("127.0.0.1", port), soon())


def test_an_empty_host_with_tls(mute):
    """An empty name, which no certificate can have, raises `Disconnected`."""
    with pytest.raises(Disconnected, match="cannot connect"):
        Connection(Address("", mute.port), soon(), ConnectionSettings(tls=ssl.create_default_context()))


def test_a_send_timeout_closes_the_connection(mute):
    """If the broker does not read, sending times out, and a part of the frame may be sent."""
    connection = Connection(mute, soon())
    began = time.monotonic()

    def flood():
        for _ in range(100):
            connection.send(metadata("x" * 30_000), Deadline(0.1), expects_response=False)
            connection.write(b"\0" * 1_000_000, Deadline(0.1))

    with pytest.raises(DeadlineExceeded, match="sending the request timed out"):
        flood()
    assert time.monotonic() - began < 3
    assert connection.closed


def test_keyboard_interrupt_while_sending_closes(mute):
    """A frame that is half sent cannot be continued."""
    connection = Connection(mute, soon())

    def flood():
        for _ in range(100):
            connection.write(b"\0" * 1_000_000, Deadline(5))

    with interrupted(0.1):
        flood()
    assert connection.closed


def test_memory_grows_with_received_bytes():
    """A frame size of 99 MB without data allocates nothing, and the read times out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection(Address(*server.getsockname()), soon())
        peer, _ = server.accept()
        peer.sendall((99_000_000).to_bytes(4, "big") + b"\0" * 10)
        asked = connection.send(metadata("a"), soon())
        with pytest.raises(DeadlineExceeded):
            connection.receive(asked, Deadline(0.05))
        assert len(connection._received) == 14  # what memory it holds shows nowhere else
        connection.close()
        peer.close()


def test_readable(connection):
    """`readable` is False before the response, and True after it or on a closed connection."""
    assert not connection.readable()
    asked = connection.send(metadata("a"), soon())
    while not connection.readable():
        time.sleep(0.001)
    connection.receive(asked, soon())
    assert not connection.readable()
    connection.close()
    assert connection.readable()


def test_file_descriptors_may_be_large(broker, stack):
    """A process with more than a thousand open files can wait for a response."""
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


def test_abort_ends_a_wait(broker, connection):
    """`abort` makes a waiting call meet the end of the connection."""
    broker.faults.add(faults.no_response(), api=METADATA)
    timer = threading.Timer(0.05, connection.abort)
    timer.start()
    with pytest.raises(Disconnected):
        connection.request(metadata("a"), Deadline(10))
    timer.join()


@pytest.mark.parametrize(
    ("address", "text"), [(Address("a", 1), "a:1"), (Address("::1", 9092), "[::1]:9092")]
)
def test_addresses_as_text(address, text):
    """IPv6 addresses have brackets."""
    assert str(address) == text
