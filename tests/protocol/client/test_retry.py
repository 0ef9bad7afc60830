"""Deadlines, and errors that brokers answer briefly, while they start or hand over a partition."""

from __future__ import annotations

import math
import socket
import time
from types import SimpleNamespace

import pytest

from cloudevents_kafka.protocol import BrokerError
from cloudevents_kafka.protocol.client import LATEST
from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._fetcher import Fetcher
from cloudevents_kafka.protocol.client._retry import MAX_SECONDS, Deadline
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import DeadlineExceeded
from cloudevents_kafka.protocol.messages.topics import MetadataResponseTopic
from tests.support.cases import each
from tests.support.wire_broker import faults

LIST_OFFSETS = 2


@each("seconds", [None, -1, -0.5, math.inf, -math.inf, math.nan, 1e300, 2**31 / 1000])
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


@pytest.fixture
def cluster():
    return Cluster([Address("127.0.0.1", 1)], ConnectionSettings())


def test_a_starting_broker(cluster, monkeypatch):
    """Error 38 of a broker that has just started is retriable."""
    row = MetadataResponseTopic(error_code=ErrorCode.INVALID_REPLICATION_FACTOR, name="t", partitions=[])
    monkeypatch.setattr(
        cluster, "fetch_metadata", lambda topics, deadline, **_: cluster._topics.update(t=row)
    )
    with pytest.raises(BrokerError, match="too few brokers have registered") as caught:
        cluster.leader("t", 0, Deadline(1.0))
    assert caught.value.retriable


def test_a_fetch_with_an_unknown_error(cluster):
    """0.8 answers -1 while a partition moves: it backs off."""
    fetcher = Fetcher(cluster, SimpleNamespace(partition_bytes=100))
    fetcher.assign({("t", 0): 0}, Deadline(1.0))
    fetcher._handle_error(("t", 0), BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert not fetcher._partitions["t", 0].backoff.expired()


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_offsets_are_retried(start, connect, code):
    """Error -1 of 0.8 for a new partition, and error 6, are retried."""
    broker = start()
    broker.faults.add(faults.error(code, "t", 0), api=LIST_OFFSETS, times=2)
    client = connect(broker)
    client.partitions("t")
    assert client.offset_at("t", 0, LATEST) == 0
    assert len(broker.calls(LIST_OFFSETS)) == 3


def test_retries_time_out(start, connect):
    """The timeout has the broker's last error."""
    broker = start()
    broker.create_topic("t")
    broker.faults.add(faults.error(ErrorCode.UNKNOWN_SERVER_ERROR, "t", 0), api=LIST_OFFSETS, times=None)
    with pytest.raises(DeadlineExceeded, match="UNKNOWN_SERVER_ERROR"):
        connect(broker, timeout=0.5).offset_at("t", 0, LATEST)
