"""`Deadline`."""

from __future__ import annotations

import math
import socket
import time

import pytest

from cloudevents_kafka.protocol.client._retry import MAX_SECONDS, Deadline


@pytest.mark.parametrize("seconds", [None, -1, -0.5, math.inf, -math.inf, math.nan, 1e300, 2**31 / 1000])
def test_deadlines_that_never_expire(seconds):
    """None, negative numbers, and more seconds than a socket accepts never expire."""
    deadline = Deadline(seconds)
    assert (deadline.remaining(), deadline.expired(), deadline.at_most(3)) == (None, False, 3)
    deadline.check("waiting")


def test_a_deadline_expires():
    """The remaining time falls to 0; then `check` raises DeadlineExceeded, a TimeoutError."""
    deadline = Deadline(0.02)
    assert 0 < deadline.remaining() <= 0.02
    assert deadline.at_most(0.001) == 0.001
    time.sleep(0.03)
    assert (deadline.remaining(), deadline.expired(), deadline.at_most(3)) == (0, True, 0)
    with pytest.raises(TimeoutError, match=r"waiting: not done within 0.02 s"):
        deadline.check("waiting")


def test_a_socket_accepts_the_longest_deadline():
    """`MAX_SECONDS` is a valid timeout of a socket."""
    with socket.socket() as waiting:
        waiting.settimeout(Deadline(MAX_SECONDS).remaining())
        assert 0 < waiting.gettimeout() <= MAX_SECONDS
