"""The client of 0.7 sends the requests of a real exchange, and decodes its responses."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from cloudevents_kafka.protocol.errors import (
    BrokerError,
    DeadlineExceeded,
    Disconnected,
    Malformed,
    Truncated,
    Unencodable,
)
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.v07 import (
    EARLIEST,
    LATEST,
    Connection,
    ErrorCode,
    FetchRequest,
    Message,
    MessageSet,
    PartitionError,
    encode,
    frames,
)
from cloudevents_kafka.protocol.v07.messages import ANY_PARTITION
from tests.support.cases import each
from tests.support.kafka07 import EXCHANGES, Replay

BY_NAME = {exchange.name: exchange for exchange in EXCHANGES}


@pytest.fixture
def broker():
    """Yield a server that replays the real broker."""
    with Replay({e.request: e.response for e in EXCHANGES if not e.closed}) as replay:
        yield replay


@pytest.fixture
def connection(broker):
    """Yield a connection to the server."""
    with Connection("127.0.0.1", broker.port, timeout=10) as connected:
        yield connected


def fetch(topic, offset, max_size=1000, partition=0):
    return FetchRequest(topic=topic, partition=partition, offset=offset, max_size=max_size)


def test_produce(broker, connection):
    """Produce sends the recorded bytes, and does not wait."""
    connection.produce("t7", 0, [b"hello", Message(b"old-magic", magic=0), b""])
    connection.produce("t9", ANY_PARTITION, [b"rnd"])
    assert connection.offsets("t7", 0, LATEST, 10) == [43, 0]
    assert broker.requests[:2] == [
        BY_NAME[name].request for name in ("produce (no reply)", "produce partition -1")
    ]


@pytest.mark.parametrize("several", [False, True])
def test_produce_after_an_idle_close(several):
    """A connection that the broker has closed meanwhile is opened again before the messages are sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connected = Connection(*server.getsockname(), timeout=10)
        first, _ = server.accept()
        connected.produce("t7", 0, [b"one"])
        assert b"one" in first.recv(1000)
        first.close()
        assert connected.readable(10)
        if several:
            connected.multi_produce([("t7", 0, [b"two"])])
        else:
            connected.produce("t7", 0, [b"two"])
        second, _ = server.accept()
        assert b"two" in second.recv(1000)
        second.close()
        connected.close()
    with pytest.raises(Disconnected, match="the connection is closed"):
        connected.produce("t7", 0, [b"three"])


def test_multi_produce(broker, connection):
    """Several produce requests are sent as one, also with compressed sets, without a wait."""
    recorded = BY_NAME["multiproduce"].request
    parts = frames.decode_request(recorded[4:]).produces
    sets = [[entry.message for entry in MessageSet(part.messages).shallow()] for part in parts]
    assert [message.codec for messages in sets for message in messages] == [0, 0, 0, Codec.GZIP]
    connection.multi_produce([("t7", 1, sets[0]), ("t8", 0, sets[1])])
    assert connection.offsets("t7", 0, LATEST, 10) == [43, 0]
    assert broker.requests[0] == recorded


def test_fetch(connection):
    """A fetch returns the set at its offset."""
    found = connection.fetch("t7", 0, 15, 1000)
    assert [(e.offset, e.message.payload) for e in found] == [(15, b"old-magic"), (33, b"")]
    assert connection.fetch("nosuch", 0, 0, 100) == MessageSet(b"")


@pytest.mark.parametrize(
    ("partition", "offset", "size", "name"),
    [(0, 99999, 1000, "OFFSET_OUT_OF_RANGE"), (7, 0, 100, "WRONG_PARTITION")],
)
def test_fetch_error(connection, partition, offset, size, name):
    """An error has topic, partition, offset, and the name in 0.7; the connection stays open."""
    with pytest.raises(PartitionError, match=rf"t7\[{partition}\]@{offset}: {name}") as raised:
        connection.fetch("t7", partition, offset, size)
    error = raised.value
    assert isinstance(error, BrokerError)
    assert (error.topic, error.partition, error.offset, error.retriable) == ("t7", partition, offset, False)
    assert connection.fetch("t7", 0, 0, 10000).next_offset == 43


def test_multi_fetch(connection):
    """Several fetches return the sets of each, and errors as values."""
    found = connection.multi_fetch([fetch("t7", 0, partition=1), fetch("t8", 0)])
    assert [[e.message.payload for e in part] for part in found] == [
        [b"hello", b"old-magic", b""],
        [b"aaa", b"bbb"],
    ]
    nothing, error = connection.multi_fetch([fetch("nosuch", 0, partition=1), fetch("t7", 99999)])
    assert nothing == MessageSet(b"")
    assert isinstance(error, PartitionError)
    assert (error.code, error.topic, error.offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, "t7", 99999)
    assert connection.multi_fetch([]) == []


def test_offsets(connection):
    """Offsets are highest first, up to a number, from the latest, the earliest or a time."""
    assert connection.offsets("seg", 0, LATEST, 10) == [1600, 800, 0]
    assert connection.offsets("seg", 0) == [1600]
    assert connection.offsets("seg", 0, EARLIEST, 10) == [0]
    assert connection.offsets("seg", 0, 1795256903205, 10) == [1600, 800, 0]
    assert connection.offsets("seg", 0, 0, 10) == []


