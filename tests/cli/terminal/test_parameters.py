"""Types of parameters: text is UTF-8, seconds are finite, files and values are any bytes."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from cloudevents_kafka.cli import app as root
from cloudevents_kafka.cli.commands import protocol, table
from cloudevents_kafka.cli.terminal.parameters import BYTES, FILE, PAIR, PairType, SecondsType, TextType
from cloudevents_kafka.protocol.client import MAX_SECONDS
from tests.cli.command_line import HEADERS, lines
from tests.support.cases import each
from tests.support.samples import one_in

NOT_UTF8 = "\udcff"  # what Python makes of the byte ff
GROUPS = {"protocol": protocol, "table": table}
COMMANDS = [
    *((name,) for name in root.COMMANDS if name not in GROUPS),
    *((group, name) for group, module in GROUPS.items() for name in module.COMMANDS),
]


def loaded(words):
    group = GROUPS[words[0]].command if len(words) == 2 else root.app
    return group.get_command(None, words[-1])


def of_type(kind):
    """Return the parameters of a type, of all commands."""
    return [
        pytest.param(words, parameter, id=f"{'-'.join(words)}-{parameter.name}")
        for words in COMMANDS
        for parameter in loaded(words).params
        if isinstance(parameter.type, kind)
    ]


@each(("words", "parameter"), of_type(click.ParamType))
def test_every_parameter_has_a_checked_type(words, parameter):
    """No parameter has click's unchecked string type."""
    assert parameter.type is not click.STRING


def words_with(words, parameter, text):
    """Return the words of a command with a parameter; an argument follows those before it."""
    if isinstance(parameter, click.Option):
        return [*words, f"{parameter.opts[-1]}={text}"]
    arguments = [other.name for other in loaded(words).params if isinstance(other, click.Argument)]
    return [*words, *["x"] * arguments.index(parameter.name), text]


@pytest.mark.parametrize("text", [NOT_UTF8, f"a={NOT_UTF8}", "\ud800"], ids=ascii)
@each(("words", "parameter"), of_type(TextType))
def test_text_is_utf8(run, words, parameter, text):
    """Text that is not UTF-8 is bad usage; the error does not quote it, since it may be a secret."""
    result = run(*words_with(words, parameter, text))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the text must be UTF-8" in result.stderr
    assert "udc" not in result.stderr


