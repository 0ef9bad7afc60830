"""Data that is not of its content type has one verdict in consume, stats and decode."""

from __future__ import annotations

import json

import pytest

from cloudevents_kafka import BrokenData, Event, EventConsumer, Record, to_record
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage
from tests.cli.command_line import HEADERS, lines, send

NAMED = {"id": "1", "source": "/s", "type": "order.placed"}
GOOD = to_record(Event(**NAMED, data={"a": 1}))
BROKEN = Record(value=b"{broken", headers=GOOD.headers)
SURROGATE = Record(value=b'"\\ud800"', headers=GOOD.headers)
FRAMED = Record(value=b'\0\0\0\0\7{"a":1}', headers=GOOD.headers)
TEXT = to_record(Event(**NAMED, datacontenttype="text/plain; charset=ascii", data=b"\xff"))


def test_the_consumer_has_the_same_verdict() -> None:
    """A consumer that reads data at once says broken data, at the same place."""
    reader = FakeConsumer(FakeLog([FakeMessage("in", BROKEN.value, None, BROKEN.headers)]))
    reader.subscribe(["in"])
    item = EventConsumer(reader, eager_data=True).poll()
    assert item is not None
    assert isinstance(item.error, BrokenData)
    assert "object keys must be strings (byte 1)" in item.error.reason


@pytest.fixture
def filled(mock_cluster, topic):
    send(mock_cluster, topic, GOOD, BROKEN, SURROGATE, FRAMED, TEXT)
    return ["-b", mock_cluster, "-t", topic]


def test_consume(run, filled):
    """Its line has the verdict and the place, and the filters choose it by verdict and by type."""
    found = lines(run("consume", *filled).stdout)
    assert [one.get("error", {}).get("verdict") for one in found] == [
        *(None, "broken-data", None, "broken-data", "broken-data"),
    ]
    assert "(byte 1)" in found[1]["error"]["reason"]
    assert found[1]["value"] == "{broken"
    assert "consume --schema-registry URL decodes it" in found[3]["error"]["hint"]
    chosen = run("consume", *filled, "--verdict", "broken-data", "--type", "order.*")
    assert [one["offset"] for one in lines(chosen.stdout)] == [1, 3, 4]
    assert chosen.stderr == ""
    assert [one["offset"] for one in lines(run("consume", *filled, "--verdict", "event").stdout)] == [0, 2]
    stopped = run("consume", *filled, "--strict")
    assert (stopped.exit_code, len(lines(stopped.stdout))) == (1, 1)


def test_stats(run, filled):
    """It counts them as other records, by their verdict."""
    found = json.loads(run("stats", *filled).stdout)
    assert (found["events"], found["not_events"], found["errors"]["counts"]) == (2, 3, {"broken-data": 3})


def test_decode(run):
    """It shows the place in the data and the attributes, with exit code 1."""
    options = [*HEADERS, "--header", "content-type=application/json", "--value", "{broken"]
    result = run("decode", *options)
    assert result.exit_code == 1
    words = [line.split() for line in result.stdout.splitlines()]
    assert ["verdict", "broken-data"] in words
    assert ["type", "String", "t"] in words
    (problem,) = [line for line in result.stdout.splitlines() if line.split()[:1] == ["problem"]]
    assert "data is not JSON: JSON is malformed: object keys must be strings (byte 1)" in problem
    explanation = json.loads(run("decode", *options, "-o", "json").stdout)
    assert (explanation["verdict"], explanation["event"]["type"]) == ("broken-data", "t")
    assert "(byte 1)" in explanation["error"]["reason"]
    assert run("decode", *options[:-1], '"\\ud800"').exit_code == 0
