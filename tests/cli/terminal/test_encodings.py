"""Terminals and pipes with another encoding than UTF-8: each output is shown, and JSON stays JSON."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.cli.app import app
from tests.cli.command_line import send
from tests.support.cases import each

ENCODINGS = ["ascii", "latin-1", "cp1252", "cp437", "koi8-r", "utf-8"]
TEXT = "é€ж\N{GRINNING FACE}"


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command, and of each group."""
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield *path, name


@pytest.fixture(params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Streams:
    """Run a command in this process with stdout and stderr in an encoding."""

    def __init__(self, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._encoding = encoding
        self._monkeypatch = monkeypatch

    def run(self, *words: str) -> tuple[str, str, Any]:
        out, err = io.BytesIO(), io.BytesIO()
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, self._encoding))
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, self._encoding))
            with pytest.raises(SystemExit) as ended:
                app(list(words), prog_name="cloudevents-kafka")
            sys.stdout.flush()
            sys.stderr.flush()
            texts = out.getvalue().decode(self._encoding), err.getvalue().decode(self._encoding)
        return *texts, ended.value.code


@pytest.fixture
def streams(encoding: str, monkeypatch: pytest.MonkeyPatch) -> Streams:
    return Streams(encoding, monkeypatch)


@each("words", list(commands(app)), ids=" ".join)
def test_help(words: tuple[str, ...], streams: Streams, encoding: str) -> None:
    """The help of each command is that in UTF-8, with escapes for what the encoding does not have."""
    out, err, code = streams.run(*words, "--help")
    assert (code, err) == (0, "")
    expected, _, _ = Streams("utf-8", streams._monkeypatch).run(*words, "--help")
    assert out == expected.encode(encoding, "backslashreplace").decode(encoding)


def test_errors(streams: Streams, encoding: str) -> None:
    """An error is a message on stderr, of this package and of click."""
    for words in (["decode", "--data-file", TEXT], ["decode", f"--{TEXT}"], [TEXT], ["decode", TEXT]):
        out, err, code = streams.run(*words)
        assert (out, code) == ("", 2)
        assert err
    assert TEXT.encode(encoding, "backslashreplace").decode(encoding) in streams.run(TEXT)[1]


@pytest.fixture
def filled(mock_cluster: str, topic: str) -> list[str]:
    event = Event(id=TEXT, source="/", type="t", data={TEXT: [TEXT]})
    send(mock_cluster, topic, to_record(event, key=TEXT), Record(value=TEXT.encode()))
    return ["consume", "-b", mock_cluster, "-t", topic, "-p", "0"]


def test_json_lines(filled: list[str], streams: Streams, encoding: str) -> None:
    """JSON lines have the same values in each encoding, and are UTF-8 or ASCII."""
    out, _, code = streams.run(*filled, "-o", "json")
    assert code == 0
    first, second = map(json.loads, out.splitlines())
    assert (first["key"], first["event"]["data"], second["value"]) == (TEXT, {TEXT: [TEXT]}, TEXT)
    assert encoding == "utf-8" or out.isascii()


def test_text(filled: list[str], streams: Streams, encoding: str) -> None:
    """The text of events has what the encoding has, and escapes for the rest."""
    out, _, _ = streams.run(*filled, "-o", "text")
    assert out.count(TEXT.encode(encoding, "backslashreplace").decode(encoding)) >= 4


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["protocol", "decode", "--hex", "0000000a00120000000000070000", "-o", "json"], "fields"),
        (["decode", "--key", TEXT, "-o", "json"], "key"),
    ],
)
def test_json_of_other_commands(words: list[str], shown: str, streams: Streams, encoding: str) -> None:
    """One object of JSON is one, too."""
    out, _, _ = streams.run(*words)
    assert shown in json.loads(out)
    assert encoding == "utf-8" or out.isascii()


@each(
    "env",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "cp1252:strict"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=str,
)
def test_help_of_a_process(env: dict[str, str]) -> None:
    """A process whose environment sets the encoding prints its help."""
    done = subprocess.run(
        [sys.executable, "-m", "cloudevents_kafka", "--help"],
        env={**{name: value for name, value in os.environ.items() if name != "PYTHONUTF8"}, **env},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"then -X. A later" in done.stdout
    assert b"\\u2026" in done.stdout or b"\x85" in done.stdout