def test_refused(connection):
    """If the broker refuses a request, the connection is closed, and further calls raise."""
    with pytest.raises(Disconnected, match=r"; Kafka 0\.7 closes the connection if it refuses a"):
        connection.offsets("t7", 5, LATEST, 5)
    with pytest.raises(Disconnected, match="the connection is closed"):
        connection.fetch("t7", 0, 0, 10000)


@pytest.mark.parametrize("topic", ["", "a/b", "caf\xe9", "nul\0"])
def test_topics(broker, connection, topic):
    """A request with an invalid topic is not sent."""
    for ask in (
        lambda: connection.produce(topic, 0, [b""]),
        lambda: connection.multi_produce([(topic, 0, [b""])]),
        lambda: connection.fetch(topic, 0, 0, 1),
        lambda: connection.offsets(topic, 0),
        lambda: connection.multi_fetch([fetch(topic, 0)]),
    ):
        with pytest.raises(Unencodable, match="must be a folder name in ASCII"):
            ask()
    assert broker.requests == []


def test_unencodable_leaves_the_connection(connection):
    """A request that cannot be encoded raises before anything is sent."""
    with pytest.raises(Unencodable):
        connection.fetch("t7", 0, 2**63, 1000)
    assert connection.fetch("t7", 0, 15, 1000).next_offset == 43


def test_messages(broker):
    """`messages` continues after segments and partial messages, to the end of the log."""
    with Replay(dict(log_of_cuts())) as replay, Connection("127.0.0.1", replay.port, timeout=10) as connected:
        found = list(connected.messages("t", 0, 0, max_size=20))
        assert [e.message.payload for e in found] == [b"one", bytes(40), b"end"]
        assert len(replay.requests) == 5


def log_of_cuts():
    """Return a server of a log whose second message is larger than the fetch size."""
    one, large, end = (encode([payload]) for payload in (b"one", bytes(40), b"end"))
    log = one + large + end
    for offset, size in ((0, 20), (13, 20), (13, 50), (63, 20), (76, 20)):
        stop = min(offset + size, len(log)) if offset else len(one)  # a segment ends with the first
        request = FetchRequest(topic="t", partition=0, offset=offset, max_size=size)
        data = log[offset:stop]
        yield frames.encode_request(request), struct_response(data)


def struct_response(data):
    return (len(data) + 2).to_bytes(4, "big") + b"\0\0" + data


@each(
    ("answer", "error"),
    [
        ("00000001 00", Truncated),
        ("ffffffff", Malformed),
        ("7fffffff", Malformed),
        ("00000004 0000 7fff", Truncated),
        ("00000006 0000 7fffffff", Truncated),
        ("00000006 0000 ffffffff", Malformed),
        ("00000007 0000 00000000 00", Malformed),
        ("00000002 00", Disconnected),
    ],
)
def test_invalid_responses(answer, error):
    """An invalid response raises the protocol's errors, and closes the connection."""
    with Once(bytes.fromhex(answer)) as port, Connection("127.0.0.1", port, timeout=10) as connected:
        with pytest.raises(error):
            connected.offsets("t", 0, 0, 9)
        with pytest.raises(Disconnected, match="the connection is closed"):
            connected.fetch("t", 0, 0, 9)


def test_too_many_parts():
    """A multi-fetch response with more or fewer parts than the request is `Malformed`."""
    with (
        Once(bytes.fromhex("00000002 0000")) as port,
        Connection("127.0.0.1", port, timeout=10) as connected,
        pytest.raises(Malformed, match="must have 1 part, got 0"),
    ):
        connected.multi_fetch([fetch("t", 0)])


class Once:
    """A server that sends some bytes after any request, and closes the connection."""

    def __init__(self, answer, seconds=0.0):
        self.answer, self.seconds = answer, seconds

    def __enter__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self.listening.getsockname()[1]

    def run(self):
        connected, _ = self.listening.accept()
        with connected:
            connected.recv(4096)
            connected.sendall(self.answer)
            if self.seconds:
                connected.settimeout(self.seconds)
                connected.recv(1)

    def __exit__(self, *_):
        self.thread.join()
        self.listening.close()


def test_deadline():
    """A timeout closes the connection: a late response would be taken for the next one."""
    with Once(b"\0\0", seconds=20) as port, Connection("127.0.0.1", port, timeout=0.2) as connected:
        began = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"no response within 0\.2 s"):
            connected.fetch("t", 0, 0, 9)
        assert time.monotonic() - began < 5
        with pytest.raises(Disconnected, match="the connection is closed"):
            connected.fetch("t", 0, 0, 9)


@each(("host", "port"), [("127.0.0.1", 1), ("127.0.0.1", 70000), ("a..b", 9092)])
def test_no_server(host, port):
    """An address without a broker raises `Disconnected` with the address."""
    with pytest.raises(Disconnected, match=f"{host}:{port}"):
        Connection(host, port, timeout=5)
