"""A bare client and short requests, for tests of the wire."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from cloudevents_kafka.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol
from cloudevents_kafka.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from cloudevents_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.schema import spec_of


class Wire:
    """A connection that sends any request; None as a response means a closed connection."""

    def __init__(self, node, *, timeout=5.0, tls=None):
        self.socket = socket.create_connection((node.host, node.port), timeout)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=node.host)
        self._correlation_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, request, version, *, client_id="test"):
        """Send a request; return its correlation id."""
        self._correlation_id += 1
        self.socket.sendall(
            frames.encode_request(request, version, correlation_id=self._correlation_id, client_id=client_id)
        )
        return self._correlation_id

    def ask(self, request, version, *, client_id="test"):
        """Send a request and return the response."""
        sent = self.send(request, version, client_id=client_id)
        frame = self.frame()
        if frame is None:
            return None
        correlation_id, response = self.decoded(type(request), version, frame)
        assert correlation_id == sent
        return response

    @staticmethod
    def decoded(request, version, frame):
        return frames.decode_response(APIS[spec_of(request).key].response, version, frame)

    def frame(self):
        """Return the next frame without its size."""
        size = self.read(4)
        return None if size is None else self.read(*struct.unpack(">i", size))

    def read(self, size):
        data = b""
        while len(data) < size:
            try:
                piece = self.socket.recv(size - len(data))
            except ConnectionError:
                return None
            if not piece:
                return None
            data += piece
        return data

    def is_closed(self):
        """Return whether the broker closes the connection within the timeout."""
        try:
            return self.read(1) is None
        except TimeoutError:
            return False


def produce(records, *, topic="t", partition=0, acks=1, timeout_ms=1000):
    data = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=partition, records=records)]
    )
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])


def fetch(offset=0, *, topic="t", partition=0, partition_bytes=1_000_000, wait_ms=0, min_bytes=0, **more):
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_bytes)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
        **more,
    )


def list_offsets(timestamp, *, topic="t", partition=0, max_number=1):
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, max_num_offsets=max_number)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])


def metadata(*topics):
    return MetadataRequest(topics=[MetadataRequestTopic(name=topic) for topic in topics])


def join(member_id="", *, group="g", session_ms=6000, rebalance_ms=6000, protocols=None, **more):
    offered = {"range": b"r"} if protocols is None else protocols
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        protocol_type=more.pop("type", "consumer"),
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in offered.items()],
        **more,
    )


def only(rows):
    (row,) = rows
    return row


def produced(response):
    """Return the error code and offset of the only partition."""
    row = only(only(response.responses).partition_responses)
    return row.error_code, row.base_offset


def fetched(response):
    """Return the row of the only partition."""
    return only(only(response.responses).partitions)


@contextmanager
def meanwhile(action):
    """Run a function in a thread; yield a list that receives its result."""
    returned = []
    thread = threading.Thread(target=lambda: returned.append(action()))
    thread.start()
    try:
        yield returned
    finally:
        thread.join()


def eventually(holds, seconds=60.0):
    """Wait until a condition is true; return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.005)
    return False


@contextmanager
def interrupted(seconds):
    """Raise KeyboardInterrupt in the block after ``seconds``, as Ctrl-C does, and expect it."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()


def self_signed(folder, name="IP:127.0.0.1"):
    """Write a self-signed certificate of 127.0.0.1, or of another name, and its key; return their paths."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    options = "-newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", f"subjectAltName={name}"]
    command = ["openssl", "req", "-x509", *options.split(), *names, "-keyout", key, "-out", cert]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def numbers(count):
    """Return the numbers below ``count`` as values."""
    return [b"%d" % n for n in range(count)]


def fill(client, values, topic="t", partition=0, **more):
    """Produce values, and wait for their delivery."""
    with client.producer(**more) as producer:
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(5) == 0


def take(consumer, count, seconds=8.0):
    """Return the values of the next records."""
    found, end = [], time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        if (message := consumer.poll(0.05)) is not None:
            found.append(message.value())
    return found
