"""Names with several addresses, some of which are dead or silent, and names with a final dot."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from pathlib import Path

import pytest

from cloudevents_kafka.protocol.client import EARLIEST, Client, TopicPartition
from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.errors import DeadlineExceeded, Disconnected
from cloudevents_kafka.protocol.v07 import Connection as Connection07
from tests.support.kafka07 import EXCHANGES, Replay
from tests.support.wire import eventually, fill, numbers, self_signed, take

NAME = "brokers.example"


@pytest.fixture
def silent(stack):
    """The address of a listener whose queue is full, so that packets to it are dropped."""
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    for _ in range(4):
        filler = stack.enter_context(socket.socket())
        filler.setblocking(False)
        filler.connect_ex(server.getsockname())
    time.sleep(0.05)
    return Address(*server.getsockname())


@pytest.fixture
def dead():
    """The address of a port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Address(*server.getsockname())


@pytest.fixture
def resolved(monkeypatch):
    """Return a function that sets the addresses of the name; the list that it returns has each look-up."""
    found, real = [], socket.getaddrinfo

    def resolve(*addresses, name=NAME):
        def getaddrinfo(host, port, *more, **options):
            if host != name:
                return real(host, port, *more, **options)
            found.append(host)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", tuple(one)) for one in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return found

    return resolve


def open_files():
    """Return the sockets that this process has open."""
    return {link for one in Path("/proc/self/fd").iterdir() if (link := _target(one)).startswith("socket:")}


def _target(link):
    try:
        return str(link.readlink())
    except OSError:  # closed meanwhile, as the folder itself
        return ""


def address_of(broker):
    return Address(broker.nodes[0].host, broker.nodes[0].port)


@pytest.mark.parametrize("first", ["silent", "dead"])
def test_a_second_address_is_reached(broker, resolved, request, first):
    """An address that swallows packets, or takes no connection, does not hide the next one."""
    resolved(request.getfixturevalue(first), address_of(broker))
    began = time.monotonic()
    with Client(f"{NAME}:9092", timeout=30.0) as client:
        assert client.metadata().brokers
    assert time.monotonic() - began < 20  # alone, the first would have all of the deadline


def test_a_leader_behind_such_a_name(broker, resolved, silent):
    """A leader whose name has a silent address first is read and written, too."""
    found = resolved(silent, address_of(broker))
    broker.create_topic("t")
    node = broker.nodes[0]
    broker._cluster.nodes[node.id] = node._replace(host=NAME)  # what its metadata says of it
    with Client(f"{node.host}:{node.port}", timeout=30.0) as client, client.consumer() as consumer:
        fill(client, numbers(3))
        consumer.assign([TopicPartition("t", 0, EARLIEST)])
        assert take(consumer, 3) == numbers(3)
    assert found


def test_a_client_of_07(resolved, silent):
    """The connection of 0.7 reaches the second address, too."""
    with Replay({e.request: e.response for e in EXCHANGES if not e.closed}) as replay:
        resolved(silent, Address("127.0.0.1", replay.port))
        with Connection07(NAME, timeout=30.0) as connection:
            assert connection.offsets("seg", 0)


def test_the_error_has_each_address(resolved, silent, dead):
    """The deadline is shared, and the error says what each address did."""
    resolved(silent, dead)
    began = time.monotonic()
    refused = os.strerror(errno.ECONNREFUSED)
    with pytest.raises(
        DeadlineExceeded, match=f"{NAME}:9092: connecting timed out: .*{silent}: no answer"
    ) as caught:
        Connection(Address(NAME, 9092), Deadline(0.6))
    assert f"{dead}: {refused}" in str(caught.value)
    assert time.monotonic() - began < 15
    resolved(dead, dead._replace(port=1))
    with pytest.raises(Disconnected, match=f"{NAME}:9092: cannot connect: {dead}: {refused}; 127.0.0.1:1: "):
        Connection(Address(NAME, 9092), Deadline(5))


def test_no_socket_is_left(resolved, silent, broker):
    """The attempts that are not used are closed."""
    before = open_files()
    resolved(silent, silent, address_of(broker))
    Connection(Address(NAME, 9092), Deadline(10)).close()
    resolved(silent, silent)
    with pytest.raises(DeadlineExceeded):
        Connection(Address(NAME, 9092), Deadline(0.4))
    assert eventually(lambda: open_files() <= before)  # the broker closes its end, too


@pytest.mark.parametrize("dot", ["", "."])
def test_a_final_dot_is_for_dns(start, resolved, tmp_path, dot):
    """A name with a final dot, as Kubernetes advertises, is looked up with it and verified without it."""
    certificate, key = self_signed(tmp_path, "DNS:" + NAME)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    asked = []
    server.sni_callback = lambda _socket, name, _context: asked.append(name)
    broker = start(tls=server)
    found = resolved(address_of(broker), name=NAME + dot)
    context = ssl.create_default_context(cafile=certificate)
    with Client(f"{NAME}{dot}:9092", tls=context, timeout=5.0) as client:
        assert client.api_versions()
    assert (found[0], asked[0]) == (NAME + dot, NAME)
