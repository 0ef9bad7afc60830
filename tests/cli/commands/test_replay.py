"""`replay` sends dead letters back to where they came from, or elsewhere."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import DeadLetters, Event, EventProducer, Record, dead_letter, to_record
from cloudevents_kafka.clients.dead_letters import without_value
from tests.cli.command_line import lines, send


@pytest.fixture
def dead(mock_cluster, topic):
    """A topic with three dead letters of two topics, and a record that is not one."""
    client = Producer({"bootstrap.servers": mock_cluster, "log_level": 0})
    with EventProducer(client, topic=f"{topic}.dead") as producer:
        letters = DeadLetters(producer, topic=f"{topic}.dead")
        for number, error in enumerate([ValueError("one"), TimeoutError("two"), ValueError("three")]):
            event = to_record(Event(id=str(number), source="/s", type=f"t{number}"), key=b"\xff")
            came = f"{topic}.b" if number == 2 else f"{topic}.a"
            record = Record(key=event.key, headers=[*event.headers, ("x", None)], topic=came, offset=number)
            letters.send(record, error, attempt=number + 1).result(20)
    send(mock_cluster, f"{topic}.dead", Record(value=b"foreign"))
    for name in ("a", "b", "else"):
        send(mock_cluster, f"{topic}.{name}")
    return f"{topic}.dead"


@pytest.fixture
def replay(run, mock_cluster, dead):
    """A function that replays the topic of dead letters."""

    def call(*arguments):
        return run("replay", "-b", mock_cluster, "-t", dead, *arguments)

    return call


@pytest.fixture
def found(run, mock_cluster, topic):
    """A function that reads the lines of one of the topics that records came from."""

    def call(name):
        result = run("consume", "-b", mock_cluster, "-t", f"{topic}.{name}")
        return lines(result.stdout)

    return call


def ids(found):
    return sorted(line["event"]["id"] for line in found)


def test_nothing_is_sent_unless_asked(replay, found, topic):
    """Without --send the report says what would be sent; what cannot go back is bad data."""
    result = replay()
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["to", "error", "records"]
    assert rows[2:5] == [
        [f"{topic}.a", "TimeoutError", "1"],
        [f"{topic}.a", "ValueError", "1"],
        [f"{topic}.b", "ValueError", "1"],
    ]
    assert result.stdout.splitlines()[-1] == "of 4 records read, 3 match; nothing was sent: add --send"
    assert result.exit_code == 1
    assert "1 matching record has no header dlq_topic" in result.stderr
    assert result.stderr.endswith("pass --to TOPIC to send them\n")
    assert replay("--group", "any").stderr.endswith("pass --to TOPIC to send them, without --group\n")
    assert found("a") == []


def test_records_go_back_as_they_were(replay, found):
    """Key, value and headers are those of the record; the headers of the failure stay unless dropped."""
    result = replay("--send", "--header", "dlq_topic")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "of 4 records read, 3 match; 3 sent"
    assert (ids(found("a")), ids(found("b"))) == (["0", "1"], ["2"])
    (line,) = found("b")
    assert (line["key"], line["value"]) == ({"base64": "/w=="}, None)
    names = [name for name, _ in line["headers"]]
    assert names[names.index("x") + 1 :] == [
        "dlq_topic",
        "dlq_offset",
        "dlq_time",
        "dlq_attempt",
        "dlq_error",
    ]


def test_letters_can_be_chosen_and_sent_elsewhere(replay, found, topic):
    """Filters are on the error, the attempts, the event and the position; --drop-header removes headers."""
    chosen = ("--error", "Value*", "--max-attempt", "2", "--drop-header", "dlq_*")
    result = replay("--send", "--to", f"{topic}.else", *chosen)
    assert (result.exit_code, result.stderr) == (0, "")
    (line,) = found("else")
    assert line["event"]["id"] == "0"
    assert not [name for name, _ in line["headers"] if name.startswith("dlq_")]
    for arguments, count in [
        (["--type", "t1"], 1),
        (["--error", "Time*", "--error", "*three"], 2),
        (["-n", "2", "--header", "dlq_topic"], 2),
        (["--from", "-1"], 0),
        (["--until", "1"], 1),
        (["--header", "dlq_attempt=3"], 1),
    ]:
        found = f"{count} {'matches' if count == 1 else 'match'}; nothing"
        assert found in replay(*arguments).stdout, arguments


def test_a_group_continues_after_what_it_has_sent(replay, found):
    """With --group a second run sends what the first has not; a dry run commits nothing."""
    chosen = ("--group", "replay", "--header", "dlq_topic")
    assert "3 match; nothing" in replay(*chosen).stdout
    assert "1 matches; 1 sent" in replay(*chosen, "--send", "-n", "1").stdout
    assert "2 match; 2 sent" in replay(*chosen, "--send").stdout
    assert "0 match; 0 sent" in replay(*chosen, "--send").stdout
    assert len(found("a")) + len(found("b")) == 3


def test_a_group_passes_over_what_does_not_match(replay):
    """The command says that a later run with the group does not read these records again."""
    passed = "not match, and a later run with the group some starts after them; to send"
    chosen = ("--group", "some", "--type", "t1")
    assert passed not in replay(*chosen).stderr  # a dry run commits nothing
    assert passed not in replay("--send", "--type", "t1").stderr
    assert passed in replay(*chosen, "--send").stderr
    assert "of 0 records read" in replay("--group", "some", "--send").stdout


USAGE = [
    ([], "the topic is missing"),
    (["-t", "d", "--to", "d"], "--to must be another topic"),
    (["-t", "d", "-n", "0"], "-n"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_usage(run, arguments, message):
    """Wrong options end the command with exit code 2."""
    result = run("replay", "-b", "127.0.0.1:1", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_letters_without_their_value_stay(replay, dead, mock_cluster):
    """A dead letter that was too large has no value to send back: the report counts it."""
    record = Record(key=b"k", value=bytes(10), topic="orders", partition=0, offset=5)
    send(mock_cluster, dead, without_value(dead_letter(record, "too much", topic=dead)))
    result = replay("--header", "dlq_topic", "--send")
    assert result.exit_code == 1
    assert "of 5 records read, 3 match; 3 sent" in result.stdout
    assert "1 matching record has no value, which was too large for a dead letter" in result.stderr


def test_a_bad_letter_holds_up_no_other(replay, dead, found, mock_cluster):
    """A letter that cannot be sent stays with its reason, the others are sent once; the exit code is 1."""
    for topic in (b"no topic", b"", b"\xff", b"a" * 300):
        letter = Record(value=b"{}", headers=[("dlq_topic", topic), ("dlq_error", b"E: x")])
        send(mock_cluster, dead, letter)
    send(
        mock_cluster,
        dead,
        Record(value=bytes(3000), headers=[("dlq_topic", dead.replace("dead", "a").encode())]),
    )
    last = Record(value=b"last", headers=[("dlq_topic", dead.replace("dead", "b").encode())])
    send(mock_cluster, dead, last)
    options = ("--send", "--group", "again", "--header", "dlq_topic", "-X", "message.max.bytes=2000")
    result = replay(*options)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "of 10 records read, 7 match; 4 sent"
    assert f"{dead}[0]@4: a topic name must have 1 to 249 letters, " in result.stderr
    assert "3 matching records were refused, see above, and stayed in the topic; correct" in result.stderr
    assert "2 matching records have no header dlq_topic" in result.stderr
    assert (len(found("a")), len(found("b"))) == (2, 2)
    assert "of 0 records read, 0 match; 0 sent" in replay(*options).stdout
    assert (len(found("a")), len(found("b"))) == (2, 2)