@each(("words", "parameter"), of_type(PairType))
def test_names_of_headers_are_utf8(run, words, parameter):
    """The name of a header must be UTF-8, too."""
    result = run(*words_with(words, parameter, f"ce_{NOT_UTF8}=a"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the text must be UTF-8" in result.stderr


def test_bytes_are_any(run, tmp_path):
    """Values, keys and file names are any bytes, and stay unchanged."""
    result = run(
        "decode", *HEADERS, "--key", NOT_UTF8, "--header", f"x={NOT_UTF8}", "--value", NOT_UTF8, "-o", "json"
    )
    [explanation] = lines(result.stdout)
    assert (result.exit_code, explanation["key"], explanation["event"]["data_base64"]) == (
        0,
        {"base64": "/w=="},
        "/w==",
    )
    file = tmp_path / f"{NOT_UTF8}.jsonl"
    file.write_text('{"key":"x"}\nnonsense\n')
    assert "/\\udcff.jsonl:2: the line must be a JSON object" in run("decode", file).stderr
    file.write_text("0000000a00120000000000070000")
    [frame] = lines(run("protocol", "decode", "-o", "json", file).stdout)
    assert frame["where"].endswith("/\\udcff.jsonl:1")


AS_BYTES = [
    [b"produce", b"-b", b"127.0.0.1:1", b"-t", b"\xff"],
    [b"consume", b"-b", b"\xff:1", b"-t", b"t"],
    [b"consume", b"-b", b"127.0.0.1:1", b"-t", b"t", b"--group", b"\xff"],
    [b"protocol", b"api-versions", b"-b", b"\xff:1"],
    [b"protocol", b"produce", b"-b", b"127.0.0.1:1", b"t", b"--header", b"\xff", b"x"],
    [b"decode", b"-o", b"json", *(part.encode() for part in HEADERS), b"--header", b"ce_\xff=\xfe"],
]


@pytest.mark.parametrize("words", one_in(3, AS_BYTES), ids=lambda words: ascii(words[-3:]))
def test_arguments_as_bytes(words):
    """Arguments that the operating system passes as bytes are checked in the same way."""
    result = subprocess.run(
        [sys.executable, "-m", "cloudevents_kafka", *words], capture_output=True, check=False, timeout=30
    )
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"the text must be UTF-8" in result.stderr


@pytest.mark.parametrize(
    "name", ["CE_KAFKA_GROUP_ID", "CE_KAFKA_BOOTSTRAP_SERVERS", "CE_KAFKA_SASL_PASSWORD"]
)
@pytest.mark.parametrize("command", ["consume", "produce", "pipeline"])
def test_settings_are_utf8(run, monkeypatch, command, name):
    """A variable that is not UTF-8 is bad usage; the client would abort the process."""
    if command == "pipeline":
        pytest.importorskip("pyspark")
    monkeypatch.setenv(name, f"hunter22{NOT_UTF8}")
    more = ["-o", "x"] if command == "pipeline" else ["-b", "127.0.0.1:1"]
    result = run(command, "-t", "t", *more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{name} must be UTF-8" in result.stderr
    assert "hunter22" not in result.stderr


SECONDS = ["0", "-1", "nan", "inf", "-inf", "1e300", "2000001", "x", ""]


@pytest.mark.parametrize("text", SECONDS)
@each(("words", "parameter"), of_type(SecondsType))
def test_seconds(run, words, parameter, text):
    """Seconds are a finite number above 0 (--interval: from 0), at most the limit of the system."""
    if (parameter.name, text) == ("interval", "0"):
        assert parameter.type_cast_value(None, "0") == 0
        return
    result = run(*words, f"--{parameter.name}={text}", *(["x:1"] if "protocol" in words else []))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"invalid value for '--{parameter.name}'" in result.stderr


def test_options_in_seconds():
    """All floating-point options are seconds, and their maximum is that of the protocol client."""
    floats = [case.values[1] for case in of_type(click.types.FloatParamType)]
    assert {parameter.name for parameter in floats} == {"timeout", "interval"}
    assert {type(parameter.type) for parameter in floats} == {SecondsType}
    assert {parameter.type.max for parameter in floats} == {MAX_SECONDS}


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "é" * 64, ".a"])
def test_invalid_host_names(run, host):
    """A broker with an invalid host name is reported with advice."""
    result = run("protocol", "api-versions", "-b", f"{host}:9092")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "cannot connect" in result.stderr
    assert "check -b" in result.stderr


def test_types_accept_converted_values():
    """A type returns a value that it has converted before, such as a default, unchanged."""
    assert BYTES.convert(b"\xff", None, None) == b"\xff"
    assert PairType(BYTES).convert(("a", None), None, None) == ("a", None)
    assert FILE.convert("-", None, None) == "-"


def test_pairs():
    """The first equals sign divides a pair; the name must not be empty."""
    assert PAIR.convert("a=b=c", None, None) == ("a", "b=c")
    assert PAIR.convert("a=", None, None) == ("a", "")
    assert PairType(BYTES, allow_null=True).convert("a", None, None) == ("a", None)
    for text in ("=b", "", "a"):
        with pytest.raises(click.BadParameter, match="name=value"):
            PAIR.convert(text, None, None)


@each(
    "words",
    [
        ["produce", "--id", "1"],
        ["replay"],
        ["report", "--html", "x.html"],
        ["groups", "reset", "--group", "g", "--to", "earliest"],
    ],
)
def test_one_topic(run, words):
    """A second -t is refused by commands that take one topic, since one of both would not be used."""
    result = run(*words, "-b", "127.0.0.1:1", "-t", "orders", "-t", "b2")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "-t must be passed once, got 'orders' and 'b2'; run the command for each" in result.stderr


@each("words", [["replay"], ["report"], ["stats"], ["consume"], ["groups", "reset"]])
def test_one_group(run, words):
    """A second --group is refused by commands that take one group."""
    result = run(*words, "-b", "127.0.0.1:1", "-t", "orders", "--group", "a", "--group", "b")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--group must be passed once, got 'a' and 'b'; run the command for each" in result.stderr
