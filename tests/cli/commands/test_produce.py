"""`produce` sends events and lines, waits for the brokers, and reports undelivered records."""

from __future__ import annotations

import json
import os
import uuid
from threading import Timer

import pytest
from confluent_kafka import Producer

from cloudevents_kafka.attributes.timestamps import is_timestamp
from cloudevents_kafka.attributes.types import parse_binary
from tests.cli.command_line import lines, start

ONE = ["--source", "/shop", "--type", "order.placed"]
PLAIN = '{"specversion":"1.0","id":"%s","source":"/","type":"t"}\n'


@pytest.fixture
def produce(run, mock_cluster, topic):
    """A function that produces to the topic of the test."""

    def call(*arguments, stdin=None):
        return run("produce", "-b", mock_cluster, "-t", topic, *arguments, stdin=stdin)

    return call


@pytest.fixture
def arrived(run, mock_cluster, topic):
    """A function that reads the topic of the test as JSON lines."""

    def read(*arguments):
        result = run("consume", "-b", mock_cluster, "-t", topic, *arguments)
        assert result.exit_code == 0, result.stderr
        return lines(result.stdout)

    return read


def test_one_event_from_options(produce, arrived):
    """Options create one event; only the id has a default."""
    words = "--subject c-7 --time now --ext sampledrate=5 --ext own=x --key-from subject --header trace=1"
    result = produce(*ONE, *words.split(), "--dataschema", "urn:x", "--data", '{"total": 12.50}')
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
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
    """Mode and format are options; a format alone implies structured mode."""
    produce(*ONE, "--id", "1", "-m", "structured", "--data", "[1.0]", "--partition", "0")
    produce(*ONE, "--id", "2", "--format", "avro", "--partition", "0")
    assert [(line["mode"], line["format"], line["event"]["id"]) for line in arrived()] == [
        ("structured", "json", "1"),
        ("structured", "avro", "2"),
    ]
    assert '"data":[1.0]' in arrived()[0]["value"]


def test_data_of_all_kinds(produce, arrived, tmp_path):
    """Data is JSON unless --content-type is another type; files are sent byte for byte."""
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
    (
        [*ONE, "--time", "2026-01-01"],
        "; pass --time now, or a text such as --time 2026-01-31T12:00:00Z (T-12",
    ),
    (["--source", "a b", "--type", "t"], "; pass --source 'a%20b' (T-11"),
    ([*ONE, "--content-type", "x"], "; pass --content-type 'application/json' (R-07"),
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
    """Bad usage is refused with the reason and exit code 2, before a record is sent."""
    result = produce(*(arguments or ["--id", "1", "--type", "t"]))
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr


def test_events_on_stdin_and_in_files(produce, arrived, tmp_path):
    """Plain events are read from files and stdin in their order; empty lines are skipped."""
    file = tmp_path / "events"
    file.write_text(PLAIN % 1 + "\n  \n" + (PLAIN % 2).rstrip())
    result = produce(file, "-", "--partition", "1", stdin=PLAIN % 3)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line["event"]["id"] for line in arrived()] == ["1", "2", "3"]
    assert {line["partition"] for line in arrived()} == {1}


def test_files_of_windows(produce, arrived, tmp_path):
    """A byte order mark and CR LF do not belong to a line; a file in UTF-16 is one error with what to do."""
    file = tmp_path / "events"
    file.write_bytes(b"\xef\xbb\xbf" + (PLAIN % 1 + PLAIN % 2).replace("\n", "\r\n").encode())
    result = produce(file, "--partition", "0")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line["event"]["id"] for line in arrived()] == ["1", "2"]
    for encoding in ("utf-16-le", "utf-16-be"):
        wrong = produce(stdin=f"\ufeff{PLAIN % 3}{PLAIN % 4}".encode(encoding))
        assert (wrong.exit_code, wrong.stderr.count("\n")) == (1, 1)
        assert "stdin:1: the file must be UTF-8, got UTF-16; save it as UTF-8" in wrong.stderr
    assert len(arrived()) == 2


