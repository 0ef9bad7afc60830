"""`produce` sends events and lines, waits for the brokers, and says what it could not send."""

from __future__ import annotations

import json
import uuid

import pytest
from cli.calling import lines

from cloudevents_kafka.attributes.timestamps import is_timestamp
from cloudevents_kafka.attributes.types import parse_binary

ONE = ["--source", "/shop", "--type", "order.placed"]
PLAIN = '{"specversion":"1.0","id":"%s","source":"/","type":"t"}\n'


@pytest.fixture
def produce(run, mock_cluster, topic):
    """Produce to a topic of this test's own."""

    def call(*arguments, given=None):
        return run("produce", "-b", mock_cluster, "-t", topic, *arguments, given=given)

    return call


@pytest.fixture
def arrived(run, mock_cluster, topic):
    """Read what arrived, as JSON lines."""

    def read(*arguments):
        done = run("consume", "-b", mock_cluster, "-t", topic, *arguments)
        assert done.exit_code == 0, done.stderr
        return lines(done.stdout)

    return read


def test_one_event_from_options(produce, arrived):
    """Options make one event; nothing is invented but the id."""
    done = produce(
        *ONE,
        "--subject",
        "c-7",
        "--time",
        "now",
        "--data",
        '{"total": 12.50}',
        "--ext",
        "sampledrate=5",
        "--ext",
        "own=x",
        "--key-from",
        "subject",
        "--header",
        "trace=1",
        "--dataschema",
        "urn:x",
    )
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    [line] = arrived()
    event = line["event"]
    assert uuid.UUID(event.pop("id"))
    assert is_timestamp(event.pop("time"))
    assert event == {
        "specversion": "1.0",
        "source": "/shop",
        "type": "order.placed",
        "subject": "c-7",
        "datacontenttype": "application/json",
        "dataschema": "urn:x",
        "sampledrate": 5,
        "own": "x",
        "data": {"total": 12.5},
    }
    assert (line["key"], line["value"], line["headers"][-1]) == ("c-7", '{"total": 12.50}', ["trace", "1"])


def test_structured_modes(produce, arrived):
    """Mode and format are chosen; a format alone means structured mode."""
    produce(*ONE, "--id", "1", "-m", "structured", "--data", "[1.0]", "--partition", "0")
    produce(*ONE, "--id", "2", "--format", "avro", "--partition", "0")
    assert [(line["mode"], line["format"], line["event"]["id"]) for line in arrived()] == [
        ("structured", "json", "1"),
        ("structured", "avro", "2"),
    ]
    assert '"data":[1.0]' in arrived()[0]["value"]


def test_data_of_all_kinds(produce, arrived, tmp_path):
    """Data is JSON unless --content-type says otherwise; files go byte for byte."""
    file = tmp_path / "data"
    file.write_bytes(b"\x00\xff")
    produce(*ONE, "--id", "text", "--content-type", "text/plain", "--data", "hé")
    produce(*ONE, "--id", "file", "--data-file", file, "--content-type", "image/png")
    produce(*ONE, "--id", "bare", "--data-file", file)
    produce(*ONE, "--id", "none")
    found = {line["event"]["id"]: line for line in arrived()}
    assert found["text"]["event"]["data"] == "hé"
    assert parse_binary(found["file"]["event"]["data_base64"]) == b"\x00\xff"
    assert found["bare"]["event"].get("datacontenttype") is None
    assert (found["none"]["value"], found["text"]["value"]) == (None, "hé")


USAGE = [
    ([], "source: is required"),
    (["--source", "/", "--type", "t", "--time", "yesterday"], "T-12"),
    ([*ONE, "--data", "hello"], "--content-type"),
    ([*ONE, "--data", "{", "--content-type", "application/json"], "--data must be JSON for application/json"),
    ([*ONE, "--data", "1", "--data-file", "x"], "exclude each other"),
    ([*ONE, "--data-file", "/not/there"], "/not/there"),
    ([*ONE, "--ext", "subject=x"], "use its own option"),
    ([*ONE, "--ext", "My_Ext=x"], "N-01"),
    ([*ONE, "--ext", "x"], "name=value"),
    ([*ONE, "--header", "ce_id=x"], "belongs to the event"),
    ([*ONE, "--key", "x", "--key-from", "subject"], "exclude each other"),
    ([*ONE, "--partition", "1", "--keep-partitions"], "exclude each other"),
    ([*ONE, "-m", "binary", "--format", "json"], "no event format"),
    ([*ONE, "file"], "FILES and the options of one event exclude each other"),
    ([*ONE, "-X", "no.such=1"], "no.such"),
    (["/not/there"], "/not/there"),
]


@pytest.mark.parametrize(("arguments", "reason"), USAGE)
def test_bad_usage(produce, arguments, reason):
    """What makes no event or no sense is refused with the reason, exit code 2, before anything is sent."""
    done = produce(*(arguments or ["--id", "1", "--type", "t"]))
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in done.stderr


def test_events_on_stdin_and_in_files(produce, arrived, tmp_path):
    """Plain events are read from files and stdin, in the order given; empty lines are nothing."""
    file = tmp_path / "events"
    file.write_text(PLAIN % 1 + "\n  \n" + (PLAIN % 2).rstrip())
    done = produce(file, "-", "--partition", "1", given=PLAIN % 3)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [line["event"]["id"] for line in arrived()] == ["1", "2", "3"]
    assert {line["partition"] for line in arrived()} == {1}


