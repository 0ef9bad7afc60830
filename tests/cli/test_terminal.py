"""Output on a terminal: text for people, progress, and no control characters."""

from __future__ import annotations

import os
import pty
import re
import socket
import subprocess
import sys
import termios
from typing import Any

import pytest

from cloudevents_kafka import Event, Record, to_record
from tests.cli.command_line import send

COLOR = re.compile(rb"\x1b\[[0-9;]*m")
EVENT = to_record(
    Event(id="1", source="/", type="t", datacontenttype="text/plain", data="\x1b[2J"), key=b"\x1b]0;x\x07"
)


def on_terminal(*args: str, **options: Any) -> tuple[bytes, bytes, int]:
    """Run the command line as `run_on_terminal` does."""
    return run_on_terminal("-m", "cloudevents_kafka", *args, **options)


def run_on_terminal(
    *args: str, stdout: bool = True, stderr: bool = True, width: int = 80, stdin: bytes = b"", **env: str
) -> tuple[bytes, bytes, int]:
    """Run Python with stdout or stderr on a terminal; return what it and pipes got, and the exit code.

    With ``stdin``, a person types it on the terminal.
    """
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, width))
    process = subprocess.Popen(
        [sys.executable, *args],
        stdin=end if stdin else subprocess.DEVNULL,
        stdout=end if stdout else subprocess.PIPE,
        stderr=end if stderr else subprocess.PIPE,
        env={
            **{name: os.environ[name] for name in os.environ if name != "COLUMNS"},
            "TERM": "xterm-256color",
            **env,
        },
    )
    os.close(end)
    if stdin:
        os.write(terminal, stdin)
    screen = b""
    try:
        while part := os.read(terminal, 65536):
            screen += part
    except OSError:  # Linux: the last one closed it
        pass
    os.close(terminal)
    piped = b"".join(part or b"" for part in process.communicate(timeout=30))
    return screen, piped, process.returncode


@pytest.fixture
def filled(mock_cluster, topic):
    send(mock_cluster, topic, EVENT, Record(value=b"\x1b[2J\xff\n\xc2\x9b2J"))
    return ["consume", "-b", mock_cluster, "-t", topic, "-p", "0"]


def test_text_in_color(filled):
    """Text on a terminal is in color, with control characters escaped."""
    screen, _, code = on_terminal(*filled)
    assert code == 0
    assert COLOR.search(screen)
    plain = COLOR.sub(b"", screen)
    assert b"\x1b" not in plain
    assert b"  data             \\x1b[2J\r\n" in plain
    assert b"key=\\x1b]0;x\\x07" in plain


def test_no_color(filled):
    """NO_COLOR and a terminal without colors are respected."""
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        screen, _, _ = on_terminal(*filled, **env)
        assert not re.search(rb"\x1b\[[0-9;]*3[0-9]", screen)
        assert b"  type             " in screen


@pytest.mark.parametrize("form", ["raw", "json"])
def test_forms_forced_on_a_terminal(filled, form):
    """Raw values and JSON lines on a terminal have no control characters."""
    screen, _, code = on_terminal(*filled, "-o", form)
    assert code == 0
    assert not re.search(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]", screen)
    assert b"\xc2\x9b" not in screen


def test_a_pipe_gets_json_and_no_progress(filled):
    """A pipe gets JSON lines only, even if stderr is a terminal."""
    screen, piped, _ = on_terminal(*filled, stdout=False)
    assert piped.startswith(b'{"topic":')
    assert COLOR.sub(b"", screen).strip() == b""
    _, piped, _ = on_terminal("consume", "-b", "127.0.0.1:1", "-t", "x", "--timeout", "1.5", stderr=False)
    assert piped.count(b"\n") == 1


def test_characters_that_stdout_cannot_encode():
    """Characters that stdout cannot encode are escaped, on a terminal and in a pipe."""
    for stdout in (True, False):
        output = on_terminal(
            "decode", "--header", "ce_id=\N{EURO SIGN}", stdout=stdout, PYTHONIOENCODING="ascii"
        )
        assert b"\\u20ac" in output[0] + output[1]
        assert b"Traceback" not in output[0]