def test_bad_lines_are_reported_and_skipped(produce, arrived):
    """Each bad line is reported with its number and reason, the others are sent; exit code 1."""
    stdin = PLAIN % 1 + "nonsense\n" + PLAIN % "" + '{"value":"\x1b"}\n' + PLAIN % 2
    result = produce(stdin=stdin)
    assert result.exit_code == 1
    errors = result.stderr.splitlines()
    assert "stdin:2: the line must be a JSON object" in errors[0]
    assert "stdin:3: not a valid CloudEvent: id: must not be empty" in errors[1]
    assert "stdin:4" in errors[2]
    assert errors[-1].endswith("3 bad lines; 2 records delivered")
    assert sorted(line["event"]["id"] for line in arrived()) == ["1", "2"]


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ({"topic": "a\0b"}, "a topic name must have 1 to 249 letters, digits, '.', '_' and '-' only, got 'a"),
        ({"topic": "x" * 600}, "a topic name must have 1 to 249 letters"),
        ({"topic": ""}, "a topic name must have 1 to 249 letters"),
        ({"timestamp": 2**63}, "timestamp must be an integer of 64 bits"),
        ({"partition": 2**31}, "partition must be an integer of 32 bits"),
    ],
)
def test_a_place_that_no_record_has_is_a_bad_line(run, mock_cluster, topic, arrived, member, reason):
    """A topic name, a timestamp or a partition that Kafka cannot have is a bad line; the others are sent."""
    line = {"topic": topic, "value": "x"}
    stdin = "".join(json.dumps({**line, **change}) + "\n" for change in ({}, member, {}))
    result = run("produce", "-b", mock_cluster, "--keep-partitions", "--keep-timestamps", stdin=stdin)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"stdin:2: {reason}" in result.stderr
    assert result.stderr.endswith("1 bad line; 2 records delivered\n")
    assert [line["value"] for line in arrived()] == ["x", "x"]


def test_strict_stops_at_the_first_bad_line(produce, arrived):
    """With --strict the lines before the first bad line are sent, and no others."""
    result = produce("--strict", stdin=PLAIN % 1 + "nonsense\n" + PLAIN % 2)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 2
    assert [line["event"]["id"] for line in arrived()] == ["1"]


def test_topics_of_lines(run, mock_cluster, topic):
    """A line is sent to its topic, or to that of -t; a line without a topic is bad."""
    other = f"{topic}-other"
    line = json.dumps({"topic": other, "key": "k", "value": "v"}) + "\n"
    result = run("produce", "-b", mock_cluster, stdin=line + PLAIN % 1)
    assert result.exit_code == 1
    assert "stdin:2: the topic is missing: pass -t" in result.stderr
    assert [x["value"] for x in lines(run("consume", "-b", mock_cluster, "-t", other).stdout)] == ["v"]
    assert run("produce", "-b", mock_cluster, "-t", topic, stdin=line).exit_code == 0
    assert [x["value"] for x in lines(run("consume", "-b", mock_cluster, "-t", topic).stdout)] == ["v"]


def test_partitions_and_timestamps_are_kept_on_demand(produce, arrived):
    """The partition and timestamp of a line are used with --keep-partitions and --keep-timestamps only."""
    line = json.dumps({"partition": 3, "timestamp": 1000, "key": None, "value": "v"})
    assert produce("--keep-partitions", "--keep-timestamps", stdin=line).exit_code == 0
    assert [(x["partition"], x["timestamp"]) for x in arrived()] == [(3, 1000)]
    assert produce("--partition", "2", stdin=line).exit_code == 0
    [_, new] = sorted(arrived(), key=lambda x: x["timestamp"])
    assert new["partition"] == 2
    assert new["timestamp"] > 10**12


