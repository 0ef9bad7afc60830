"""Malformed input closes at most its connection, and is recorded."""

from __future__ import annotations

import random
import struct

import pytest

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.messages import APIS
from tests.support.cases import each
from tests.support.wire import Wire, metadata, only
from tests.support.wire_broker import RELEASES, Settings, WireBroker, WireBroker07


def is_alive(broker):
    with Wire(broker.nodes[0]) as wire:
        return wire.ask(metadata(), 0) is not None


@each(
    ("sent", "reason"),
    [
        (struct.pack(">i", -1), "got -1"),
        (struct.pack(">i", 1001), "a frame must have 0 to 1,000 bytes, got 1,001"),
        (frames.add_size(b""), "8 more bytes are needed"),
        (frames.add_size(struct.pack(">hhi", 999, 0, 1)), "API key 999"),
        (
            frames.add_size(struct.pack(">hhi", 76, 1, 1)),
            "ShareGroupHeartbeat (API key 76), version",
        ),
        (frames.add_size(struct.pack(">hhi", 3, 99, 1)), "Metadata, version 99"),
        (frames.add_size(struct.pack(">hhi", 3, -1, 1)), "Metadata, version -1"),
        (frames.add_size(struct.pack(">hhi", 3, 1, 1)), "Truncated"),
        (b"GET / HTTP/1.1\r\n\r\n", "a frame must have"),
    ],
)
def test_garbage_closes_the_connection_and_is_recorded(sent, reason):
    """The recorded error has the node, the connection and the reason."""
    with WireBroker(settings=Settings(max_request_bytes=1000)) as broker:
        with Wire(broker.nodes[0]) as wire:
            wire.socket.sendall(sent)
            assert wire.is_closed()
        assert only(broker.connection_errors).startswith("node 1, connection 1: ")
        assert reason in only(broker.connection_errors)
        assert is_alive(broker)


def test_an_unfinished_frame_is_dropped():
    """A client that closes in the middle of a frame leaves no error and no connection."""
    with WireBroker() as broker:
        with Wire(broker.nodes[0]) as wire:
            wire.socket.sendall(struct.pack(">i", 1000) + b"x")
        assert is_alive(broker)
        assert broker.connection_errors == []


def _spoilt(dice, data):
    """Change some bytes behind the header; now and then cut some off, or put some in."""
    data = bytearray(data)
    for _ in range(dice.randrange(3)):
        at = dice.randrange(8, max(9, len(data)))
        match dice.randrange(12):
            case kind if kind < 10:
                data[at : at + 1] = bytes([dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])])
            case 10:
                del data[at : at + dice.randrange(1, 5)]
            case _:
                data[at:at] = dice.randbytes(dice.randrange(1, 5))
    return bytes(data)


@pytest.mark.parametrize(
    "release",
    [
        pytest.param("0.8.2-beta", marks=pytest.mark.release),
        pytest.param("0.9", marks=pytest.mark.release),
        "4.3",
    ],
)
def test_no_bytes_kill_the_broker(release, some_requests):
    """The broker answers after a thousand damaged requests of every API.

    A thread that ends with an exception fails the test.
    """
    dice = random.Random(release)
    settings = Settings(session_timeouts=(0, 5), max_request_bytes=10_000)
    with WireBroker(release, settings=settings) as broker:
        wire = Wire(broker.nodes[0], timeout=0.005)
        versions = RELEASES[release].versions
        known = {key: accepted for key, accepted in versions.items() if key in APIS}
        for turn in range(1000):
            key = list(known)[turn % len(known)]
            version = dice.randrange(max(0, known[key].first - 1), known[key].last + 1)
            data = _spoilt(dice, some_requests(key, version))
            if turn % 10 == 0:
                data = dice.randbytes(dice.randrange(40))
            try:
                wire.socket.sendall(frames.add_size(data))
                wire.frame()
            except OSError:  # closed, or no answer: then the connection may be busy for long
                wire.socket.close()
                wire = Wire(broker.nodes[0], timeout=0.005)
        wire.socket.close()
        assert {call.key for call in broker.calls()} == set(known)
        assert is_alive(broker)


def test_random_requests_do_not_stop_the_broker_of_0_7():
    """The broker answers after some hundred random requests of each type."""
    dice = random.Random(7)
    with WireBroker07(partitions=2, segment_bytes=50) as broker:
        for _ in range(400):
            with Wire(broker, timeout=5) as wire:
                kind = dice.randrange(6)
                body = (
                    b"\0\1t" + struct.pack(">i", dice.randrange(-1, 3)) + dice.randbytes(dice.randrange(20))
                )
                wire.socket.sendall(frames.add_size(struct.pack(">h", kind) + body))
        with Wire(broker) as wire:
            wire.socket.sendall(frames.add_size(b"\0\2\0\0"))
            assert wire.frame() is not None
