"""`decode` explains records."""

from __future__ import annotations

import json

import pytest

from cloudevents_kafka import Event, decode, to_record
from cloudevents_kafka.cli.records.json_lines import write_line
from tests.cli.command_line import HEADERS

EVENT = Event(id="1", source="/", type="t", sampledrate=5, partitionkey="p", time="2026-11-21T12:00:00Z")


def test_an_event_is_explained(run):
    """The explanation of an event has the mode, the reason for it, and typed attributes; exit code 0."""
    more = ["--header", "ce_sampledrate=5", "--header", "x=y", "--header", "n", "--value"]
    result = run("decode", *HEADERS, *more, "a\x1b")
    assert result.exit_code == 0
    words = [line.split() for line in result.stdout.splitlines()]
    assert ["verdict", "event"] in words
    assert ["mode", "binary"] in words
    assert ["sampledrate", "Integer", "5"] in words
    assert ["source", "URI-reference", "/"] in words
    assert ["data", "2", "bytes", "a\\x1b"] in words
    assert ["header", "x", "=", "y"] in words
    assert ["header", "n", "is", "null"] in words
    assert result.stderr == ""


def test_advice(run):
    """A recommendation that an event does not follow is shown with its clause; the exit code is 0."""
    headers = [*HEADERS[:-1], "ce_type=com.example.t"]
    assert "advice" not in run("decode", *headers).stdout
    late = ["--header", "ce_time=2026-01-02T00:00:00Z", "--header", "ce_expirytime=2026-01-01T00:00:00Z"]
    result = run("decode", *headers, *late, "--value", "x" * 70_000)
    assert result.exit_code == 0
    lines = [line for line in result.stdout.splitlines() if line.split()[:1] == ["advice"]]
    assert ["X-16" in lines[0], "S-02" in lines[1]] == [True, True]
    explanation = json.loads(run("decode", *headers, *late, "-o", "json").stdout)
    assert [(p["attribute"], p["clause"]) for p in explanation["advice"]] == [("expirytime", "X-16")]


def test_a_broken_event(run):
    """Every broken rule is shown with its clause; exit code 1."""
    result = run("decode", *HEADERS[:-2], "--header", "ce_type=", "--header", "ce_time=x", "-o", "json")
    assert result.exit_code == 1
    explanation = json.loads(result.stdout)
    assert explanation["verdict"] == "broken-event"
    assert [(p["attribute"], p["clause"], p["section"]) for p in explanation["problems"]] == [
        ("type", "R-06", "core: type"),
        ("time", "T-12", "core: Type System, Timestamp"),
    ]
    assert explanation["lenient"]["verdict"] == "broken-event"
    text = run("decode", *HEADERS, "--header", "ce_time=x")
    assert "T-12" in text.stdout
    assert "ce_time = x" in text.stdout


def test_lenient_decoding(run):
    """The result of lenient decoding is shown, with the problems that it tolerates."""
    headers = [text.replace("ce_", "ce-") for text in HEADERS]
    explanation = json.loads(run("decode", *headers, "-o", "json").stdout)
    assert explanation["verdict"] == "not-an-event"
    assert "ce_, not ce-" in explanation["error"]["reason"]
    assert explanation["lenient"]["verdict"] == "event"
    assert explanation["lenient"]["event"]["id"] == "1"
    assert {problem["clause"] for problem in explanation["lenient"]["tolerated"]} == {"K-05"}
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
    """A record that is not an event has a verdict; exit code 1."""
    result = run("decode", "--header", f"content-type={content_type}", "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["verdict"]) == (1, verdict)


@pytest.mark.parametrize(
    "form", [("binary", None), ("structured", "json"), ("structured", "avro"), ("structured", "protobuf")]
)
def test_lines_of_consume_are_explained(run, form):
    """The record of a line of `consume` is explained, in any mode and format."""
    mode, format = form
    line = write_line(decode(to_record(EVENT, mode=mode, format=format, key=b"\xff")))
    result = run("decode", "-o", "json", stdin=line)
    explanation = json.loads(result.stdout)
    assert result.exit_code == 0
    assert explanation["event"]["sampledrate"] == 5
    assert explanation["types"] == {
        "specversion": "String",
        "id": "String",
        "source": "URI-reference",
        "type": "String",
        "time": "Timestamp",
        "sampledrate": "Integer",
        "partitionkey": "String",
    }
    assert explanation["sniffed"]["format"] == format
    assert explanation["key"] == {"base64": "/w=="}


def test_records_in_hex_and_files(run, tmp_path):
    """Values are read from hexadecimal digits, base64 and files, byte for byte."""
    file = tmp_path / "value"
    file.write_bytes(b"\x00\xff")
    for arguments in (["--value-hex", "00 ff"], ["--value-file", file]):
        assert "AP8=" in run("decode", *HEADERS, *arguments).stdout
    lines = tmp_path / "lines"
    lines.write_text('{"headers":{"a":{"hex":"ff"}},"value":null}\n\n{"key":"x"}\n')
    result = run("decode", lines, "-o", "json")
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, 2)


BAD = [
    (["--value", "a", "--value-hex", "00"], None, "exclude each other"),
    (["--value-hex", "0"], None, "must be valid hex"),
    (["--value-file", "/not/there"], None, "/not/there"),
    (["/not/there"], None, "/not/there"),
    (["-", "--value", "x"], None, "FILES and the options of one record exclude each other"),
    ([], "", "a record is missing"),
]


def test_bad_lines_are_reported_and_skipped(run, tmp_path):
    """Each line without a record is reported with its file and number, the others are explained."""
    event = write_line(decode(to_record(EVENT)))
    file = tmp_path / "lines"
    file.write_bytes(b'nonsense\x1b\n\n{"specversion":"1.0"}\n' + event)
    result = run("decode", "-", file, "-", "-o", "json", stdin=b'{"value":1}\n')
    assert result.exit_code == 1
    assert [json.loads(line)["verdict"] for line in result.stdout.splitlines()] == ["event"]
    errors = result.stderr.splitlines()
    assert [line.split(": ")[:2] for line in errors] == [
        ["cloudevents-kafka", where] for where in ("stdin:1", f"{file}:1", f"{file}:3")
    ]
    assert "value must be text" in errors[0]
    assert "must be a JSON object" in errors[1]
    assert 'not a record: it has no "value"' in errors[2]
    assert "\x1b" not in result.stderr


def test_nothing_but_bad_lines(run):
    """Bad lines alone are bad data, not bad usage."""
    result = run("decode", stdin="nonsense\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("cloudevents-kafka: stdin:1: the line must be a JSON object")


@pytest.mark.parametrize(("arguments", "given", "reason"), BAD)
def test_bad_usage(run, arguments, given, reason):
    """Options that describe no record are bad usage, exit code 2, with the reason."""
    result = run("decode", *arguments, stdin=given)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stdout == ""