def test_a_timestamp_that_the_client_would_replace_is_bad(produce, arrived):
    """The client replaces the timestamp 0 by the current time, so a line that must keep it is a bad line."""
    line = json.dumps({"timestamp": 0, "key": None, "value": "v"})
    result = produce("--keep-timestamps", stdin=line)
    assert result.exit_code == 1
    assert "stdin:1: the timestamp must not be 0, which the client replaces by" in result.stderr
    assert arrived() == []
    assert produce(stdin=line).exit_code == 0
    assert len(arrived()) == 1


def test_a_missing_partition_is_bad_usage(produce, arrived):
    """A partition that the topic does not have is refused before a line is read."""
    result = produce("--partition", "77", stdin=PLAIN % 1)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "has no partition 77; it has partitions 0 to 3" in result.stderr
    assert arrived() == []


def test_too_large_for_the_client(produce, arrived):
    """A record that the client refuses is reported with its line, the others are sent; exit code 3."""
    large = json.dumps({"key": None, "value": "x" * 3000})
    result = produce("-X", "message.max.bytes=2000", stdin=f"{large}\n{PLAIN % 1}")
    assert result.exit_code == 3
    assert "stdin:1: not delivered: Unable to produce" in result.stderr or "too large" in result.stderr
    assert "1 of 2 records not delivered; a record must fit message.max.bytes of the client" in result.stderr
    assert len(arrived()) == 1


def test_an_unreachable_broker(run):
    """A broker that refuses connections is reported soon, with its address and advice; exit code 3."""
    result = run("produce", "-b", "127.0.0.1:1", "-t", "x", stdin=PLAIN % 1)
    assert result.exit_code == 3
    assert "broker 127.0.0.1:1 refuses connections: " in result.stderr
    assert "Connection refused" in result.stderr
    assert "check -b" in result.stderr


def test_settings_are_shown_without_secrets(run, monkeypatch):
    """--show-config prints the settings in force by source, with secrets masked, and does nothing else."""
    monkeypatch.setenv("CE_KAFKA_SASL_PASSWORD", "hunter22")
    result = run("produce", "-b", "a:1", "--show-config", "-X", "acks=1", "-X", "linger.ms=7")
    assert result.exit_code == 0
    assert "hunter22" not in result.output
    assert "# environment\nsasl.password=********\n" in result.stdout
    assert "# command line\nacks=1\nbootstrap.servers=a:1\nlinger.ms=7\n" in result.stdout


@pytest.mark.parametrize("command", [["produce", "--source", "/", "--type", "t"], ["replay", "--send"]])
@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ([], "true"),
        (["acks=all"], "true"),
        (["request.required.acks=-1"], "true"),
        (["max.in.flight=1", "retries=9"], "true"),
        (["enable.idempotence=false"], "false"),
        (["acks=1"], None),
        (["request.required.acks=0"], None),
        (["max.in.flight=6"], None),
        (["max.in.flight.requests.per.connection=10"], None),
        (["retries=0"], None),
        (["message.send.max.retries=0"], None),
        (["queuing.strategy=lifo"], None),
    ],
)
def test_retries_write_no_record_twice_unless_a_setting_excludes_it(run, command, settings, shown):
    """The client is idempotent, unless the user's settings exclude this; the client accepts the result."""
    chosen = [part for setting in settings for part in ("-X", setting)]
    result = run(*command, "-b", "127.0.0.1:1", "-t", "t", *chosen, "--show-config")
    config = dict(line.split("=") for line in result.stdout.splitlines() if not line.startswith("#"))
    assert config.get("enable.idempotence") == shown
    Producer(config)


def test_secrets_are_in_no_error(run):
    """An error of the client that quotes a secret is printed without it."""
    words = "-X sasl.password=hunter22 -X ssl.key.pem=hunter33 -X security.protocol=hunter22"
    result = run("produce", "-b", "a:1", "-t", "x", *ONE, *words.split())
    assert result.exit_code == 2
    assert "security.protocol" in result.stderr
    assert "hunter" not in result.output


