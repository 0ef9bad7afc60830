"""Captures of a client's traffic."""

from __future__ import annotations

import gc
import io
import json

import pytest

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client._capture import CapturedFrame, parse_line, stream_trace, to_trace
from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.messages.topics import MetadataRequest
from tests.support.cases import each
from tests.support.wire import eventually, fill, numbers, take

HEARTBEAT = 12


def test_captures_round_trip():
    """Parsed lines equal the written frames, with times in microseconds."""
    stream = io.StringIO()
    write = stream_trace(stream)
    sent = [CapturedFrame(1.5, "h:1", "sent", b"\x00\x01"), CapturedFrame(2.25, "h:1", "received", b"")]
    for one in sent:
        write(one)
    assert [parse_line(line, "line") for line in stream.getvalue().splitlines()] == sent


@each(
    "line",
    [
        "x",
        "5",
        "[]",
        "{}",
        "null",
        '"sent"',
        '{"sent": "00"}',
        '{"time": 1, "broker": "b", "sent": "0"}',
        '{"time": 1, "broker": "b", "sent": 5}',
        '{"time": [], "broker": "b", "sent": ""}',
        "[" * 100_000,
    ],
)
def test_other_lines_are_refused(line):
    """`Malformed` has the number of the line."""
    with pytest.raises(Malformed, match="line 2 must be a line of a capture"):
        parse_line(line, "line 2")


@pytest.mark.parametrize("kind", ["path", "str", "stream", "function"])
def test_a_client_is_traced(broker, connect, tmp_path, kind):
    """A file, a stream and a function receive all frames, requests and responses in turn."""
    path, stream, got = tmp_path / "trace", io.StringIO(), []
    trace = {"path": path, "str": str(path), "stream": stream, "function": got.append}[kind]
    client = connect(broker, trace=trace)
    client.metadata(["t"])
    client.close()
    if not got:
        text = path.read_text(encoding="utf-8") if path.exists() else stream.getvalue()
        got = [parse_line(line, "line") for line in text.splitlines()]
    assert [frame.direction for frame in got] == ["sent", "received"] * 2
    assert {frame.broker for frame in got} == {broker.bootstrap_servers}
    assert all(int.from_bytes(frame.data[:4], "big") == len(frame.data) - 4 for frame in got)
    header, request = frames.decode_request(got[2].data[4:])
    assert (header.request_api_key, type(request)) == (3, MetadataRequest)


def test_a_file_is_not_left_open(tmp_path):
    """A trace to a path closes the file after each frame."""
    path = tmp_path / "trace"
    trace = to_trace(path)
    trace(CapturedFrame(1.0, "b", "sent", b"a"))
    trace(CapturedFrame(2.0, "b", "sent", b"b"))
    del trace
    gc.collect()
    assert [json.loads(line)["sent"] for line in path.read_text().splitlines()] == ["61", "62"]


def test_no_trace_is_none():
    """`to_trace` returns None for None."""
    assert to_trace(None) is None


def test_a_trace_that_raises(broker, connect, caplog):
    """Its error is logged, and calls, producers and members of groups go on."""

    def trace(_frame):
        raise RuntimeError("disk full")

    client = connect(broker, trace=trace)
    fill(client, numbers(30), batch_records=3)
    with client.consumer(group="g", reset="earliest", heartbeat_interval=0.05) as consumer:
        consumer.subscribe(["t"])
        assert take(consumer, 30) == numbers(30)
        beats = len(broker.calls(HEARTBEAT))
        assert eventually(lambda: consumer.poll(0.05) is None and len(broker.calls(HEARTBEAT)) > beats + 3)
    (logged,) = caplog.records
    assert logged.name == "cloudevents_kafka.protocol"
    assert logged.getMessage().endswith("failed, so frames are missing: RuntimeError('disk full')")


def test_an_error_of_a_trace_is_logged_once_in_a_series(caplog):
    """A full disk fails for each frame: the next error is logged after a frame that was written."""
    outcomes = iter([OSError("1"), OSError("2"), None, ValueError("4"), None])

    def write(_frame):
        if (outcome := next(outcomes)) is not None:
            raise outcome

    trace = to_trace(write)
    for _ in range(5):
        trace(CapturedFrame(1.5, "h:1", "sent", b""))
    texts = [record.getMessage().rpartition(": ")[2] for record in caplog.records]
    assert texts == ["OSError('1')", "ValueError('4')"]
    assert [bool(record.exc_info) for record in caplog.records] == [False, True]  # a user's code has lines
