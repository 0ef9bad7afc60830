"""The paths and values of 0.7 in ZooKeeper."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.errors import Malformed, Unencodable
from cloudevents_kafka.protocol.v07 import _znodes as znodes
from cloudevents_kafka.protocol.v07._znodes import Broker, BrokerPartition
from tests.support.cases import each

CAPTURED = b"127.0.0.1-1795255874813:127.0.0.1:29072"


def test_paths():
    """The paths of nodes are those of the wiki and a real broker."""
    assert znodes.BROKERS == "/brokers/ids"
    assert znodes.topic_path("t") == "/brokers/topics/t"
    assert znodes.group_path("g") == "/consumers/g/ids"
    assert znodes.consumer_path("g", "c") == "/consumers/g/ids/c"
    for kind in ("owners", "offsets"):
        assert znodes.partition_path("g", kind, "t", BrokerPartition(3, 1)) == f"/consumers/g/{kind}/t/3-1"


def test_parents():
    """The parents of a node are in order from the root down."""
    assert znodes.parents("/consumers/g/ids/c") == ["/consumers", "/consumers/g", "/consumers/g/ids"]
    assert znodes.parents("/consumers") == []


def test_broker():
    """The host is the second part, for any creator; the value is a real broker's."""
    broker = Broker.parse(0, CAPTURED)
    assert broker == (0, "127.0.0.1-1795255874813", "127.0.0.1", 29072)
    assert Broker.parse(1, b"c:h:1:more") == (1, "c", "h", 1)


@each("value", [b"", b"host:9092", b"c:h:", b"c:h:p", b"c:h:-1", b"\xff:h:1", b"c:h:" + b"9" * 5000])
def test_no_broker(value):
    """Any other value is `Malformed`, with the node's path."""
    with pytest.raises(Malformed, match=r"^/brokers/ids/8: "):
        Broker.parse(8, value)


def test_topics():
    """A consumer's value is JSON: its streams by topic."""
    assert znodes.parse_topics(b'{"a":1,"b":2}', "/x") == {"a": 1, "b": 2}
    assert znodes.parse_topics(b'{ "topic1" : 1 }', "/x") == {"topic1": 1}


@each("value", [b"", b"[]", b'{"a":"1"}', b'{"a":-1}', b'{"a":1000000}', b"\xff", b"[" * 100_000])
def test_no_topics(value):
    """Any other value is `Malformed`, with the node's path."""
    with pytest.raises(Malformed, match=r"^/x: "):
        znodes.parse_topics(value, "/x")


def test_counts():
    """Numbers of partitions have a limit, because lists are built from them."""
    assert znodes.parse_number(b"2", "/x", limit=znodes.MAX_COUNT) == 2
    with pytest.raises(Malformed, match="from 0 to 100,000, got b'100001'"):
        znodes.parse_number(b"100001", "/x", limit=znodes.MAX_COUNT)


@given(st.binary(max_size=30))
def test_any_bytes(value):
    """Any value is parsed or `Malformed`."""
    for parse in (znodes.parse_number, znodes.parse_topics, lambda v, _: Broker.parse(0, v)):
        with suppress(Malformed):
            parse(value, "/x")


@each("name", ["", ".", "..", "a/b", "nul\0"])
def test_names(name):
    """A name that is not valid for a node is `Unencodable`."""
    for path in (znodes.topic_path, znodes.group_path, lambda n: znodes.consumer_path("g", n)):
        with pytest.raises(Unencodable, match="ZooKeeper node"):
            path(name)


def test_kazoo_is_not_loaded():
    """The protocol does not import kazoo before a session is created."""
    loading = "import sys, cloudevents_kafka.protocol.v07.zookeeper; sys.exit('kazoo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loading], check=False).returncode == 0
