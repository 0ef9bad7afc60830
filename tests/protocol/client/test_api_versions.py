"""The negotiated version of each request, with each release of Kafka."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from cloudevents_kafka.protocol import Client, DeadlineExceeded, Disconnected, frames
from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._api_versions import CLIENT_VERSIONS, VERSIONS_0_9, choose_version
from cloudevents_kafka.protocol.client._broker import fetch_api_versions
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersion, ApiVersionsResponse
from cloudevents_kafka.protocol.messages.fetch import FetchRequest
from cloudevents_kafka.protocol.messages.produce import ProduceRequest
from cloudevents_kafka.protocol.messages.topics import MetadataResponse
from cloudevents_kafka.protocol.schema import Versions
from tests.support.cases import each
from tests.support.wire_broker import RELEASES, faults

API_VERSIONS, PRODUCE, METADATA = 18, 0, 3


@each("key", CLIENT_VERSIONS)
def test_client_versions_are_declared(key):
    """Every version that the client may choose is declared."""
    assert APIS[key].versions.common(CLIENT_VERSIONS[key]) == CLIENT_VERSIONS[key]


@each(("offered", "version"), [(Versions(0, 13), 12), (Versions(3, 11), 11), (Versions(0, 2), 2)])
def test_the_highest_common_version_is_chosen(offered, version):
    """The highest version is chosen, because 4.x lists Produce 0 but refuses it (KAFKA-18659)."""
    assert choose_version(ProduceRequest, {PRODUCE: offered}) == version


@each("offered", [{}, {1: Versions(13, 99)}, {1: Versions(5, 4)}])
def test_no_common_version_is_unsupported(offered):
    """The error names the request and both sides."""
    with pytest.raises(Unsupported, match=r"Fetch: the broker accepts .*, this client uses 0-12"):
        choose_version(FetchRequest, offered)


def round_trip(client):
    """Produce, read and commit a record; return its value."""
    with client.producer(linger=0) as producer:
        producer.produce("t", b"v", on_delivery=lambda error, _message: errors.append(error))
        errors: list[object] = []
        producer.flush(5)
    assert errors == [None]
    client.commit("g", {("t", 0): 1})
    assert client.committed("g", [("t", 0)]) == {("t", 0): 1}
    with client.consumer(reset="earliest") as consumer:
        consumer.assign([Part("t", 0, 0)])
        return consumer.poll(5).value()


class Part:
    def __init__(self, topic, partition, offset):
        self.topic, self.partition, self.offset = topic, partition, offset


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("ask", [True, False])
def test_each_release_is_sent_versions_that_it_accepts(start, connect, release, ask):
    """Brokers before 0.10 do not answer ApiVersions, and no broker is sent a version that it refuses."""
    old = release.startswith(("0.8", "0.9"))
    broker = start(release)
    client = connect(broker, request_api_versions=ask)
    if release.startswith("4") and not ask:
        with pytest.raises(TimeoutError):
            connect(broker, request_api_versions=ask, timeout=0.2).offset_at("t", 0, -1)
        return
    assert round_trip(client) == b"v"
    requests = [call for call in broker.calls() if call.key == API_VERSIONS]
    assert bool(requests) == (ask and not old)
    errors = [e for e in broker.connection_errors if "API key 18" not in e and "ApiVersions" not in e]
    assert errors == []
    if old or not ask:
        assert {call.version for call in broker.calls(PRODUCE)} == {0}


def test_a_closed_connection_does_not_mean_an_old_broker(start, connect):
    """A 3.9 that closes one connection during ApiVersions is not taken for a 0.9."""
    broker = start("3.9")
    client = connect(broker)
    broker.faults.add(faults.drop_before(), api=API_VERSIONS)
    assert client.api_versions() != VERSIONS_0_9
    broker.faults.add(faults.drop_before(), api=METADATA)
    broker.faults.add(faults.drop_before(), api=API_VERSIONS)
    client.metadata(["t"])
    assert client.api_versions() != VERSIONS_0_9


def test_an_error_code_of_api_versions_is_raised(start, connect):
    """An ApiVersions response with an error code raises `BrokerError`, and closes the connection."""
    broker = start()
    broker.faults.add(faults.error(ErrorCode.UNSUPPORTED_VERSION), api=API_VERSIONS, times=None)
    client = connect(broker)
    with pytest.raises(Exception, match="UNSUPPORTED_VERSION"):
        client.api_versions()


# --- brokers that do not answer ------------------------------------------------------

VERSIONS = ApiVersionsResponse(
    error_code=ErrorCode.NONE, api_keys=[ApiVersion(api_key=3, min_version=0, max_version=1)]
)
ANSWERS = {18: VERSIONS, 3: MetadataResponse(brokers=[], topics=[])}


@contextmanager
def connected(known, pause):
    """Yield a connection to a broker that pauses, then answers requests of known APIs in order."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        peer, _ = server.accept()
        with peer, peer.makefile("rb") as requests:
            time.sleep(pause)
            while size := requests.read(4):
                request = requests.read(int.from_bytes(size))
                key, correlation_id = int.from_bytes(request[:2]), int.from_bytes(request[4:8])
                if key in known:
                    peer.sendall(frames.encode_response(ANSWERS[key], 0, correlation_id=correlation_id))

    thread = threading.Thread(target=serve)
    thread.start()
    connection = Connection(Address(*server.getsockname()), Deadline(5.0))
    try:
        yield connection
    finally:
        connection.close()
        thread.join()
        server.close()


def test_a_broker_that_drops_api_versions_is_a_0_9():
    """A broker that answers the next request but not ApiVersions is a 0.9; the connection is closed."""
    with connected({3}, 0.0) as connection:
        fetch_api_versions(connection, Deadline(5.0))
        assert connection.versions is VERSIONS_0_9
        assert connection.closed


def test_a_slow_broker_is_not_a_0_9():
    """A slow broker that answers ApiVersions first keeps its versions, and no response is left unread."""
    with connected({3, 18}, 1.0) as connection:
        fetch_api_versions(connection, Deadline(5.0))
        assert connection.versions == {3: (0, 1)}
        assert not connection.readable()


def test_a_silent_broker_times_out():
    """A broker that answers nothing raises `DeadlineExceeded`."""
    with connected(set(), 0.0) as connection, pytest.raises(DeadlineExceeded):
        fetch_api_versions(connection, Deadline(1.0))


def test_a_server_that_closes_every_connection_is_not_a_0_8():
    """A server that closes each connection is reported as disconnected."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            for _ in range(3):  # ApiVersions twice, because other brokers may close once, then the probe
                server.accept()[0].close()

        thread = threading.Thread(target=serve)
        thread.start()
        host, port = server.getsockname()
        with Client(f"{host}:{port}", timeout=5.0) as client, pytest.raises(Disconnected):
            client.api_versions()
        thread.join()
