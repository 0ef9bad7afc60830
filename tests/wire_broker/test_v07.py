"""The broker of Kafka 0.7, compared with recorded responses of a real one."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from cloudevents_kafka.protocol.v07 import Connection, ErrorCode, FetchRequest, MessageSet, encode, frames
from cloudevents_kafka.protocol.v07.messages import (
    FetchResponse,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
)
from tests.support.cases import each
from tests.support.wire import Wire, only
from tests.support.wire_broker import WireBroker07

VECTORS = Path(__file__).parents[1] / "protocol" / "vectors" / "0.7.2.json"


def test_it_answers_as_a_real_0_7_2_did():
    """The recorded requests have the same responses, silences and closed connections, in order."""
    segments = encode([b"x" * 190] * 4)
    with WireBroker07(partitions=2, segment_bytes=600) as broker:
        for row in json.loads(VECTORS.read_text())["exchanges"]:
            if row["name"].startswith("offsets seg-0 time=-1 n=10"):
                _fill_segments(broker, row, segments)
            if "t9-" in row["name"] or "time=1795" in row["name"]:
                continue  # of a partition that was chosen at random, and of the time of the capture
            with Wire(broker, timeout=5) as wire:
                request = bytes.fromhex(row["request"])
                wire.socket.sendall(request)
                if row["response"] is None:
                    # That it closed on the checksum was found out only by the next request.
                    closed = "outcome" in row or row["name"] == "produce bad crc"
                    wire.socket.settimeout(5 if closed else 0.05)
                    assert wire.is_closed() == closed, row["name"]
                    continue
                assert wire.frame() == bytes.fromhex(row["response"])[4:], row["name"]


def _fill_segments(broker, row, segments):
    """Produce what the real broker had in the topic seg before: two full segments."""
    with Wire(broker) as wire:
        for _ in range(2):
            wire.socket.sendall(
                frames.encode_request(ProduceRequest(topic="seg", partition=0, messages=segments))
            )
        wire.socket.sendall(
            frames.encode_request(OffsetsRequest(topic="seg", partition=0, time=-1, max_number=1))
        )
        wire.frame()


def _ask(wire, request):
    wire.socket.sendall(frames.encode_request(request))
    kind = FetchResponse if isinstance(request, FetchRequest) else OffsetsResponse
    return frames.decode_response(kind, wire.frame())


def test_partition_minus_1_is_any():
    """The broker chooses the partition; all partitions receive messages in the end."""
    with WireBroker07(partitions=2) as broker, Wire(broker) as wire:
        for _ in range(64):
            wire.socket.sendall(
                frames.encode_request(ProduceRequest(topic="t", partition=-1, messages=encode([b"m"])))
            )
        sizes = [
            len(_ask(wire, FetchRequest(topic="t", partition=n, offset=0, max_size=10**6)).messages)
            for n in (0, 1)
        ]
    assert sum(sizes) == 64 * len(encode([b"m"]))
    assert all(sizes)


def test_sizes_and_times_are_limits():
    """A negative size is 4, a negative number no offsets, and a time is the last write's."""
    with WireBroker07() as broker, Wire(broker) as wire:
        wire.socket.sendall(
            frames.encode_request(ProduceRequest(topic="t", partition=0, messages=encode([b"m"])))
        )
        assert (
            _ask(wire, FetchRequest(topic="t", partition=0, offset=0, max_size=-1)).error_code
            == ErrorCode.INVALID_FETCH_SIZE
        )
        assert (
            _ask(wire, FetchRequest(topic="t", partition=0, offset=-1, max_size=9)).error_code
            == ErrorCode.OFFSET_OUT_OF_RANGE
        )
        now = int(time.time() * 1000)
        for at, number, expected in ((now + 1000, 9, [0]), (now - 60_000, 9, []), (-1, -1, [])):
            request = OffsetsRequest(topic="t", partition=0, time=at, max_number=number)
            assert _ask(wire, request).offsets == expected


@each(
    ("topic", "partition", "messages", "reason"),
    [
        ("a/b", 0, encode([b"m"]), "'a/b'"),
        ("t", 1, encode([b"m"]), "partition 1"),
        ("t", -2, encode([b"m"]), "partition -2"),
        ("t", 0, encode([b"m"])[:-1], "truncated"),
        ("t", 0, encode([b"m"])[:-1] + b"n", "Corrupt"),
        ("t", 0, bytes(9), "Malformed"),
    ],
)
def test_invalid_produce_requests_close_the_connection(topic, partition, messages, reason):
    """Produce has no response, so the recorded error has the reason."""
    with WireBroker07() as broker, Wire(broker) as wire:
        wire.socket.sendall(
            frames.encode_request(ProduceRequest(topic=topic, partition=partition, messages=messages))
        )
        assert wire.is_closed()
        assert reason in only(broker.connection_errors)


def test_the_projects_own_client_reads_across_segments():
    """The client reads all messages, although no fetch crosses a segment."""
    before = threading.active_count()
    sent = [b"%d" % n for n in range(50)]
    with WireBroker07(segment_bytes=100) as broker:
        with Connection(broker.host, broker.port, timeout=5) as client:
            client.produce("t", 0, sent)
            deadline = time.monotonic() + 5
            while broker.log("t").end == 0 and time.monotonic() < deadline:
                time.sleep(0.005)
            got = [entry.message.payload for entry in client.messages("t", 0, 0)]
        assert got == sent
        assert isinstance(broker.requests[0], ProduceRequest)
        assert next(iter(MessageSet(broker.requests[0].messages))).message.payload == b"0"
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="does not listen yet"):
        _ = WireBroker07().port
