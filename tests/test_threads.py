"""Threads that read records of many producers at once read what one thread reads."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final

import pytest

from cloudevents_kafka import Decoded, Event, EventConsumer, Record, Undecodable, decode, to_record
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.testing import FakeConsumer, FakeMessage

THREADS: Final = 8
PRODUCERS: Final = 40
SWITCH: Final = 1e-5  # seconds; by default 5e-3
_ENVELOPE: Final = ("content-type", b"application/cloudevents+json")


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Let threads switch five hundred times as often as by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def events(producer: int) -> Iterator[Event]:
    """Yield events whose attributes are texts in one event, and integers or booleans in the next."""
    name = f"n{producer}"
    for value in ("x", 3, True, "é", "4"):
        more = {name: value, "tries": value, f"{name}b": producer, "subject": "Größe"}
        yield Event(id=f"{producer}", source=f"/shop/{producer}", type="t", **more, data={"a": "é"})


def records() -> list[Record]:
    """Return valid records in each mode and format, some with deviations, and some broken ones."""
    made: list[Record] = []
    for producer in range(PRODUCERS):
        for event in events(producer):
            made.append(to_record(event))
            made += [to_record(event, mode="structured", format=name) for name in formats.writable()]
        members = {"specversion": "1.0", "id": "1", "source": "/", "type": "t", f"Trace{producer}": "x"}
        text = json.dumps(members).encode()
        made.append(Record(headers=[_ENVELOPE], value=text))
        made.append(Record(headers=[("foreign", b"x")], value=text))
        made.append(Record(headers=[_ENVELOPE], value=text.replace(b'"x"', b'"x","tries":3,"tries":4')))
        headers = [(f"ce_{name}", str(value).encode()) for name, value in members.items()]
        made.append(Record(headers=headers))
        made.append(Record(headers=[(name.title(), value) for name, value in headers]))
    return made


def check_threads(seconds: float, seed: int) -> None:
    """Read all records in each of eight threads, again and again, strictly and leniently."""
    everything = records()
    expected = {
        strictly: [outcome(decode(record, lenient=not strictly)) for record in everything]
        for strictly in (0, 1)
    }
    end = monotonic() + seconds

    def read(number: int) -> int:
        chance = random.Random(seed + number)
        count = 0
        while count == 0 or monotonic() < end:
            order = chance.sample(range(len(everything)), len(everything))
            strictly = chance.randrange(2)
            messages = [as_message(everything[index]) for index in order]
            consumer = EventConsumer(FakeConsumer(messages), lenient=not strictly)
            consumer.consumer.subscribe(["orders"])
            for index in order:
                item = consumer.poll(0)
                assert item is not None
                assert outcome(item) == expected[strictly][index]
            count += len(order)
        return count

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(read, range(THREADS))) >= THREADS * len(everything)


def outcome(item: Decoded | Undecodable) -> tuple[str, object]:
    """Return what was read: an event and what was accepted, or the problems."""
    if isinstance(item, Decoded):
        return repr(item.event), item.tolerated
    return item.error.verdict, getattr(item.error, "problems", ())


def as_message(record: Record) -> FakeMessage:
    return FakeMessage("orders", key=record.key, value=record.value, headers=record.headers)


@pytest.mark.usefixtures("frequent_switches")
def test_threads_read_what_one_thread_reads() -> None:
    """Eight consumers, each in its thread, read records of 40 producers as one thread does."""
    check_threads(0.5, seed=1)


@pytest.mark.release
@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("seed", range(3))
def test_threads_read_for_a_while(seed: int) -> None:
    """The same holds for half a minute, in other orders."""
    check_threads(30, seed=100 * seed)
