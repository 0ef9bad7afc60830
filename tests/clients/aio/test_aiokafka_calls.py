"""Errors of aiokafka's ``getmany``, by a client that drops what it has collected, as the real one does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import ConsumerStoppedError, CorruptRecordException
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import AsyncEventConsumer, ConsumeError, Decoded, Undecodable
from tests.clients.aio.test_aiokafka_source import COUNT, PARTITIONS, Reader, record
from tests.support import strategies as make
from tests.support.cases import each

Item = Decoded | Undecodable
Place = tuple[int, int]
"""A partition and an offset."""


class Raising(Reader):
    """A reader that raises an error at some records.

    ``getmany`` has moved the positions of partitions before that of the record. With ``skips`` it also stands
    behind the record then. As in aiokafka, no partition is assigned while records are collected.
    """

    def __init__(self, errors: dict[Place, Exception], *, skips: bool = False) -> None:
        super().__init__({})
        self.errors = errors
        self.skips = skips

    def highwater(self, place: TopicPartition) -> int:
        return COUNT

    def paused(self) -> set[TopicPartition]:
        return self._paused

    async def getmany(
        self, *places: TopicPartition, timeout_ms: int, max_records: int
    ) -> dict[TopicPartition, list[Any]]:
        for _ in range(max_records % 4 if timeout_ms else 0):  # a task may assign partitions meanwhile
            await asyncio.sleep(0)
        found: dict[TopicPartition, list[Any]] = {}
        left = max_records
        for place in sorted((set(places or self._assigned) & self._assigned) - self._paused):
            at = self._positions.get(place)
            if at is None:  # nothing was fetched of it yet
                self._positions[place] = self._committed(place)
                continue
            while at < COUNT and left > 0:
                if (error := self.errors.get((place.partition, at))) is not None:
                    self._positions[place] = at + 1 if self.skips else self._positions[place]
                    raise error
                found.setdefault(place, []).append(record(place, at))
                at, left = at + 1, left - 1
            self._positions[place] = at
        if timeout_ms and not found:
            await asyncio.sleep(0.001)  # a client waits for records, too
        return found


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100):
            await work

    asyncio.run(bounded())


def name_error() -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


def places(items: list[Item]) -> list[tuple[int, int, bool]]:
    return [
        (item.record.partition or 0, item.record.offset or 0, isinstance(item, Undecodable)) for item in items
    ]


async def read_all(events: AsyncEventConsumer[Any], items: list[Item]) -> None:
    while (item := await events.poll(1)) is not None:
        items.append(item)


bad_places = st.sets(st.tuples(st.integers(0, 2), st.integers(0, COUNT - 1)))
steps = st.lists(st.tuples(st.sampled_from(["read", "batch", "assign"]), st.integers(0, 7)), max_size=12)


@make.examples(200)
@given(bad_places, steps, st.integers(1, 3 * COUNT))
def test_each_record_is_an_item_in_order(bad: set[Place], history: list[tuple[str, int]], size: int) -> None:
    """From the committed offset on no record is lost or repeated, in any fetches, errors and rebalances."""

    async def work() -> None:
        client = Raising({place: name_error() for place in bad})
        next_of = dict.fromkeys(PARTITIONS, 0)

        def check(items: list[Item]) -> None:
            for number, offset, is_bad in places(items):
                assert offset == next_of[PARTITIONS[number]]
                assert is_bad == ((number, offset) in bad)
                next_of[PARTITIONS[number]] += 1

        async with AsyncEventConsumer(client, max_records=size) as events:
            for step, number in history:
                if step == "read":
                    check([item for _ in range(number) if (item := await events.poll(0.0005)) is not None])
                elif step == "batch" and number:
                    check(await anext(events.batches(number, 0.001, idle_timeout=0), []))
                elif step == "assign":
                    client.assign([PARTITIONS[n] for n in range(3) if number >> n & 1], known=number > 3)
                    next_of = {place: client.committed.get(place, 0) for place in PARTITIONS}
            client.assign(PARTITIONS)
            next_of = dict.fromkeys(PARTITIONS, 0)
            while set(next_of.values()) != {COUNT}:
                check([item for item in [await events.poll(0.005)] if item is not None])

    run(work())


@each("size", [1, 7, 100])
@pytest.mark.parametrize("skips", [pytest.param(False, marks=pytest.mark.release), True])
def test_the_position_after_an_error_does_not_matter(*, skips: bool, size: int) -> None:
    """A client may stand at the record that has raised the error, or behind it."""

    async def work() -> None:
        items: list[Item] = []
        client = Raising({(1, 5): name_error(), (1, 6): name_error(), (2, 0): name_error()}, skips=skips)
        async with AsyncEventConsumer(client, max_records=size) as events:
            await read_all(events, items)
        assert sorted(places(items)) == [
            (number, offset, (number, offset) in client.errors)
            for number in range(3)
            for offset in range(COUNT)
        ]

    run(work())


def test_a_record_that_was_not_read_is_dropped_with_its_partition() -> None:
    """It is among the records that wait as soon as it is found, and not when the fetch has ended."""

    async def work() -> None:
        client = Raising({(0, 0): name_error()})
        async with AsyncEventConsumer(client) as events:
            fetch = events._source.fetch(100, 0)
            while not fetch.done():  # noqa: ASYNC110  # a callback would come later
                await asyncio.sleep(0)
            assert (0, 0, True) in places(list(map(events._gathered.read, events._gathered.waiting)))
            client.assign([])
            assert await events.poll(0.3) is None

    run(work())


def test_an_error_that_is_no_name_has_the_place() -> None:
    """What was collected before it is read, and the error is raised again as long as the record is there."""

    async def work() -> None:
        client = Raising({(1, 5): CorruptRecordException("Invalid CRC")})
        items: list[Item] = []
        async with AsyncEventConsumer(client) as events:
            for _ in range(2):
                with pytest.raises(ConsumeError, match=r"orders\[1\]@5: the consumer failed: .*Invalid CRC"):
                    await read_all(events, items)
            client.errors.clear()
            await read_all(events, items)
        assert sorted(places(items)) == [
            (number, offset, False) for number in range(3) for offset in range(COUNT)
        ]

    run(work())


def test_a_record_that_stays_corrupt_stops_no_other_partition() -> None:
    """If `on_error` reads on, each record before it and of other partitions is returned."""

    async def work() -> None:
        client = Raising({(number, 5): CorruptRecordException("Invalid CRC") for number in (0, 2)})
        items: list[Item] = []
        async with AsyncEventConsumer(client, on_error=lambda error: True, max_records=2) as events:
            while len(items) < COUNT + 10:
                items += [item for item in [await events.poll(1)] if item is not None]
        ends = dict(zip(range(3), (5, COUNT, 5), strict=True))
        assert sorted(places(items)) == [(n, offset, False) for n in ends for offset in range(ends[n])]

    run(work())


def test_an_error_of_no_record_is_raised() -> None:
    """A client that was stopped is an error, and no record."""

    class Stopped(Reader):
        async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
            raise ConsumerStoppedError

    async def work() -> None:
        async with AsyncEventConsumer(Stopped({})) as events:
            for _ in range(2):
                with pytest.raises(ConsumerStoppedError):
                    await events.poll(0.05)

    run(work())
