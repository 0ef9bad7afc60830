"""`topics` lists what a cluster has; `groups` lists groups and, with ``reset``, changes their offsets."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from cloudevents_kafka import Record
from tests.cli.command_line import lines, send

pytestmark = pytest.mark.broker


@pytest.fixture
def servers(kafka_broker):
    return kafka_broker.bootstrap_servers


@pytest.fixture
def filled(kafka_broker, kafka_topic, servers):
    """A topic with 5 records, of which a group has read 2; the group has the name of the topic."""
    send(servers, kafka_topic, *[Record(value=b"x")] * 5)
    settings = {"bootstrap.servers": servers, "group.id": kafka_topic, "enable.auto.commit": False}
    reader = Consumer(settings)
    reader.commit(offsets=[TopicPartition(kafka_topic, 0, 2)], asynchronous=False)
    reader.close()
    return kafka_topic


def test_topics(run, servers, filled):
    """Topics have their partitions, first and last offsets and sizes, as text and as JSON lines."""
    [found] = [line for line in lines(run("topics", "-b", servers).stdout) if line["topic"] == filled]
    assert found == {
        "topic": filled,
        "partitions": [{"partition": 0, "first": 0, "last": 4, "size": 5}],
        "size": 5,
    }
    result = run("topics", "-b", servers, filled, "-o", "text")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["partition", "first", "last", "size"]
    assert result.stdout.splitlines()[2].split() == [f"{filled}[0]", "0", "4", "5"]


def test_an_unknown_topic_is_not_created(run, servers, filled):
    """A topic that does not exist is an error with a near name, and is not created by the question."""
    for _ in range(2):
        result = run("topics", "-b", servers, f"{filled}s")
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"has no topic '{filled}s'; did you mean '{filled}'" in result.stderr


def test_groups(run, servers, filled):
    """A group has its state, members, offsets and lag, with the member that reads a partition."""
    [group] = lines(run("groups", "-b", servers, "--group", filled).stdout)
    part = {"topic": filled, "partition": 0, "offset": 2, "end": 5, "lag": 3}
    assert group == {"group": filled, "state": "empty", "members": [], "partitions": [part], "lag": 3}
    assert group in lines(run("groups", "-b", servers).stdout)
    settings = {"bootstrap.servers": servers, "group.id": filled, "client.id": "me", "log_level": 0}
    with Consumer(settings) as member:
        member.subscribe([filled])
        assert member.consume(1, 20)
        shown = run("groups", "-b", servers, "--group", filled, "-o", "text").stdout.splitlines()
        assert shown[2].split() == [filled, f"{filled}[0]", "2", "5", "3", "me", "/127.0.0.1"]
        refused = run(
            "groups", "reset", "-b", servers, "--group", filled, "-t", filled, "--to", "0", "--apply"
        )
        assert refused.exit_code == 2
        assert f"group '{filled}' has 1 member; stop all of them first" in refused.stderr


def test_an_unknown_group(run, servers, filled):
    """A group that does not exist is an error with a near name."""
    result = run("groups", "-b", servers, "--group", f"{filled}s")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"there is no group '{filled}s'; did you mean '{filled}'" in result.stderr


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("earliest", 0),
        ("-1", 4),
        ("@1969-12-31T23:59:59.999Z", 0),
        *(
            pytest.param(*case, marks=pytest.mark.release)
            for case in (("latest", 5), ("3", 3), ("@9999999999999", 5), ("99", 5))
        ),
    ],
)
def test_reset(run, servers, filled, position, expected):
    """A reset changes nothing without --apply, and then what it has shown."""
    reset = ["groups", "reset", "-b", servers, "--group", filled, "-t", filled, "--to", position]
    change = {"topic": filled, "partition": 0, "from": 2, "to": expected}
    dry = run(*reset)
    assert (dry.exit_code, lines(dry.stdout)) == (0, [change])
    assert dry.stderr == "cloudevents-kafka: nothing was changed: add --apply\n"
    assert lines(run(*reset).stdout) == [change]
    applied = run(*reset, "--apply")
    assert (applied.exit_code, lines(applied.stdout), applied.stderr) == (0, [change], "")
    [group] = lines(run("groups", "-b", servers, "--group", filled).stdout)
    assert group["partitions"][0]["offset"] == expected


def test_offsets_of_a_deleted_topic_are_left_out(run, servers, filled, kafka_broker):
    """A group that has committed offsets in a topic that was deleted is listed without it."""
    kafka_broker.create_topic(f"{filled}-gone")
    reader = Consumer({"bootstrap.servers": servers, "group.id": f"{filled}-late", "log_level": 0})
    reader.commit(offsets=[TopicPartition(f"{filled}-gone", 0, 0)], asynchronous=False)
    reader.close()
    kafka_broker.delete_topic(f"{filled}-gone")
    result = run("groups", "-b", servers)
    assert result.exit_code == 0, result.output
    assert f"{filled}-late" in result.stdout


def test_missing_options_are_reported_together(run):
    """All options that a reset needs are in one message."""
    result = run("groups", "reset")
    assert result.exit_code == 2
    assert all(
        name in result.stderr for name in ("--group NAME", "-t TOPIC", "--to POSITION", "-b host:port")
    )
    assert result.stderr.count("\n") == 1


def test_options_stand_after_the_command(run):
    """Options in front of reset, which would have no effect, are refused."""
    result = run("groups", "-b", "127.0.0.1:1", "reset", "--group", "g")
    assert result.exit_code == 2
    assert "options of reset must stand after its name" in result.stderr