def test_waiting_is_shown_on_a_terminal():
    """A terminal shows that the command waits for a broker that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = f"127.0.0.1:{silent.getsockname()[1]}"
        screen, _, code = on_terminal("consume", "-b", at, "-t", "x", "--timeout", "1.5")
    assert code == 3
    assert screen.startswith(f"waiting for broker {at} …\r\n".encode())


def test_frames_are_trees():
    """On a terminal a frame is a tree in color, of lines that fit; -o table and pipes have whole paths."""
    asked = ["protocol", "decode", "--hex", "0000000a00120000000000070000"]
    screen, _, code = on_terminal(*asked, width=50)
    plain = COLOR.sub(b"", screen).decode().splitlines()
    assert code == 0
    assert plain[2:4] == ["        header", "     4    request_api_key  int16    18  ApiVersio…"]
    assert all(len(line) <= 50 for line in plain)
    assert COLOR.search(screen)
    assert b"header.request_api_key" in on_terminal(*asked, "-o", "table")[0]
    assert b"header.request_api_key" in on_terminal(*asked, stdout=False)[1]


WAITING = """
import time
from cloudevents_kafka.cli.terminal.streams import Progress, Waiting
with Waiting(lambda: "starting Spark", enabled=True) as waiting, Progress("records") as progress:
    time.sleep(1.3)
    progress.update(17)
    waiting.clear()
    print("done", flush=True)
"""


def test_a_line_shows_that_a_command_waits():
    """A terminal shows how long a command waits, in a line that is erased; a dumb one does not."""
    screen = run_on_terminal("-c", WAITING)[0]
    assert screen.startswith("\rstarting Spark … 1 s".encode())
    assert b"\x1b[Kdone\r\n" in screen
    assert run_on_terminal("-c", WAITING, TERM="dumb")[0] == b"done\r\n"


WIDTHS = [80, pytest.param(120, marks=pytest.mark.release)]
LONG = to_record(
    Event(id="1", source="/shop", type="order.placed", subject="a subject of words " * 9, data="words " * 30)
)
BROKEN = Record(value=b"words " * 30, headers=[*LONG.headers[:3], ("ce_type", b"")])


@pytest.fixture
def words(mock_cluster, topic):
    """The options of a topic with long texts."""
    send(mock_cluster, topic, LONG, BROKEN)
    return ["-b", mock_cluster, "-t", topic, "-p", "0"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("form", ["text", "line"])
def test_records_fit(words, width, form):
    """Records fit a terminal: text keeps whole words with a hanging indent, a line is cut with a mark."""
    screen, _, code = on_terminal("consume", *words, "-o", form, width=width)
    shown = COLOR.sub(b"", screen).decode().split("\r\n")
    assert code == 0
    assert max(map(len, shown)) <= width
    if form == "text":
        assert " ".join(shown).split().count("words") >= 60 + 8
        start = next(number for number, line in enumerate(shown) if line.startswith("  subject"))
        assert shown[start + 1].startswith(" " * 19)
    else:
        assert len(shown) == 3
        assert shown[0].endswith("…")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", ["stats", "topics", "doctor"])
def test_tables_and_bars_fit(words, width, command):
    """What commands print fits a terminal, without a cut word, and is in color there only."""
    options = {"topics": words[:2], "doctor": ["consume"]}.get(command, words)
    screen, piped, code = on_terminal(command, *options, width=width)
    shown = COLOR.sub(b"", screen).decode().split("\r\n")
    assert (code, piped) == (0, b"")
    assert max(map(len, shown)) <= width or command == "doctor"
    assert "…" not in "".join(shown)
    longest = [line for line in shown if len(line) > width]
    assert all(" " not in line.strip() for line in longest)


@pytest.mark.parametrize("width", WIDTHS)
def test_errors_keep_whole_words(width):
    """An error on a terminal has whole words and a hanging indent; in a pipe it is one line."""
    arguments = ["groups", "reset"]
    screen, _, code = on_terminal(*arguments, width=width)
    shown = screen.decode().split("\r\n")[:-1]
    assert code == 2
    assert max(map(len, shown)) <= width
    assert all(line.startswith("  ") for line in shown[1:])
    piped = on_terminal(*arguments, stderr=False)[1].decode()
    assert piped.count("\n") == 1
    assert piped.split() == " ".join(shown).split()


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
@pytest.mark.parametrize("command", ["stats"])
def test_bars_and_records_without_color(words, env, command):
    """With NO_COLOR there is no color; a dumb terminal gets no control sequence, and plain bars."""
    screen, _, code = on_terminal(command, *words, **env)
    assert code == 0
    assert not COLOR.search(screen)
    assert b"\x1b" not in screen or "NO_COLOR" in env
    assert (b"#####" in screen) is (command == "stats" and env.get("TERM") == "dumb")


def test_nothing_is_written_into_what_a_person_types(mock_cluster, topic):
    """While a person types events, no progress is shown between the lines."""
    line = b'{"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}\n'
    options = ["-b", mock_cluster, "-t", topic, "-v"]
    screen, _, code = run_on_terminal(
        "-m", "cloudevents_kafka", "produce", *options, stdin=line * 3 + b"\x04", TERM="xterm"
    )
    assert code == 0
    assert b"delivered" not in screen
    assert b"\x1b" not in screen
    assert screen.count(f"{topic}[".encode()) == 3
