"""`consume` reads a topic, or a range of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.protocol.api_keys import ApiKey
from tests.cli.command_line import lines, send, start
from tests.support.cases import each
from tests.support.wire_broker import WireBroker, faults

COUNT = 20


@pytest.fixture
def filled(mock_cluster, topic):
    """A topic with 20 events in partition 0, and an event and another record in partition 1."""
    events = [
        to_record(Event(id=str(n), source="/s", type="even" if n % 2 == 0 else "odd", data=n), key=f"k{n}")
        for n in range(COUNT)
    ]
    other = to_record(Event(id="other", source="/o", type="odd"), mode="structured", headers=[("x", b"\xff")])
    send(mock_cluster, topic, *events)
    foreign = Record(key=b"\xff", value=b"foreign", headers=[("x", b"1"), ("x", None)])
    for record in (other, foreign):
        send(
            mock_cluster,
            topic,
            Record(key=record.key, value=record.value, headers=record.headers, partition=1),
        )
    return topic


@pytest.fixture
def consume(run, mock_cluster, filled):
    """A function that consumes the filled topic."""

    def call(*arguments):
        return run("consume", "-b", mock_cluster, "-t", filled, *arguments)

    return call


def offsets(result, partition=0):
    assert result.exit_code == 0, result.output
    return [line["offset"] for line in lines(result.stdout) if line["partition"] == partition]


RANGES = [
    ([], range(20)),
    (["--from", "earliest"], range(20)),
    (["--from", "latest"], range(0)),
    (["--from", "5"], range(5, 20)),
    (["--from", "-3"], range(17, 20)),
    (["--from", "99"], range(0)),
    (["--until", "4"], range(4)),
    (["--until", "-18"], range(2)),
    (["--from", "5", "--until", "7"], range(5, 7)),
    (["--from", "7", "--until", "7"], range(0)),
    (["--until", "earliest"], range(0)),
    (["--until", "99"], range(20)),
    (["-n", "3"], range(3)),
    (["--from", "-2", "-n", "9"], range(18, 20)),
    (["--type", "even"], range(0, 20, 2)),
    (["--type", "even", "-n", "2"], range(0, 4, 2)),
    (["--where", "id=7"], range(7, 8)),
]


@pytest.mark.parametrize(("arguments", "expected"), RANGES, ids=[" ".join(case[0]) for case in RANGES])
def test_ranges(consume, arguments, expected):
    """A range is read in order, from its first offset up to, without, its last."""
    assert offsets(consume("-p", "0", *arguments)) == list(expected)


@each(
    ("position", "advice"),
    [("99", ""), ("1795262400000", "; for a time in milliseconds, write @1795262400000")],
)
def test_a_start_after_all_records_is_reported(consume, position, advice):
    """If no partition has the first offset yet, a line on stderr says so; a large number may be a time."""
    result = consume("--from", position)
    note = f"no partition has reached the offset {position}: the highest end offset is 20"
    assert (result.stdout, result.stderr) == ("", f"cloudevents-kafka: {note}{advice}\n")
    assert consume("--from", "20").stderr == consume("--from", "2").stderr == ""


def test_all_partitions(consume):
    """Without -p all partitions are read to their ends; other records have the reason."""
    result = consume()
    assert offsets(result) == list(range(COUNT))
    [other, foreign] = [line for line in lines(result.stdout) if line["partition"] == 1]
    assert (other["mode"], other["format"], other["event"]["id"]) == ("structured", "json", "other")
    assert other["headers"][-1] == ["x", {"base64": "/w=="}]
    assert foreign["error"]["verdict"] == "not-an-event"
    assert (foreign["key"], foreign["value"]) == ({"base64": "/w=="}, "foreign")
    assert foreign["headers"] == [["x", "1"], ["x", None]]
    assert result.stderr == ""


def test_filters_report_skipped_records(consume):
    """Records without attributes do not match a filter on attributes; their number is on stderr."""
    result = consume("--source", "/o")
    assert [line["event"]["id"] for line in lines(result.stdout)] == ["other"]
    assert result.stderr == "cloudevents-kafka: the filters skipped 1 record that is not an event\n"
    assert len(lines(consume("--header", "x").stdout)) == 2
    assert [line["value"] for line in lines(consume("--header", "x=1").stdout)] == ["foreign"]


def test_strict_stops_at_a_record_that_is_not_an_event(consume):
    """With --strict the first record that is not an event ends the command: its place, and exit code 1."""
    result = consume("--strict", "-p", "1")
    assert result.exit_code == 1
    assert [line["offset"] for line in lines(result.stdout)] == [0]
    assert "[1]@1: not a CloudEvent" in result.stderr


def test_text(consume):
    """Text has aligned attributes, then other headers, and no control characters."""
    result = consume("-o", "text", "-p", "1")
    assert result.exit_code == 0
    assert "  id               other\n" in result.stdout
    assert "  header           x = base64:/w==\n" in result.stdout
    assert "  not-an-event     not a CloudEvent: the content-type header is missing" in result.stdout
    assert "  key=base64:/w==" in result.stdout
    assert "\x1b" not in result.stdout


def test_raw(consume):
    """Raw output has one value on each line."""
    assert consume("-o", "raw", "-p", "0", "-n", "3").stdout == "0\n1\n2\n"


def test_round_trip(run, mock_cluster, consume, topic):
    """`produce` sends the lines of `consume` byte for byte, in order."""
    copy = f"{topic}-copy"
    written = consume().stdout
    result = run(
        "produce", "-b", mock_cluster, "-t", copy, "--keep-partitions", "--keep-timestamps", stdin=written
    )
    assert (result.exit_code, result.stderr) == (0, "")
    again = run("consume", "-b", mock_cluster, "-t", copy).stdout
    sort = sorted(written.replace(topic, copy).splitlines())
    assert sorted(again.splitlines()) == sort


def test_a_group_continues_at_its_offsets(consume):
    """With --group and --commit a second run continues after the first; without --commit it does not."""
    assert offsets(consume("-p", "0", "--group", "g1", "-n", "7", "--commit")) == list(range(7))
    assert offsets(consume("-p", "0", "--group", "g1", "-n", "2")) == [7, 8]
    assert offsets(consume("-p", "0", "--group", "g1", "--commit")) == list(range(7, 20))
    assert offsets(consume("-p", "0", "--group", "g1")) == []
    assert offsets(consume("-p", "0", "--group", "g1", "--from", "-1")) == [19]
    assert offsets(consume("-p", "0", "--from", "stored", "--group", "g2")) == list(range(20))


def test_strict_commits_written_records_only(consume):
    """The record at which --strict stops is not committed."""
    consume("--strict", "-p", "1", "--group", "g3", "--commit")
    assert offsets(consume("-p", "1", "--group", "g3"), partition=1) == [1]


def test_strict_reports_a_record_before_which_nothing_is_left_to_commit(consume):
    """A second run that begins at the bad record ends for the reason of this record, as the first run did."""
    command = "--strict", "-p", "1", "--group", "g4", "--commit"
    first, second = consume(*command), consume(*command)
    assert (first.exit_code, second.exit_code) == (1, 1)
    assert lines(second.stdout) == []
    assert second.stderr == first.stderr
    assert "not a CloudEvent" in second.stderr


USAGE = [
    (["--commit"], "--group"),
    (["--follow", "--until", "5"], "--follow and --until exclude each other"),
    (["--from", "stored"], "--group"),
    (["--from", "tomorrow"], "a position must be"),
    (["--from", "50", "--until", "10"], "--from must not be after --until, got 50 and 10; exchange them"),
    (["--from", "latest", "--until", "-5"], "--from must not be after --until, got latest and -5"),
    (["orders"], "(not shown: it may be a secret); pass a topic by -t TOPIC, or a group"),
    (["-f", "%{offset}"], "(not shown: it may be a secret); pass a template by --format TEMPLATE"),
    (["-t", "none*"], "has no topic that matches 'none*'; check -t"),
    (["--topic-pattern", "("], "it must be a regular expression, got '('"),
    (["-p", "x"], "numbers"),
    (["-p", "-1"], "from 0"),
    (["-p", "77"], "has no partition 77; it has partitions 0 to 3"),
    (["-n", "0"], "x>=1"),
    (["--where", "x"], "name=value"),
    (["-o", "yaml"], "yaml"),
    (["-X", "fetch.max.bytes=x"], "fetch.max.bytes"),
    (["--timeout", "0"], "0<x<=2000000"),
]


@pytest.mark.parametrize(("arguments", "reason"), USAGE)
def test_bad_usage(consume, arguments, reason):
    """Bad usage is refused with the reason, exit code 2, and nothing on stdout."""
    result = consume(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr


@pytest.mark.parametrize("arguments", [["-b", "a:1"], ["-t", "x"]])
def test_broker_and_topic_are_required(run, arguments):
    """Without a broker or a topic, the error has the option to pass."""
    result = run("consume", *arguments)
    assert result.exit_code == 2
    assert "pass -" in result.stderr


def test_an_unreachable_broker(run):
    """A broker that refuses connections is reported soon, with its address and advice; exit code 3."""
    result = run("consume", "-b", "127.0.0.1:1", "-t", "x")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "broker 127.0.0.1:1 refuses connections: " in result.stderr
    assert "Connection refused" in result.stderr
    follow = run("consume", "-b", "127.0.0.1:1", "-t", "x", "--follow")
    assert (follow.exit_code, follow.stderr.count("cloudevents-kafka: ")) == (3, 1)
    assert "retrying" not in follow.stderr


def test_settings_are_shown(run):
    """--show-config shows the settings of the command, which override those of the user."""
    result = run(
        "consume", "-b", "a:1", "--show-config", "-X", "enable.auto.commit=true", "-X", "group.id=mine"
    )
    assert result.exit_code == 0
    assert "# overrides of consume\nenable.auto.commit=false\nenable.partition.eof=true\n" in result.stdout
    assert "mine" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "api"), [([], ApiKey.LIST_OFFSETS), (["--group", "g"], ApiKey.OFFSET_FETCH)]
)
def test_ctrl_c_ends_a_look_up_of_offsets(arguments, api):
    """If the broker answers nothing about offsets, Ctrl-C ends the wait before the timeout, with 130."""
    with WireBroker("4.3") as broker:
        broker.create_topic("t")
        asked = broker.faults.add(faults.no_response(), api=api, times=None)
        process = start("consume", "-b", broker.bootstrap_servers, "-t", "t", *arguments, "--timeout", "100")
        while not asked.matched and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, b"", b"")


@each("unbuffered", ["", "1"])
def test_a_batch_of_which_a_part_was_written_is_not_committed(mock_cluster, topic, unbuffered):
    """If the reader of stdout leaves within a batch, nothing is committed, buffered or unbuffered."""
    send(mock_cluster, topic, *[Record(value=b"x" * 4000)] * 500)
    words = ["consume", "-b", mock_cluster, "-t", topic, "--group", topic, "--commit", "-o", "json"]
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with start(*words, stdin=subprocess.DEVNULL, env=env) as process:
        assert process.stdout.read(100)
        process.stdout.close()
        assert process.wait(60) == 141, process.stderr.read()
    reader = Consumer({"bootstrap.servers": mock_cluster, "group.id": topic})
    (place,) = reader.committed([TopicPartition(topic, 0)], timeout=20)
    reader.close()
    assert place.offset == OFFSET_INVALID
