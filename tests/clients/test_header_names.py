"""Records whose header names are not UTF-8, or have a NUL, by the clients and a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from cloudevents_kafka import (
    Decoded,
    EventConsumer,
)
from cloudevents_kafka.testing import LocalBroker
from tests.support.header_names import BAD_NAME, event_record, records_with_bad, write_batches
from tests.support.samples import one_in

pytestmark = pytest.mark.broker

COUNT = 2_000
BAD = frozenset((3, 4, 1_200, 1_999))  # some are read when the interpreter has specialized the code
WAYS = {
    "threads": ("record", "poll", "items", "batches", "run", "processor", "letters"),
    "asyncio": ("async_items", "async_batches", "async_run", "async_processor"),
    "intercepted": tuple(f"intercepted {way}" for way in ("record", "poll", "batches", "run", "async_items")),
}


@pytest.fixture(scope="module")
def topic(kafka_broker: LocalBroker) -> str:
    """A topic in which some records have header names that are not UTF-8, and one has two of them."""
    name = kafka_broker.create_topic("header-names")
    records = records_with_bad(COUNT, BAD)
    records[4] = event_record(4, BAD_NAME, "x", BAD_NAME)
    write_batches(kafka_broker.bootstrap_servers, name, [records[:1_000], records[1_000:]])
    return name


def read(broker: LocalBroker, topic: str, ways: Iterable[str]) -> dict[str, Any]:
    """Return what another process has read."""
    script = Path(__file__).parents[1] / "support" / "header_names_reader.py"
    command = [sys.executable, str(script), broker.bootstrap_servers, topic, str(COUNT), *ways]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("kind", one_in(3, WAYS))
def test_each_record_is_an_item(kafka_broker: LocalBroker, topic: str, kind: str) -> None:
    """A record whose headers the client cannot return is an item with its place, key and value."""
    expected = [
        [number, number not in BAD, f"key-{number}", f"value-{number}", 0 if number in BAD else 4]
        for number in range(COUNT)
    ]
    assert read(kafka_broker, topic, WAYS[kind]) == dict.fromkeys(WAYS[kind], expected)


def test_the_commands_show_them(kafka_broker: LocalBroker, topic: str) -> None:
    """`consume` shows the reason at the place, with the key and the value, and goes on."""
    command = [sys.executable, "-m", "cloudevents_kafka", "consume", "-b", kafka_broker.bootstrap_servers]
    options = ["-t", topic, "--from", "1198", "--until", "1202", "--output", "json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["offset"] for line in lines] == [1_198, 1_199, 1_200, 1_201]
    assert (lines[2]["key"], lines[2]["value"]) == ("key-1200", "value-1200")
    assert r"header names must be UTF-8, got b'ce_\xff'" in lines[2]["error"]["reason"]


def test_confluent_kafka_cuts_names_at_a_nul(kafka_broker: LocalBroker) -> None:
    """Its names are C strings, so what is after a NUL is unknown, and the cut name is that of the record."""
    name = kafka_broker.create_topic("header-nul")
    write_batches(kafka_broker.bootstrap_servers, name, [[event_record(0, "trace\0a", "\0")]])
    client = Consumer({"bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": name, "log_level": 0})
    client.assign([TopicPartition(name, 0, 0)])
    with EventConsumer(client) as events:
        item = next(events.items())
    assert isinstance(item, Decoded)
    assert [header for header, _ in item.record.headers if not header.startswith("ce_")] == ["trace", ""]
