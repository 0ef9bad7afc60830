"""What a command line's words may be: text is UTF-8, seconds are finite, files and values are any bytes."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from cli.calling import lines

from cloudevents_kafka.cli import app as root
from cloudevents_kafka.cli.commands import protocol
from cloudevents_kafka.cli.terminal import BYTES, FILE, HeaderType, SecondsType, TextType
from cloudevents_kafka.protocol.client.deadline import LONGEST

NO_TEXT = "\udcff"  # what Python makes of the byte ff
COMMANDS = [
    *((name,) for name in root.COMMANDS if name != "protocol"),
    *(("protocol", name) for name in protocol.COMMANDS),
]
GOOD = [
    part for name in ("specversion=1.0", "id=1", "source=/", "type=t") for part in ("--header", f"ce_{name}")
]


def loaded(words):
    group = protocol.command if len(words) == 2 else root.app
    return group.get_command(None, words[-1])


def of_type(kind):
    """Give each command's parameters of a type."""
    return [
        pytest.param(words, parameter, id=f"{'-'.join(words)}-{parameter.name}")
        for words in COMMANDS
        for parameter in loaded(words).params
        if isinstance(parameter.type, kind)
    ]


@pytest.mark.parametrize(("words", "parameter"), of_type(click.ParamType))
def test_each_word_is_held_to_something(words, parameter):
    """No parameter takes whatever it gets."""
    assert parameter.type is not click.STRING


def given(words, parameter, text):
    """Give the words of a command with a parameter; where it is an argument, after those before it."""
    if isinstance(parameter, click.Option):
        return [*words, f"{parameter.opts[-1]}={text}"]
    arguments = [other.name for other in loaded(words).params if isinstance(other, click.Argument)]
    return [*words, *["x"] * arguments.index(parameter.name), text]


@pytest.mark.parametrize(("words", "parameter"), of_type(TextType))
@pytest.mark.parametrize("text", [NO_TEXT, f"a={NO_TEXT}", "\ud800"], ids=ascii)
def test_text_is_utf8(run, words, parameter, text):
    """Text that is none is bad usage, which does not repeat it, as it may be a secret."""
    done = run(*given(words, parameter, text))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "it is not UTF-8, as text must be" in done.stderr
    assert "udc" not in done.stderr


@pytest.mark.parametrize(("words", "parameter"), of_type(HeaderType))
def test_names_of_headers_are_utf8(run, words, parameter):
    """The name of a header is text, too."""
    done = run(*given(words, parameter, f"ce_{NO_TEXT}=a"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "it is not UTF-8" in done.stderr


def test_bytes_are_any(run, tmp_path):
    """Values, keys and names of files are bytes: those that are no UTF-8 are taken as they are."""
    done = run(
        "decode", *GOOD, "--key", NO_TEXT, "--header", f"x={NO_TEXT}", "--value", NO_TEXT, "-o", "json"
    )
    [told] = lines(done.stdout)
    assert (done.exit_code, told["key"], told["event"]["data_base64"]) == (0, {"base64": "/w=="}, "/w==")
    file = tmp_path / f"{NO_TEXT}.jsonl"
    file.write_text('{"key":"x"}\nnonsense\n')
    assert "/\\udcff.jsonl:2: the line must be a JSON object" in run("decode", file).stderr
    file.write_text("0000000a00120000000000070000")
    [frame] = lines(run("protocol", "decode", "--json", file).stdout)
    assert frame["where"].endswith("/\\udcff.jsonl:1")


AS_BYTES = [
    [b"produce", b"-b", b"127.0.0.1:1", b"-t", b"\xff"],
    [b"consume", b"-b", b"\xff:1", b"-t", b"t"],
    [b"consume", b"-b", b"127.0.0.1:1", b"-t", b"t", b"--group", b"\xff"],
    [b"protocol", b"api-versions", b"\xff:1"],
    [b"protocol", b"produce", b"127.0.0.1:1", b"t", b"--header", b"\xff", b"x"],
    [b"decode", b"-o", b"json", *(part.encode() for part in GOOD), b"--header", b"ce_\xff=\xfe"],
]


@pytest.mark.parametrize("words", AS_BYTES, ids=lambda words: ascii(words[-3:]))
def test_bytes_of_the_system(words):
    """The same of the bytes that the system gives."""
    done = subprocess.run(
        [sys.executable, "-m", "cloudevents_kafka", *words], capture_output=True, check=False, timeout=30
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"it is not UTF-8, as text must be" in done.stderr


@pytest.mark.parametrize(
    "name", ["CE_KAFKA_GROUP_ID", "CE_KAFKA_BOOTSTRAP_SERVERS", "CE_KAFKA_SASL_PASSWORD"]
)
@pytest.mark.parametrize("command", ["consume", "produce", "pipeline"])
def test_settings_are_utf8(run, monkeypatch, command, name):
    """A setting in the environment that is no text is bad usage; the client would end the process."""
    if command == "pipeline":
        pytest.importorskip("pyspark")
    monkeypatch.setenv(name, f"hunter22{NO_TEXT}")
    more = ["-o", "x"] if command == "pipeline" else ["-b", "127.0.0.1:1"]
    done = run(command, "-t", "t", *more)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{name} is not UTF-8" in done.stderr
    assert "hunter22" not in done.stderr


SECONDS = ["0", "-1", "nan", "inf", "-inf", "1e300", "2000001", "x", ""]


@pytest.mark.parametrize(("words", "parameter"), of_type(SecondsType))
@pytest.mark.parametrize("text", SECONDS)
def test_seconds(run, words, parameter, text):
    """Seconds are a finite number above 0, or with --interval 0, and no more than the system counts."""
    if (parameter.name, text) == ("interval", "0"):
        assert parameter.type_cast_value(None, "0") == 0
        return
    done = run(*words, f"--{parameter.name}={text}", *(["x:1"] if "protocol" in words else []))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"Invalid value for '--{parameter.name}'" in done.stderr


def test_which_options_are_seconds():
    """All numbers that need not be whole are seconds; what they may be, the protocol client can wait for."""
    floats = [case.values[1] for case in of_type(click.types.FloatParamType)]
    assert {parameter.name for parameter in floats} == {"timeout", "interval"}
    assert {type(parameter.type) for parameter in floats} == {SecondsType}
    assert {parameter.type.max for parameter in floats} == {LONGEST}


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "é" * 64, ".a"])
def test_no_host(run, host):
    """A broker whose name cannot be a host's is told with what to check."""
    done = run("protocol", "api-versions", f"{host}:9092")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "cannot connect" in done.stderr
    assert "check BROKER" in done.stderr


def test_types_take_what_they_gave():
    """Click hands a type what it gave before, such as a default."""
    assert BYTES.convert(b"\xff", None, None) == b"\xff"
    assert HeaderType().convert(("a", None), None, None) == ("a", None)
    assert FILE.convert("-", None, None) == "-"
