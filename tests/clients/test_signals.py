"""What SIGTERM and Ctrl-C do to runs, as the page "Which loop" says, in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

HANG = 60  # seconds that only a hang takes
PROGRAM = """
import asyncio, os, signal, sys, threading, time
from cloudevents_kafka import AsyncEventConsumer, Event, EventConsumer, to_record
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage

record = to_record(Event(id="1", source="/s", type="t"))
client = FakeConsumer(FakeLog([FakeMessage("in", b"", None, record.headers)]), auto_commit=False)
client.subscribe(["in"])
def say(text):
    os.write(1, text.encode() + b"\\n")
def handle(item):
    say("begun")
    time.sleep(0.5)
    say("handled")
async def handle_in_task(item):
    say("begun")
    await asyncio.sleep(0.5)
    say("handled")
async def main():
    await AsyncEventConsumer(client).run(handle_in_task)
events = EventConsumer(client)
kind = sys.argv[1]
try:
    if kind == "run":
        events.run(handle)
    elif kind == "asyncio":
        asyncio.run(main())
    else:
        ended = threading.Event()
        run = threading.Thread(target=lambda: (events.run(handle), ended.set()))
        if kind == "thread with a handler":
            signal.signal(signal.SIGTERM, lambda *_: events.stop())
            signal.signal(signal.SIGINT, lambda *_: events.stop())
        run.start()
        try:
            run.join()
        except KeyboardInterrupt:
            time.sleep(1)
            say("ended" if ended.is_set() else "alive")
            events.stop()
            raise
    say("returned")
except KeyboardInterrupt:
    say("interrupted")
say(str(client.offsets))
"""
DONE = "{('in', 0): 1}"
GRACEFUL = ["begun", "handled", "returned", DONE]
INTERRUPTED = ["begun", "handled", "interrupted", DONE]


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        pytest.param("run", signal.SIGTERM, GRACEFUL, marks=pytest.mark.release),
        ("run", signal.SIGINT, INTERRUPTED),
        pytest.param("asyncio", signal.SIGTERM, GRACEFUL, marks=pytest.mark.release),
        ("asyncio", signal.SIGINT, INTERRUPTED),
        ("thread", signal.SIGTERM, ["begun"]),
        ("thread", signal.SIGINT, ["begun", "handled", "alive", "interrupted"]),
        ("thread with a handler", signal.SIGTERM, GRACEFUL),
        pytest.param("thread with a handler", signal.SIGINT, GRACEFUL, marks=pytest.mark.release),
    ],
)
def test_signals_end_runs_as_the_page_says(kind: str, number: signal.Signals, expected: list[str]) -> None:
    """The record in work is done and committed, unless a thread runs and the program has no handler."""
    argv = [sys.executable, "-c", PROGRAM, kind]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline().strip()]
            process.send_signal(number)
            lines += process.communicate(timeout=HANG)[0].splitlines()
        finally:
            process.kill()
    assert lines[: len(expected)] == expected
    assert process.returncode == (-signal.SIGTERM if expected == ["begun"] else 0)
