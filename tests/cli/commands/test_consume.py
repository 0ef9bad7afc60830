"""`consume` reads a topic, or a range of it, and loses nothing."""

from __future__ import annotations

import pytest
from cli.calling import lines, send

from cloudevents_kafka import Event, Record, to_record

COUNT = 20


@pytest.fixture
def filled(mock_cluster, topic):
    """A topic with twenty events in partition 0 and two records in partition 1, one of them no event."""
    events = [
        to_record(Event(id=str(n), source="/s", type="even" if n % 2 == 0 else "odd", data=n), key=f"k{n}")
        for n in range(COUNT)
    ]
    other = to_record(Event(id="other", source="/o", type="odd"), mode="structured", headers=[("x", b"\xff")])
    send(mock_cluster, topic, *events)
    stranger = Record(key=b"\xff", value=b"stranger", headers=[("x", b"1"), ("x", None)])
    for record in (other, stranger):
        send(
            mock_cluster,
            topic,
            Record(key=record.key, value=record.value, headers=record.headers, partition=1),
        )
    return topic


@pytest.fixture
def consume(run, mock_cluster, filled):
    """Consume the filled topic."""

    def call(*arguments):
        return run("consume", "-b", mock_cluster, "-t", filled, *arguments)

    return call


def offsets(done, partition=0):
    assert done.exit_code == 0, done.output
    return [line["offset"] for line in lines(done.stdout) if line["partition"] == partition]


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
    (["--from", "7", "--until", "5"], range(0)),
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
    """A range is read from its first offset up to, but without, its last; in order."""
    assert offsets(consume("-p", "0", *arguments)) == list(expected)


def test_all_partitions(consume):
    """Without -p all partitions are read to their ends; what is no event is there, with the reason."""
    done = consume()
    assert offsets(done) == list(range(COUNT))
    [other, stranger] = [line for line in lines(done.stdout) if line["partition"] == 1]
    assert (other["mode"], other["format"], other["event"]["id"]) == ("structured", "json", "other")
    assert other["headers"][-1] == ["x", {"base64": "/w=="}]
    assert stranger["error"]["verdict"] == "not-an-event"
    assert (stranger["key"], stranger["value"]) == ({"base64": "/w=="}, "stranger")
    assert stranger["headers"] == [["x", "1"], ["x", None]]
    assert done.stderr == ""


def test_filters_tell_what_they_left_out(consume):
    """Records that are no events cannot pass a filter on attributes: how many is told on stderr."""
    done = consume("--source", "/o")
    assert [line["event"]["id"] for line in lines(done.stdout)] == ["other"]
    assert done.stderr == "cloudevents-kafka: skipped 1 record without attributes to filter by\n"
    assert len(lines(consume("--header", "x").stdout)) == 2
    assert [line["value"] for line in lines(consume("--header", "x=1").stdout)] == ["stranger"]


def test_strict_stops_at_a_record_that_is_no_event(consume):
    """With --strict the first record that is no event ends it: exit code 1, told with its place."""
    done = consume("--strict", "-p", "1")
    assert done.exit_code == 1
    assert [line["offset"] for line in lines(done.stdout)] == [0]
    assert "[1]@1: not a CloudEvent" in done.stderr


def test_text(consume):
    """As text, attributes are aligned, foreign headers follow, and nothing raw gets through."""
    done = consume("-o", "text", "-p", "1")
    assert done.exit_code == 0
    assert "  id               other\n" in done.stdout
    assert "  header           x = base64:/w==\n" in done.stdout
    assert "  not-an-event     not a CloudEvent: the content-type header is missing" in done.stdout
    assert "  key=base64:/w==" in done.stdout
    assert "\x1b" not in done.stdout


def test_raw(consume):
    """Raw values come one on a line."""
    assert consume("-o", "raw", "-p", "0", "-n", "3").stdout == "0\n1\n2\n"


def test_round_trip(run, mock_cluster, consume, topic):
    """What `consume` writes, `produce` sends back byte for byte, in order."""
    copy = f"{topic}-copy"
    written = consume().stdout
    done = run(
        "produce", "-b", mock_cluster, "-t", copy, "--keep-partitions", "--keep-timestamps", given=written
    )
    assert (done.exit_code, done.stderr) == (0, "")
    again = run("consume", "-b", mock_cluster, "-t", copy).stdout
    sort = sorted(written.replace(topic, copy).splitlines())
    assert sorted(again.splitlines()) == sort


def test_a_group_goes_on_where_it_was(consume):
    """With --group and --commit a second call goes on after the first; without --commit it does not."""
    assert offsets(consume("-p", "0", "--group", "g1", "-n", "7", "--commit")) == list(range(7))
    assert offsets(consume("-p", "0", "--group", "g1", "-n", "2")) == [7, 8]
    assert offsets(consume("-p", "0", "--group", "g1", "--commit")) == list(range(7, 20))
    assert offsets(consume("-p", "0", "--group", "g1")) == []
    assert offsets(consume("-p", "0", "--group", "g1", "--from", "-1")) == [19]
    assert offsets(consume("-p", "0", "--from", "stored", "--group", "g2")) == list(range(20))


def test_strict_commits_what_was_written_and_no_more(consume):
    """A record at which --strict stopped is not stored as read."""
    consume("--strict", "-p", "1", "--group", "g3", "--commit")
    assert offsets(consume("-p", "1", "--group", "g3"), partition=1) == [1]


USAGE = [
    (["--commit"], "--group"),
    (["--follow", "--until", "5"], "--follow and --until exclude each other"),
    (["--from", "stored"], "--group"),
    (["--from", "tomorrow"], "a position must be"),
    (["-p", "x"], "numbers"),
    (["-p", "-1"], "from 0"),
    (["-p", "77"], "has no partition 77: it has 0 to 3"),
    (["-n", "0"], "x>=1"),
    (["--where", "x"], "name=value"),
    (["-o", "yaml"], "yaml"),
    (["-X", "fetch.max.bytes=x"], "fetch.max.bytes"),
    (["--timeout", "0"], "0<x<=2000000"),
]


@pytest.mark.parametrize(("arguments", "reason"), USAGE)
def test_bad_usage(consume, arguments, reason):
    """What makes no sense is refused with the reason, exit code 2, and nothing on stdout."""
    done = consume(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in done.stderr


@pytest.mark.parametrize("arguments", [["-b", "a:1"], ["-t", "x"]])
def test_broker_and_topic_must_be_given(run, arguments):
    """Without broker or topic it says what to give."""
    done = run("consume", *arguments)
    assert done.exit_code == 2
    assert "pass -" in done.stderr


def test_a_broker_that_cannot_be_reached(run):
    """An unreachable broker is told with its address and what to do, in time; exit code 3."""
    done = run("consume", "-b", "127.0.0.1:1", "-t", "x", "--timeout", "0.6")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "broker 127.0.0.1:1 did not answer within 0.6 s" in done.stderr
    assert "Connection refused" in done.stderr


def test_settings_are_shown(run):
    """--show-config tells what the command itself sets, which a user cannot change."""
    done = run(
        "consume", "-b", "a:1", "--show-config", "-X", "enable.auto.commit=true", "-X", "group.id=mine"
    )
    assert done.exit_code == 0
    assert "# overrides of consume\nenable.auto.commit=false\nenable.partition.eof=true\n" in done.stdout
    assert "mine" not in done.stdout
