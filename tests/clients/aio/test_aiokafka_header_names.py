"""Records whose header names aiokafka cannot decode, on a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from cloudevents_kafka import AsyncEventConsumer, BrokenEvent, Decoded, Undecodable
from cloudevents_kafka.testing import LocalBroker
from tests.support.header_names import event_record, records_with_bad, write_batches

pytestmark = pytest.mark.broker

Item = Decoded | Undecodable
COUNT = 21
RECORDS = records_with_bad(COUNT, {10})
BATCHES = [RECORDS[:10], RECORDS[10:11], RECORDS[11:]]
GOOD = [event_record(number) for number in range(COUNT)]


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100):
            await work

    asyncio.run(bounded())


def consumer(broker: LocalBroker, topic: str, group: str = "readers") -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id=f"{topic}-{group}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


def shown(items: list[Item]) -> list[tuple[int | None, int | None, bool, bytes | None]]:
    """Return the places of items, whether they are events, and their keys."""
    found = [
        (item.record.partition, item.record.offset, isinstance(item, Decoded), item.record.key)
        for item in items
    ]
    return sorted(found, key=lambda each: (each[0] or 0, each[1] or 0))


def expected(partition: int, *bad: int) -> list[tuple[int, int, bool, bytes | None]]:
    return [
        (partition, number, number not in bad, None if number in bad else b"key-%d" % number)
        for number in range(COUNT)
    ]


async def read_items(events: AsyncEventConsumer[Any], count: int) -> list[Item]:
    found: list[Item] = []
    async for item in events.items():
        found.append(item)
        if len(found) == count:
            break
    return found


async def read_batches(events: AsyncEventConsumer[Any], count: int) -> list[Item]:
    found: list[Item] = []
    async for batch in events.batches():
        found += batch
        if len(found) >= count:
            break
    return found


async def read_by_run(events: AsyncEventConsumer[Any], count: int) -> list[Item]:
    handled: list[Item] = []
    failed: list[Item] = []

    def note(item: Item) -> None:
        (handled if isinstance(item, Decoded) else failed).append(item)
        if len(handled) + len(failed) == count:
            events.stop()

    async def handle(item: Item) -> None:
        note(item)

    def skip(item: Item, error: Exception) -> Any:
        note(item)
        return "skip"

    result = await events.run(handle, on_failure=skip, tries=2)
    assert (result.handled, result.skipped) == (len(handled), len(failed))
    return handled + failed


@pytest.mark.parametrize("read", [read_items, read_batches, read_by_run])
def test_good_records_around_a_bad_one_are_events(kafka_broker: LocalBroker, read: Any) -> None:
    """Of 21 records in one fetch 20 are events, also those of another partition."""
    topic = kafka_broker.create_topic(f"names-{read.__name__}", partitions=2)
    write_batches(kafka_broker.bootstrap_servers, topic, BATCHES)
    write_batches(kafka_broker.bootstrap_servers, topic, [GOOD], partition=1)

    async def work() -> None:
        client = consumer(kafka_broker, topic)
        await client.start()
        async with AsyncEventConsumer(client, topics=[topic]) as events:
            items = await read(events, 2 * COUNT)
        assert shown(items) == expected(0, 10) + expected(1)
        [bad] = [item for item in items if isinstance(item, Undecodable)]
        assert isinstance(bad.error, BrokenEvent)
        reason = r"broken CloudEvent: header names must be UTF-8, got b'ce_\xff'; the name may be in"
        assert str(bad.error).startswith(f"{topic}[0]@10: {reason}")

    run(work())


def test_the_rest_of_its_batch_is_unread(kafka_broker: LocalBroker) -> None:
    """Aiokafka cannot go past a bad record within a batch, so each offset up to its end is an item."""
    topic = kafka_broker.create_topic("names-batch")
    write_batches(kafka_broker.bootstrap_servers, topic, [RECORDS, GOOD])

    async def work() -> None:
        client = consumer(kafka_broker, topic)
        await client.start()
        async with AsyncEventConsumer(client, topics=[topic]) as events:
            items = await read_items(events, 2 * COUNT)
        assert [item.record.offset for item in items] == list(range(2 * COUNT))
        assert [isinstance(item, Decoded) for item in items] == [True] * 10 + [False] * 11 + [True] * COUNT

    run(work())


def test_what_is_committed_is_before_the_bad_record(kafka_broker: LocalBroker) -> None:
    """With `on_failure` "fail" the run ends with its place, and the next one begins with it."""
    topic = kafka_broker.create_topic("names-fail")
    write_batches(kafka_broker.bootstrap_servers, topic, BATCHES)

    async def work() -> None:
        for on_failure, count in (("fail", 10), ("fail", 0), ("skip", 10)):
            handled: list[int | None] = []

            async def handle(item: Decoded, to: list[int | None] = handled) -> None:
                to.append(item.record.offset)

            client = consumer(kafka_broker, topic)
            await client.start()
            async with AsyncEventConsumer(client, topics=[topic]) as events:
                if on_failure == "fail":
                    with pytest.raises(BrokenEvent, match=r"\[0\]@10: broken CloudEvent: header names must"):
                        await events.run(handle, on_failure="fail")
                else:
                    await events.run(handle, on_failure="skip", idle_timeout=3)
                at = await client.committed(TopicPartition(topic, 0))
            assert (len(handled), at) == (count, COUNT if on_failure == "skip" else 10)

    run(work())
