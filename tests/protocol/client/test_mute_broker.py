"""A broker that says nothing to ApiVersions, as 0.9 does, is told from one that is slow."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from cloudevents_kafka.protocol import Client, DeadlineExceeded, Disconnected, frames
from cloudevents_kafka.protocol.client import api_versions
from cloudevents_kafka.protocol.client.connection import Address, Connection
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from cloudevents_kafka.protocol.messages.metadata import MetadataResponse

VERSIONS = ApiVersionsResponse(error_code=0, api_keys=[ApiVersion(api_key=3, min_version=0, max_version=1)])
ANSWERS = {18: VERSIONS, 3: MetadataResponse(brokers=[], topics=[])}


@contextmanager
def connected(known, pause):
    """A connection to a broker that is silent for a while, then answers requests of known APIs in order."""
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


def test_mute():
    """One that answers the request behind, but not this, is of 0.9; the connection is of no more use."""
    with connected({3}, 0.0) as connection:
        assert api_versions.ask(connection, Deadline(5.0)) is api_versions.OLD
        assert connection.closed


def test_slow():
    """One that is slow, but answers this first, is believed; and nothing is left to be read."""
    with connected({3, 18}, 1.0) as connection:
        assert api_versions.ask(connection, Deadline(5.0)) == {3: (0, 1)}
        assert not connection.readable()


def test_dead():
    """One that answers nothing at all is given up at the deadline."""
    with connected(set(), 0.0) as connection, pytest.raises(DeadlineExceeded):
        api_versions.ask(connection, Deadline(1.0))


def test_hangs_up_on_all():
    """One that hangs up whatever it is asked is nobody; it is not taken for a broker of 0.8."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            for _ in range(3):  # asked twice, as others may hang up once, then greeted
                server.accept()[0].close()

        thread = threading.Thread(target=serve)
        thread.start()
        host, port = server.getsockname()
        with Client(f"{host}:{port}", timeout=5.0) as client, pytest.raises(Disconnected):
            client.api_versions()
        thread.join()
