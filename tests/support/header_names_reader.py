"""Reads a topic in several ways, in a process of its own, and writes what it has got.

Arguments: the servers, the topic, the number of records, and the ways. A line is the JSON of the way and of
a list for each record: its offset, whether it is an event, the key, the value and the number of headers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice
from typing import Any, Literal

from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    DeadLetter,
    DeadLetters,
    Decoded,
    EventConsumer,
    EventProcessor,
    EventProducer,
    Record,
    Undecodable,
    decode,
)
from cloudevents_kafka.testing import FakeProducer

Item = Decoded | Undecodable


class Intercepted:
    """A client whose messages a user's code has read before, and dropped the error."""

    def __init__(self, client: Consumer) -> None:
        self._client = client
        self.close = client.close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def poll(self, timeout: float = -1) -> Any:
        message = self._client.poll(timeout)
        return None if message is None else look(message)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Any]:
        return [look(message) for message in self._client.consume(num_messages, timeout)]


def look(message: Any) -> Any:
    with suppress(SystemError):
        getattr(message, "headers")()  # noqa: B009  # a call that the interpreter checks
    return message


class Found(list[Item]):
    """Items, until there are as many as expected."""

    def __init__(
        self, events: EventConsumer[Any] | AsyncEventConsumer[Any], count: int, sending: dict[str, Any]
    ) -> None:
        super().__init__()
        self.events: Any = events
        self.count = count
        self.sending = sending

    def handle(self, item: Item) -> None:
        self.append(item)
        if len(self) >= self.count:
            self.events.stop()

    async def handle_async(self, item: Item) -> None:
        self.handle(item)

    def skip(self, item: Item, error: Exception) -> Literal["skip"]:
        """Handle a record that is not an event."""
        assert item.record.where in str(error)
        self.handle(item)
        return "skip"


def poll(found: Found) -> None:
    while len(found) < found.count:
        if (item := found.events.poll()) is not None:
            found.append(item)


def items(found: Found) -> None:
    found.extend(islice(found.events.items(), found.count))


def batches(found: Found) -> None:
    for batch in found.events.batches():
        found.extend(batch)
        if len(found) >= found.count:
            return


def run(found: Found) -> None:
    found.events.run(found.handle, on_failure=found.skip, tries=2)


def letters(found: Found) -> None:
    producer = EventProducer(FakeProducer())
    letters, dead = DeadLetters(producer, topic="dead"), list[Item]()

    def set_aside(item: Item, error: Exception) -> DeadLetters:
        assert item.record.where in str(error)
        dead.append(item)
        return letters

    found.events.run(found.append, on_failure=set_aside, idle_timeout=1)
    for item, message in zip(dead, producer.producer.log, strict=True):
        letter = Record.of(message)
        assert (letter.key, letter.value) == (item.record.key, item.record.value)
        reason = DeadLetter.of(letter)
        assert reason is not None
        assert (reason.offset, reason.clause) == (item.record.offset, "K-06")
    found.extend(dead)


def processor(found: Found) -> None:
    with EventProducer(Producer(found.sending)) as producer:
        EventProcessor(found.events, producer, found.handle, on_failure=found.skip).run()


async def async_items(found: Found) -> None:
    async for item in found.events.items():
        found.append(item)
        if len(found) == found.count:
            return


async def async_batches(found: Found) -> None:
    async for batch in found.events.batches():
        found.extend(batch)
        if len(found) >= found.count:
            return


async def async_run(found: Found) -> None:
    await found.events.run(found.handle_async, on_failure=found.skip)


async def async_processor(found: Found) -> None:
    async with AsyncEventProducer(Producer(found.sending)) as producer:
        await AsyncEventProcessor(found.events, producer, found.handle_async, on_failure=found.skip).run()


WAYS: dict[str, Callable[[Found], None]] = {
    each.__name__: each for each in (poll, items, batches, run, letters, processor)
}
ASYNC_WAYS: dict[str, Callable[[Found], Awaitable[None]]] = {
    each.__name__: each for each in (async_items, async_batches, async_run, async_processor)
}


def read(client: Any, way: str, count: int, sending: dict[str, Any]) -> list[Item]:
    if way == "record":
        messages: list[Any] = []
        while len(messages) < count:
            messages += client.consume(count - len(messages), 1.0)
        client.close()
        return [decode(Record.of(message)) for message in messages]
    if way in ASYNC_WAYS:
        return asyncio.run(read_async(client, way, count, sending))
    with EventConsumer(client) as events:
        found = Found(events, count, sending)
        WAYS[way](found)
    return found


async def read_async(client: Any, way: str, count: int, sending: dict[str, Any]) -> list[Item]:
    async with AsyncEventConsumer(client) as events:
        found = Found(events, count, sending)
        await ASYNC_WAYS[way](found)
    return found


def shown(item: Item) -> list[object]:
    record = item.record
    key, value = (record.key or b"").decode(), (record.value or b"").decode()
    return [record.offset, isinstance(item, Decoded), key, value, len(record.headers)]


def main(servers: str, topic: str, number: str, *ways: str) -> None:
    common = {"bootstrap.servers": servers, "log_level": 0}
    reading = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    for way in ways:
        client: Any = Consumer(common | reading)
        client.assign([TopicPartition(topic, 0, 0)])
        kind, _, name = way.rpartition(" ")
        found = read(
            Intercepted(client) if kind else client, name, int(number), common | {"transactional.id": topic}
        )
        sys.stdout.write(json.dumps([way, sorted(map(shown, found))]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
