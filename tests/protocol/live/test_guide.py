"""The guide's statements on connections and the log, on the release that it describes."""

from __future__ import annotations

import struct
import time
from typing import NamedTuple

import pytest

from cloudevents_kafka.protocol.records import Record, encode_message_set
from tests.support.old_brokers import LegacyKafka
from tests.support.wire import Wire, fetch, fetched, metadata, only, produce, produced

pytestmark = pytest.mark.legacy

MOST = 100_000


class Node(NamedTuple):
    host: str
    port: int


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The folder of the broker's logs."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def node(logs):
    """A broker of 0.8.2.2 that takes small requests only, and has a topic."""
    settings = {"socket.request.max.bytes": MOST, "log.dirs": logs}
    with LegacyKafka("0.8.2.2", properties=settings) as kafka:
        node = Node("127.0.0.1", kafka.brokers[0].port)
        with Wire(node) as wire:
            while only(wire.ask(metadata("t"), 0).topics).error_code:
                time.sleep(0.05)
        yield node


@pytest.fixture
def wire(node):
    with Wire(node) as wire:
        yield wire


def asks_on(wire, number, client_id="test"):
    """Send a request with a correlation id; return the correlation id of the response."""
    wire._correlation_id = number - 1  # what is sent next is one more
    wire.send(metadata("t"), 0, client_id=client_id)
    return Wire.decoded(metadata("t"), 0, wire.frame())[0]


@pytest.mark.parametrize("client_id", ["test", "", None])
def test_correlation_ids_are_echoed(wire, client_id):
    """A response has the correlation id of its request, for any id and client, without a handshake."""
    numbers = [0, 1, -1, (1 << 31) - 1, -(1 << 31)]
    assert [asks_on(wire, number, client_id) for number in numbers] == numbers


def test_requests_are_answered_in_order(wire):
    """Of three requests at once, a long poll delays those after it."""
    began = time.monotonic()
    end = produced(wire.ask(produce(encode_message_set([Record(value=b"v")], 0)), 0))[1] + 1
    asked = [
        wire.send(fetch(end, wait_ms=400, min_bytes=1), 0),
        wire.send(metadata("t"), 0),
        wire.send(metadata("t"), 0),
    ]
    got = [struct.unpack(">i", wire.frame()[:4])[0] for _ in asked]
    assert got == asked
    assert time.monotonic() - began >= 0.4


@pytest.mark.parametrize("size", [-1, MOST + 1, 0x7FFFFFFF])
def test_a_frame_that_is_too_large_closes(node, size):
    """A too large or negative size closes the connection without a response; the next one is served."""
    with Wire(node) as wire:
        wire.socket.sendall(struct.pack(">i", size) + b"\0\3\0\0")
        assert wire.is_closed()
    with Wire(node) as wire:
        assert wire.ask(metadata("t"), 0) is not None


def test_a_fetch_waits_for_its_bytes(wire):
    """A fetch waits not at all for 0 bytes, and until the timeout for more bytes than there are."""
    produced(wire.ask(produce(encode_message_set([Record(value=b"v")], 0)), 0))
    end = fetched(wire.ask(fetch(), 0)).high_watermark
    took = []
    for min_bytes in (0, 1, MOST):
        began = time.monotonic()
        wire.ask(fetch(end if min_bytes < MOST else 0, wait_ms=500, min_bytes=min_bytes), 0)
        took.append(time.monotonic() - began)
    assert took[0] < 0.4
    assert min(took[1:]) >= 0.5


def test_the_log_has_the_sent_bytes(node, wire, logs):
    """A segment's file starts with the fetched bytes, which are the produced ones."""
    wire.ask(metadata("d"), 0)
    sent = encode_message_set([Record(value=b"one"), Record(key=b"k", value=None)], 0)
    while produced(wire.ask(produce(sent, topic="d", acks=-1), 0))[0]:
        time.sleep(0.05)
    got = fetched(wire.ask(fetch(topic="d"), 0)).records
    assert got == sent
    assert (logs / "d-0" / f"{0:020}.log").read_bytes()[: len(got)] == got