def test_a_full_queue_is_waited_for(produce, arrived):
    """More lines than fit into the client's queue are sent in order."""
    stdin = "".join(PLAIN % number for number in range(500))
    result = produce("--partition", "0", "-X", "queue.buffering.max.messages=10", stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line["event"]["id"] for line in arrived()] == [str(number) for number in range(500)]


def test_places_are_printed(run, mock_cluster, topic):
    """-v prints the topic, partition and offset of each record on stdout."""
    result = run("produce", "-b", mock_cluster, "-t", topic, "--partition", "1", "-v", stdin=PLAIN % 1 * 2)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [f"{topic}[1]@0", f"{topic}[1]@1"]


def test_a_place_is_printed_while_stdin_is_quiet(mock_cluster, topic):
    """It does not wait for the next line: a person types lines, and a program may write one in an hour."""
    process = start("produce", "-b", mock_cluster, "-t", topic, "--partition", "1", "-v", bufsize=0)
    stop = Timer(60, process.kill)
    stop.start()
    with process:
        for number in range(3):
            process.stdin.write((PLAIN % number).encode())
            assert process.stdout.readline().decode() == f"{topic}[1]@{number}\n"
        process.stdin.write((PLAIN % 3).rstrip().encode())
        process.stdin.close()
        assert (process.stdout.read().decode(), process.stderr.read()) == (f"{topic}[1]@3\n", b"")
    stop.cancel()
    assert process.returncode == 0


def test_lines_before_an_error_of_any_kind_are_delivered(mock_cluster, topic, arrived):
    """If the reason of a bad line cannot be printed, the lines before it are delivered all the same."""
    read, write = os.pipe()
    os.close(read)
    process = start("produce", "-b", mock_cluster, "-t", topic, "-X", "linger.ms=5000", stderr=write)
    os.close(write)
    process.communicate((PLAIN % 1 + "nonsense\n").encode(), timeout=60)
    assert process.returncode == 141
    assert [line["event"]["id"] for line in arrived()] == ["1"]


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 200_000])
def test_lines_longer_than_a_pipe(produce, arrived, tmp_path, size):
    """Each arrives completely, wherever the parts that are read end."""
    event = '{"specversion":"1.0","id":"%s","source":"/","type":"t","data":"%s"}'
    first, second = (event % (number, "x" * (size - len(event % (number, "")) - 1)) for number in (1, 2))
    file = tmp_path / "events"
    file.write_text(f"{first}\n{second}\n" + PLAIN % 3)
    result = produce(file, "-", "--partition", "0", stdin=f"{first}\n{second}")
    assert (result.exit_code, result.stderr) == (0, "")
    events = [line["event"] for line in arrived()]
    assert [event["id"] for event in events] == ["1", "2", "3", "1", "2"]
    assert len(json.dumps(events[0], separators=(",", ":"))) >= size - 1


@pytest.mark.parametrize(
    ("document", "filter"),
    [
        ('{\n "specversion": "1.0"\n}\n', "."),
        ('{"specversion": "1.0",\n "id": "1"}\n', "."),
        ("[\n{}\n]\n", ".[]"),
    ],
)
@pytest.mark.parametrize("command", ["produce", "decode"])
def test_json_of_several_lines_has_one_hint(run, mock_cluster, topic, tmp_path, document, filter, command):
    """A pretty-printed file has one hint with its name, not an error for each line."""
    (file := tmp_path / "pretty.json").write_text(document)
    options = ["-b", mock_cluster, "-t", topic] if command == "produce" else []
    result = run(command, *options, file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        f"cloudevents-kafka: {file}:1: each line must be a JSON object, got JSON of"
    )
    assert result.stderr.endswith(f"jq -c {filter} {file}\n")
    assert result.stderr.count("\n") == 1


def test_missing_options_are_reported_together(run):
    """What one event needs, the topic and the broker are in one message."""
    result = run("produce", "--data", "1")
    assert result.exit_code == 2
    assert all(name in result.stderr for name in ("-t TOPIC", "--source", "--type", "-b host:port"))
    assert result.stderr.count("\n") == 1
