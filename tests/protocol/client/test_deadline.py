"""Deadlines."""

from __future__ import annotations

import math
import socket
import time

import pytest

from cloudevents_kafka.protocol.client._deadline import MAX_SECONDS, Deadline


@pytest.mark.parametrize("seconds", [None, -1, -0.5, math.inf, -math.inf, math.nan, 1e300, 2**31 / 1000])
def test_no_seconds_are_endless(seconds):
    """None, negative numbers and more seconds than a socket can wait never end."""
    deadline = Deadline(seconds)
    assert (deadline.remaining(), deadline.expired(), deadline.at_most(3)) == (None, False, 3)
    deadline.check("waiting")


def test_it_ends():
    """What is left goes down to 0 and stays there; then `check` raises, as a TimeoutError too."""
    deadline = Deadline(0.02)
    assert 0 < deadline.remaining() <= 0.02
    assert deadline.at_most(0.001) == 0.001
    time.sleep(0.03)
    assert (deadline.remaining(), deadline.expired(), deadline.at_most(3)) == (0, True, 0)
    with pytest.raises(TimeoutError, match=r"waiting: not done within 0.02 s"):
        deadline.check("waiting")


def test_a_socket_can_wait_for_the_longest():
    """The most seconds that end are such as sockets and selectors take."""
    with socket.socket() as waiting:
        waiting.settimeout(Deadline(MAX_SECONDS).remaining())
        assert 0 < waiting.gettimeout() <= MAX_SECONDS
