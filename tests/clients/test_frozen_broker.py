"""Loops end within stop_timeout while a real broker is frozen, and go on when it answers again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator

import pytest

from cloudevents_kafka import Event, EventProducer
from cloudevents_kafka.testing import LocalBroker

LOOP = """
import asyncio, os, sys, time
from cloudevents_kafka import (AsyncEventConsumer, AsyncEventProcessor, AsyncEventProducer, EventConsumer,
                               EventProcessor, EventProducer)
servers, topic, loop = sys.argv[1:]
reads = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest", "log_level": 0}
writes = {"bootstrap.servers": servers, "log_level": 0, "transactional.id": topic}
def say(text):
    os.write(1, text.encode() + b"\\n")
def handle(item):
    say(item.event.id)
    time.sleep(0.01)
def forward(item):
    handle(item)
    producer.send(item.event, topic + ".out")
async def handle_async(item):
    say(item.event.id)
    await asyncio.sleep(0.01)
async def forward_async(item):
    await handle_async(item)
    producer.send_nowait(item.event, topic + ".out")
async def main():
    global producer
    async with AsyncEventConsumer(reads, topics=[topic]) as events:
        if loop == "asyncio":
            await events.run(handle_async, stop_timeout=3)
        else:
            producer = AsyncEventProducer(writes, close_timeout=1)
            await AsyncEventProcessor(events, producer, forward_async, max_records=20).run(stop_timeout=3)
        say("ended")
        os._exit(0)
if loop.startswith("asyncio"):
    asyncio.run(main())
events = EventConsumer(reads, topics=[topic])
if loop == "run":
    events.run(handle, stop_timeout=3)
else:
    producer = EventProducer(writes, close_timeout=1)
    EventProcessor(events, producer, forward, max_records=20).run(stop_timeout=3)
say("ended")
os._exit(0)
"""


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as broker:
        yield broker


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize(
    "loop",
    [
        "run",
        pytest.param("processor", marks=pytest.mark.release),
        pytest.param("asyncio", marks=pytest.mark.release),
        pytest.param("asyncio processor", marks=pytest.mark.release),
    ],
)
def test_sigterm_ends_a_loop_in_time_while_the_broker_is_frozen(broker: LocalBroker, loop: str) -> None:
    """The broker is a process that is stopped, so that connections stay open and nothing answers."""
    topic = broker.create_topic(f"frozen-{uuid.uuid4()}")
    with EventProducer({"bootstrap.servers": broker.bootstrap_servers}, topic=topic) as producer:
        for number in range(2000):
            producer.send(Event(id=str(number), source="/s", type="t"))
    argv = [sys.executable, "-c", LOOP, broker.bootstrap_servers, topic, loop]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(60):
            assert process.stdout.readline()
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            time.sleep(2)  # calls of the client are under way
            start = time.monotonic()
            process.terminate()
            *_, last = process.stdout
            seconds = time.monotonic() - start
        finally:
            os.kill(broker.pid, signal.SIGCONT)
            process.kill()
    assert last == "ended\n"
    assert seconds < 3 + 1.5
