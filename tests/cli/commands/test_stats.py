"""`stats` counts the records of a topic, as one JSON object or as bars."""

from __future__ import annotations

import json
import signal
import time

import pytest

from cloudevents_kafka import Event, Record, to_record
from tests.cli.command_line import send, start

EVENTS = [
    to_record(Event(id=str(n), source="/s", type=f"type-{n % 3}", data="x" * n), key=b"k") for n in range(7)
]
OTHERS = [Record(value=b"x"), Record(value=b"x", headers=[*EVENTS[0].headers[:3], ("ce_type", b"")])]


@pytest.fixture
def filled(mock_cluster, topic):
    structured = to_record(Event(id="9", source="/t", type="type-0"), mode="structured")
    send(mock_cluster, topic, *EVENTS, *OTHERS, structured)
    return ["stats", "-b", mock_cluster, "-t", topic]


def test_json(run, filled):
    """In a pipe the counts are one JSON object, of events by each attribute and of others by clause."""
    result = run(*filled)
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["records"], found["events"], found["not_events"]) == (10, 8, 2)
    assert found["types"] == {"counts": {"type-0": 4, "type-1": 2, "type-2": 2}, "others": 0}
    assert found["sources"]["counts"] == {"/s": 7, "/t": 1}
    assert found["modes"]["counts"] == {"binary": 7, "structured": 1}
    assert found["formats"]["counts"] == {"json": 1}
    assert found["errors"]["counts"] == {"broken-event R-06": 1, "not-an-event K-11": 1}
    assert found["keys"]["counts"] == {"k": 7}
    assert found["without_key"] == 3
    assert sum(found["sizes"]["below"].values()) == sum(found["times"]["from"].values()) == 10


def test_text(run, filled):
    """As text each count has a bar, the longest one for the highest count."""
    result = run(*filled, "-o", "text")
    shown = result.stdout.splitlines()
    assert shown[0].endswith("8 events, 2 other records, 37 bytes")
    bars = {line.split()[0]: line.split()[2] for line in shown if line.startswith("  type-")}
    assert abs(len(bars["type-0"]) - 2 * len(bars["type-1"])) <= 1
    assert all(len(line) <= 80 for line in shown)


def test_a_range(run, filled):
    """A range is counted as consume reads it."""
    assert json.loads(run(*filled, "-p", "0", "--from", "2", "-n", "3").stdout)["events"] == 3
    result = run(*filled, "--follow", "--until", "3")
    assert (result.exit_code, result.stderr.count("--follow and --until exclude each other")) == (2, 1)
    result = run(*filled, "--from", "stored")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pass --group, too" in result.stderr


def test_memory_is_bounded(run, mock_cluster, topic):
    """Of many names the most frequent are kept, and the number of all others."""
    send(mock_cluster, topic, *(to_record(Event(id="1", source=f"/{n}", type="t")) for n in range(3000)))
    sources = json.loads(run("stats", "-b", mock_cluster, "-t", topic).stdout)["sources"]
    assert len(sources["counts"]) <= 100
    assert sum(sources["counts"].values()) + sources["others"] == 3000


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.release)])
def test_a_signal_prints_the_state(filled, number):
    """At Ctrl-C the counts so far are printed, and the exit code is that of the signal."""
    for seconds in (1.5, 8.0, 24.0, 60.0):  # on a busy machine the imports take longer
        process = start(*filled, "--follow")
        time.sleep(seconds)
        process.send_signal(number)
        out, err = process.communicate(timeout=100)
        if out.startswith(b"{") and json.loads(out)["records"]:
            break
    assert process.returncode == 128 + number
    assert json.loads(out)["records"] == 10
    assert err == b"cloudevents-kafka: interrupted: these are the records up to here\n"
