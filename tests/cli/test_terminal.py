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
    time.sleep(1.5)
    progress.update(17)
    waiting.clear()
    print("done", flush=True)
"""


def test_a_line_shows_that_a_command_waits():
    """A terminal shows how long a command waits, in a line that is erased; a dumb one or a pipe does not."""
    assert run_on_terminal("-c", WAITING)[0].startswith("\rstarting Spark … 1 s".encode())
    assert b"\x1b[Kdone\r\n" in run_on_terminal("-c", WAITING)[0]
    assert run_on_terminal("-c", WAITING, TERM="dumb")[0] == b"done\r\n"
    assert run_on_terminal("-c", WAITING, stderr=False)[0] == b"done\r\n"
