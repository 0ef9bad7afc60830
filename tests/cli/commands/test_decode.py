"""`decode` says what a record is and why."""

from __future__ import annotations

import json

import pytest

from cloudevents_kafka import Event, decode, to_record
from cloudevents_kafka.cli.records import write_line

GOOD = [
    "--header",
    "ce_specversion=1.0",
    "--header",
    "ce_id=1",
    "--header",
    "ce_source=/",
    "--header",
    "ce_type=t",
]
EVENT = Event(id="1", source="/", type="t", sampledrate=5, partitionkey="p", time="2026-11-21T12:00:00Z")


def test_an_event_is_explained(run):
    """An event's mode, the reason for it, its attributes and their types are told; exit code 0."""
    done = run(
        "decode",
        *GOOD,
        "--header",
        "ce_sampledrate=5",
        "--header",
        "x=y",
        "--header",
        "n",
        "--value",
        "a\x1b",
    )
    assert done.exit_code == 0
    words = [line.split() for line in done.stdout.splitlines()]
    assert ["verdict", "event"] in words
    assert ["mode", "binary"] in words
    assert ["sampledrate", "Integer", "5"] in words
    assert ["source", "URI-reference", "/"] in words
    assert ["data", "2", "bytes", "a\\x1b"] in words
    assert ["header", "x", "=", "y"] in words
    assert ["header", "n", "is", "null"] in words
    assert done.stderr == ""


def test_advice_is_given(run):
    """What an event does otherwise than recommended is told with its clause; it is an event all the same."""
    headers = [*GOOD[:-1], "ce_type=com.example.t"]
    assert "advice" not in run("decode", *headers).stdout
    late = ["--header", "ce_time=2026-01-02T00:00:00Z", "--header", "ce_expirytime=2026-01-01T00:00:00Z"]
    done = run("decode", *headers, *late, "--value", "x" * 70_000)
    assert done.exit_code == 0
    lines = [line for line in done.stdout.splitlines() if line.split()[:1] == ["advice"]]
    assert ["X-16" in lines[0], "S-02" in lines[1]] == [True, True]
    told = json.loads(run("decode", *headers, *late, "-o", "json").stdout)
    assert [(p["attribute"], p["clause"]) for p in told["advice"]] == [("expirytime", "X-16")]


def test_a_broken_event_is_explained(run):
    """Every broken rule is told with its clause; exit code 1."""
    done = run("decode", *GOOD[:-2], "--header", "ce_type=", "--header", "ce_time=x", "-o", "json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["verdict"] == "broken-event"
    assert [(p["attribute"], p["clause"], p["section"]) for p in told["problems"]] == [
        ("type", "R-06", "core: type"),
        ("time", "T-12", "core: Type System, Timestamp"),
    ]
    assert told["lenient"]["verdict"] == "broken-event"
    text = run("decode", *GOOD, "--header", "ce_time=x")
    assert "T-12" in text.stdout
    assert "ce_time = x" in text.stdout


def test_lenient_reading_is_told(run):
    """A record that lenient reading takes says so, and what it lets pass."""
    headers = [text.replace("ce_", "ce-") for text in GOOD]
    told = json.loads(run("decode", *headers, "-o", "json").stdout)
    assert told["verdict"] == "not-an-event"
    assert "ce_, not ce-" in told["error"]["reason"]
    assert told["lenient"]["verdict"] == "event"
    assert told["lenient"]["event"]["id"] == "1"
    assert {problem["clause"] for problem in told["lenient"]["tolerated"]} == {"K-05"}
    assert "an event, tolerating:" in run("decode", *headers).stdout


@pytest.mark.parametrize(
    ("content_type", "verdict"),
    [
        ("application/cloudevents+xml", "unsupported-format"),
        ("application/cloudevents-batch+json", "batch"),
        ("text/plain", "not-an-event"),
    ],
)
def test_verdicts(run, content_type, verdict):
    """What is no event has one of the words; exit code 1."""
    done = run("decode", "--header", f"content-type={content_type}", "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (1, verdict)


@pytest.mark.parametrize(
    "form", [("binary", None), ("structured", "json"), ("structured", "avro"), ("structured", "protobuf")]
)
def test_lines_of_consume_are_explained(run, form):
    """A line of `consume` is explained by its record, in any mode and format."""
    mode, format = form
    line = write_line(decode(to_record(EVENT, mode=mode, format=format, key=b"\xff")))
    done = run("decode", "-o", "json", given=line)
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert told["event"]["sampledrate"] == 5
    assert told["types"] == {
        "specversion": "String",
        "id": "String",
        "source": "URI-reference",
        "type": "String",
        "time": "Timestamp",
        "sampledrate": "Integer",
        "partitionkey": "String",
    }
    assert told["sniffed"]["format"] == format
    assert told["key"] == {"base64": "/w=="}


def test_records_in_hex_and_files(run, tmp_path):
    """Values may be given in hex, as base64 and from files, byte for byte."""
    file = tmp_path / "value"
    file.write_bytes(b"\x00\xff")
    for arguments in (["--value-hex", "00 ff"], ["--value-file", file]):
        assert "AP8=" in run("decode", *GOOD, *arguments).stdout
    lines = tmp_path / "lines"
    lines.write_text('{"headers":{"a":{"hex":"ff"}},"value":null}\n\n{"key":"x"}\n')
    done = run("decode", lines, "-o", "json")
    assert (done.exit_code, len(done.stdout.splitlines())) == (1, 2)


BAD = [
    (["--value", "a", "--value-hex", "00"], None, "exclude each other"),
    (["--value-hex", "0"], None, "must be valid hex"),
    (["--value-file", "/not/there"], None, "/not/there"),
    (["/not/there"], None, "/not/there"),
    (["-", "--value", "x"], None, "FILES and the options of one record exclude each other"),
    ([], "", "a record is missing"),
]


def test_bad_lines_are_told_and_left_out(run, tmp_path):
    """Each line that is no record is told with its file and number; the others are explained; exit code 1."""
    event = write_line(decode(to_record(EVENT)))
    file = tmp_path / "lines"
    file.write_bytes(b'nonsense\x1b\n\n{"specversion":"1.0"}\n' + event)
    done = run("decode", "-", file, "-", "-o", "json", given=b'{"value":1}\n')
    assert done.exit_code == 1
    assert [json.loads(line)["verdict"] for line in done.stdout.splitlines()] == ["event"]
    told = done.stderr.splitlines()
    assert [line.split(": ")[:2] for line in told] == [
        ["cloudevents-kafka", where] for where in ("stdin:1", f"{file}:1", f"{file}:3")
    ]
    assert "value must be text" in told[0]
    assert "must be a JSON object" in told[1]
    assert 'not a record: it has no "value"' in told[2]
    assert "\x1b" not in done.stderr


def test_nothing_but_bad_lines(run):
    """Bad lines alone are bad data, not bad usage."""
    done = run("decode", given="nonsense\n")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("cloudevents-kafka: stdin:1: the line must be a JSON object")


@pytest.mark.parametrize(("arguments", "given", "reason"), BAD)
def test_bad_usage(run, arguments, given, reason):
    """What cannot be a record is bad usage, exit code 2, and says what is wrong."""
    done = run("decode", *arguments, given=given)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stdout == ""
