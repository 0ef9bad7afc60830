"""Successive fetches yield each message once, for any sizes, and always end."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.errors import Malformed, ProtocolError
from cloudevents_kafka.protocol.frames import MAX_SIZE
from cloudevents_kafka.protocol.v07 import MessageSet, encode
from cloudevents_kafka.protocol.v07._connection import read_log


class Log:
    """A partition of 0.7: segments, and fetches that end with a segment."""

    def __init__(self, segments):
        self.segments = [encode(payloads) for payloads in segments]
        self.sizes = []

    def fetch(self, topic, partition, offset, max_size):
        self.sizes.append(max_size)
        start = 0
        for segment in self.segments:
            if start <= offset < start + len(segment):
                return MessageSet(segment[offset - start :][:max_size], offset)
            start += len(segment)
        return MessageSet(b"", offset)


def read(log, offset=0, max_size=100, max_message_size=MAX_SIZE):
    return read_log(log.fetch, "t", 0, offset, max_size=max_size, max_message_size=max_message_size)


@given(st.lists(st.lists(st.binary(max_size=300), max_size=4), max_size=4), st.integers(-1, 200))
def test_each_message_once(segments, max_size):
    """All messages are yielded once and in order, over segments and partial messages, from any offset."""
    found = list(read(Log(segments), max_size=max_size))
    payloads = [payload for segment in segments for payload in segment]
    assert [e.message.payload for e in found] == payloads
    for number, entry in enumerate(found):
        rest = list(read(Log(segments), entry.next_offset, max_size))
        assert [e.message.payload for e in rest] == payloads[number + 1 :]


def test_grows_for_one_message_only():
    """A fetch size grows for a large message, and is reset after it."""
    log = Log([[b"", bytes(1000), b"", b""]])
    assert len(list(read(log, max_size=20))) == 4
    assert log.sizes == [20, 20, 1010, 20, 20]


def test_too_large():
    """A message above the limit raises an error with partition and offset, and is not fetched."""
    log = Log([[b"fine", bytes(1000)]])
    found = read(log, max_message_size=500)
    assert next(found).message.payload == b"fine"
    with pytest.raises(
        Malformed, match="at byte 14: t\\[0\\]: a message must have at most 500 bytes, got 1010"
    ):
        next(found)
    assert max(log.sizes) == 100


def test_no_boundary_ends():
    """A partial message in a fetch with room for more is `Malformed`: no message starts there."""
    log = Log([[b"\0\0\0\x20\0" + bytes(10)]])
    with pytest.raises(Malformed, match=r"a message of 36 bytes ends after 15 of 100 requested bytes"):
        list(read(log, offset=10))


@given(st.binary(max_size=200), st.integers(0, 50))
def test_any_log_ends(data, max_size):
    """Reading arbitrary bytes as a log ends, or raises the protocol's errors."""
    log = Log([])
    log.segments = [data]
    with suppress(ProtocolError):
        list(read(log, max_size=max_size))
    assert len(log.sizes) <= 2 * len(data) + 6