def test_bad_lines_are_told_and_left_out(produce, arrived):
    """Each bad line is told with its number and reason; the others go; exit code 1."""
    given = PLAIN % 1 + "nonsense\n" + PLAIN % "" + '{"value":"\x1b"}\n' + PLAIN % 2
    done = produce(given=given)
    assert done.exit_code == 1
    told = done.stderr.splitlines()
    assert "stdin:2: the line must be a JSON object" in told[0]
    assert "stdin:3: not a valid CloudEvent: id: must not be empty" in told[1]
    assert "stdin:4" in told[2]
    assert told[-1].endswith("3 bad lines; 2 records delivered")
    assert sorted(line["event"]["id"] for line in arrived()) == ["1", "2"]


def test_strict_stops_at_the_first_bad_line(produce, arrived):
    """With --strict nothing after a bad line is sent; what came before is."""
    done = produce("--strict", given=PLAIN % 1 + "nonsense\n" + PLAIN % 2)
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 2
    assert [line["event"]["id"] for line in arrived()] == ["1"]


def test_topics_of_lines(run, mock_cluster, topic):
    """A line goes to its own topic, unless -t says otherwise; one without any is bad."""
    other = f"{topic}-other"
    line = json.dumps({"topic": other, "key": "k", "value": "v"}) + "\n"
    done = run("produce", "-b", mock_cluster, given=line + PLAIN % 1)
    assert done.exit_code == 1
    assert "stdin:2: the topic is missing: pass -t" in done.stderr
    assert [x["value"] for x in lines(run("consume", "-b", mock_cluster, "-t", other).stdout)] == ["v"]
    assert run("produce", "-b", mock_cluster, "-t", topic, given=line).exit_code == 0
    assert [x["value"] for x in lines(run("consume", "-b", mock_cluster, "-t", topic).stdout)] == ["v"]


def test_partitions_and_timestamps_are_kept_on_demand(produce, arrived):
    """The partition and timestamp of a line are those of a record that was; kept only if asked for."""
    line = json.dumps({"partition": 3, "timestamp": 1000, "key": None, "value": "v"})
    assert produce("--keep-partitions", "--keep-timestamps", given=line).exit_code == 0
    assert [(x["partition"], x["timestamp"]) for x in arrived()] == [(3, 1000)]
    assert produce("--partition", "2", given=line).exit_code == 0
    [_, new] = sorted(arrived(), key=lambda x: x["timestamp"])
    assert new["partition"] == 2
    assert new["timestamp"] > 10**12


def test_undelivered_records_are_broker_trouble(produce):
    """A record that no broker takes is told with its line; exit code 3."""
    done = produce("--partition", "77", given=PLAIN % 1)
    assert done.exit_code == 3
    assert "stdin:1: not delivered" in done.stderr
    assert "1 of 1 record not delivered" in done.stderr


def test_too_large_for_the_client(produce, arrived):
    """A record that the client itself refuses is told with its line; the others go; exit code 3."""
    large = json.dumps({"key": None, "value": "x" * 3000})
    done = produce("-X", "message.max.bytes=2000", given=f"{large}\n{PLAIN % 1}")
    assert done.exit_code == 3
    assert "stdin:1: not delivered: Unable to produce" in done.stderr or "too large" in done.stderr
    assert len(arrived()) == 1


def test_a_broker_that_cannot_be_reached(run):
    """An unreachable broker is told with its address and what to do, in time; exit code 3."""
    done = run("produce", "-b", "127.0.0.1:1", "-t", "x", "--timeout", "0.6", given=PLAIN % 1)
    assert done.exit_code == 3
    assert "broker 127.0.0.1:1 did not answer within 0.6 s" in done.stderr
    assert "Connection refused" in done.stderr
    assert "check -b" in done.stderr


def test_settings_are_shown_without_secrets(run, monkeypatch):
    """--show-config prints what counts, by origin, secrets masked, and does nothing else."""
    monkeypatch.setenv("CE_KAFKA_SASL_PASSWORD", "hunter22")
    done = run("produce", "-b", "a:1", "--show-config", "-X", "acks=1", "-X", "linger.ms=7")
    assert done.exit_code == 0
    assert "hunter22" not in done.output
    assert "# environment\nsasl.password=********\n" in done.stdout
    assert "# command line\nacks=1\nbootstrap.servers=a:1\nlinger.ms=7\n" in done.stdout
    assert "enable.idempotence" not in done.stdout


def test_secrets_are_in_no_error(run):
    """An error of the client's that quotes a secret is printed without it."""
    done = run(
        "produce",
        "-b",
        "a:1",
        "-t",
        "x",
        *ONE,
        "-X",
        "sasl.password=hunter22",
        "-X",
        "ssl.key.pem=hunter33",
        "-X",
        "security.protocol=hunter22",
    )
    assert done.exit_code == 2
    assert "security.protocol" in done.stderr
    assert "hunter" not in done.output


def test_a_full_queue_is_waited_for(produce, arrived):
    """More lines than the client's queue holds are sent all the same, in order."""
    given = "".join(PLAIN % number for number in range(500))
    done = produce("--partition", "0", "-X", "queue.buffering.max.messages=10", given=given)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [line["event"]["id"] for line in arrived()] == [str(number) for number in range(500)]
