"""Rebalances under aiokafka's consumer, by a client of the same shape; tests/clients has real ones."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Coroutine
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, RebalanceInProgressError
from confluent_kafka import TopicPartition as Place
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import AsyncEventConsumer, Decoded, Event, Undecodable, to_record
from cloudevents_kafka.clients._places import places_of
from cloudevents_kafka.clients._steps import Ask
from tests.support import strategies as make
from tests.support.cases import each

Item = Decoded | Undecodable
PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
COUNT = 12  # records in each partition


class Reader:
    """A member of a group that is assigned partitions, each from the offset that the group has committed."""

    def __init__(self, committed: dict[TopicPartition, int], *, auto_commit: bool = False) -> None:
        self.committed = committed
        self.refusal: Exception | None = None
        self._coordinator = self
        self._paused: set[TopicPartition] = set()
        self._enable_auto_commit = auto_commit
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._positions: dict[TopicPartition, int | None] = {}
        self.assign(PARTITIONS)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def assign(self, partitions: list[TopicPartition], *, known: bool = True) -> None:
        """Take part in a rebalance; the positions may be ``known`` later."""
        if self._enable_auto_commit:
            self.committed |= {place: at for place, at in self._positions.items() if at is not None}
        self._assigned = frozenset(partitions)
        self._positions = {place: self._committed(place) if known else None for place in partitions}

    def _committed(self, place: TopicPartition) -> int:
        return self.committed.get(place, 0)

    def assignment(self) -> frozenset[TopicPartition]:
        return self._assigned

    async def position(self, place: TopicPartition) -> int:
        if place not in self._assigned:
            raise IllegalStateError(f"Partition {place} is not assigned")
        if self._positions[place] is None:
            await asyncio.sleep(0)
            self._positions[place] = self._committed(place)
        return self._positions[place] or 0

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        await asyncio.sleep(0)
        found: dict[TopicPartition, list[Any]] = {}
        for place in sorted(self._assigned - self._paused):
            at = await self.position(place)
            end = min(COUNT, at + max_records - sum(map(len, found.values())))
            found[place] = [record(place, offset) for offset in range(at, end)]
            self._positions[place] = end
        if not any(found.values()):
            await asyncio.sleep(min(timeout_ms / 1000, 0.002))
        return found

    async def commit(self, offsets: dict[TopicPartition, Any]) -> None:
        await asyncio.sleep(0)
        for place in offsets:
            if place not in self._assigned:
                raise IllegalStateError(f"Partition {place} is not assigned")
        if self.refusal is not None:
            raise self.refusal
        self.committed |= {place: at if isinstance(at, int) else at[0] for place, at in offsets.items()}

    def pause(self, *places: TopicPartition) -> None:
        self._paused |= {*places}

    def resume(self, *places: TopicPartition) -> None:
        if gone := {*places} - set(self._assigned):
            raise IllegalStateError(f"No current assignment for partition {gone}")
        self._paused -= {*places}

    async def fetch_committed_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, Any]:
        return {}

    def subscribe(self, topics: list[str], listener: ConsumerRebalanceListener) -> None:
        self.topics, self.listener = topics, listener

    async def rebalance(self, partitions: list[TopicPartition]) -> None:
        await self.listener.on_partitions_revoked(self._assigned)
        self.assign(partitions)
        await asyncio.sleep(0)
        self.listener.on_partitions_assigned(self._assigned)

    def seek(self, place: TopicPartition, offset: int) -> None:
        if place not in self._assigned:
            raise IllegalStateError(f"No current assignment for partition {place}")
        self._positions[place] = offset


def record(place: TopicPartition, offset: int) -> Any:
    written = to_record(Event(id=f"{place.partition}-{offset}", source="/shop", type="order.placed"))
    return SimpleNamespace(
        topic=place.topic,
        partition=place.partition,
        offset=offset,
        key=None,
        value=written.value,
        headers=tuple(written.headers),
        timestamp=7,
    )


def ids(items: list[Item]) -> list[str]:
    return [item.event.id for item in items if isinstance(item, Decoded)]


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100):
            await work

    asyncio.run(bounded())


async def read(events: AsyncEventConsumer[Any], count: int) -> list[Item]:
    return [item for _ in range(count) if (item := await events.poll(0.005)) is not None]


def test_offsets_of_revoked_partitions_are_not_committed(caplog: pytest.LogCaptureFixture) -> None:
    """A commit of a batch commits the partitions that are left, and raises nothing for the others."""

    async def work() -> None:
        client = Reader({})
        async with AsyncEventConsumer(client) as events:
            items = await read(events, 3 * COUNT)
            client.assign(PARTITIONS[1:])
            with caplog.at_level(logging.INFO):
                await events.commit(items)
            assert client.committed == dict.fromkeys(PARTITIONS[1:], COUNT)
            assert (
                "these partitions were revoked: [TopicPartition(topic='orders', partition=0)]" in caplog.text
            )
            asyncio.get_running_loop().call_soon(client.assign, [])  # after the call of commit
            await events.commit(items)

    run(work())


def test_a_commit_during_a_rebalance_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The group refuses it and reads the records again, so the member goes on; other errors are raised."""

    async def work() -> None:
        client = Reader({})
        async with AsyncEventConsumer(client) as events:
            items = await read(events, 1)
            client.refusal = CommitFailedError()
            client.refusal.__cause__ = RebalanceInProgressError()
            await events.commit(items)
            assert "records are read again: RebalanceInProgressError" in caplog.text
            client.refusal = IllegalStateError("away")
            with pytest.raises(IllegalStateError):
                await events.commit(items)

    run(work())


@pytest.mark.parametrize("known", [False, True])
def test_gathered_records_of_moved_partitions_are_dropped(*, known: bool) -> None:
    """Nothing is returned of those that are gone; the others are read from the committed offset."""

    async def work() -> None:
        client = Reader({})
        async with AsyncEventConsumer(client) as events:
            items = await read(events, 2)
            await events.commit(items)
            client.assign(PARTITIONS[:2], known=known)
            rest = ids(await read(events, 3 * COUNT))
            assert rest[:10] == [f"0-{offset}" for offset in range(2, COUNT)]
            assert rest[10:] == [f"1-{offset}" for offset in range(COUNT)]
            async for batch in events.batches(5, idle_timeout=0):
                raise AssertionError(batch)

    run(work())


@pytest.mark.parametrize("known", [False, True])
def test_a_client_that_commits_by_itself_loses_no_gathered_record(*, known: bool) -> None:
    """It has committed the gathered records at the rebalance, so nobody would read them again."""

    async def work() -> None:
        client = Reader({}, auto_commit=True)
        async with AsyncEventConsumer(client) as events:
            items = await read(events, 2)
            client.assign(PARTITIONS[:1], known=known)
            items += await read(events, 3 * COUNT)
        assert sorted(ids(items)) == sorted(f"{n}-{offset}" for n in range(3) for offset in range(COUNT))

    run(work())


def test_a_rebalance_while_a_batch_is_gathered_drops_its_first_part() -> None:
    """A batch has no record twice, and none of a partition that went while it waited for more."""

    class Slow(Reader):
        calls = 0

        async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
            self.calls += 1
            if self.calls == 2:
                self.assign(PARTITIONS[1:])
            return await super().getmany(timeout_ms=timeout_ms, max_records=min(max_records, 2 * COUNT))

    async def work() -> None:
        async with AsyncEventConsumer(Slow({})) as events:
            items = [item async for batch in events.batches(100, 0.1, idle_timeout=0) for item in batch]
            assert sorted(ids(items)) == sorted(f"{n}-{offset}" for n in (1, 2) for offset in range(COUNT))

    run(work())


def test_a_seek_drops_what_a_fetch_has_gathered_so_far() -> None:
    """A batch that another task waits for has no record from before the place sought."""

    async def work() -> None:
        client = Reader({})
        client.assign(PARTITIONS[:1])
        async with AsyncEventConsumer(client) as events:
            batches = events.batches(100, 0.2)
            waiting = asyncio.ensure_future(anext(batches))
            await asyncio.sleep(0.05)
            await events.seek(Place("orders", 0, 10))
            assert ids(await waiting) == ["0-10", "0-11"]

    run(work())


moves = st.tuples(st.sampled_from(["read", "batch", "commit", "assign", "refuse"]), st.integers(0, 7))


@given(st.lists(moves, max_size=30), st.integers(1, 7))
def test_a_group_loses_no_record_in_any_rebalances(steps: list[tuple[str, int]], size: int) -> None:
    """Each record of a partition is returned in order from the committed offset on, in all rebalances."""

    async def work() -> None:
        client, expected = Reader({}), dict.fromkeys(PARTITIONS, 0)
        items: list[Item] = []
        async with AsyncEventConsumer(client, max_records=size) as events:

            def check(found: list[Item]) -> None:
                for item in found:
                    place = TopicPartition(item.record.topic, item.record.partition)
                    assert place in client.assignment()
                    assert item.record.offset == expected[place]
                    expected[place] += 1
                items.extend(found)

            for step, number in steps:
                client.refusal = CommitFailedError() if step == "refuse" else None
                if step == "read":
                    check(await read(events, number))
                elif step == "batch" and number:
                    check(await anext(events.batches(number, 0.001, idle_timeout=0), []))
                elif step == "assign":
                    client.assign([PARTITIONS[n] for n in range(3) if number >> n & 1], known=number > 3)
                    expected = {place: client.committed.get(place, 0) for place in PARTITIONS}
                    items.clear()
                else:
                    await events.commit(items)
            client.refusal = None
            client.assign(PARTITIONS)
            expected = {place: client.committed.get(place, 0) for place in PARTITIONS}
            while set(expected.values()) != {COUNT}:
                check(await read(events, 1))

    run(work())


@pytest.mark.parametrize("running", [False, True])
def test_functions_of_a_subscription_are_called_on_the_loop(*, running: bool) -> None:
    """They get the client and its partitions; of a run, after what is done was committed."""

    async def work() -> None:
        client = Reader({})
        loop, calls = asyncio.get_running_loop(), list[tuple[str, list[TopicPartition], int]]()

        def note(name: str, of: Any, partitions: frozenset[TopicPartition]) -> None:
            assert of is client
            assert asyncio.get_running_loop() is loop
            calls.append((name, sorted(partitions), sum(client.committed.values())))

        async with AsyncEventConsumer(client) as events:
            events.subscribe(["orders"], on_assign=partial(note, "assign"), on_revoke=partial(note, "revoke"))
            handled: list[Item] = []
            run = asyncio.create_task(events.run(append_to(handled), idle_timeout=None)) if running else None
            while running and len(handled) < 3 * COUNT:  # noqa: ASYNC110  # a run has no event for that
                await asyncio.sleep(0.01)
            await client.rebalance(PARTITIONS[:1])
            if run is not None:
                events.stop()
                await run
        assert client.topics == ["orders"]
        done = 3 * COUNT if running else 0
        assert calls == [("revoke", PARTITIONS, done), ("assign", PARTITIONS[:1], done)]

    run(work())


def test_partitions_are_handed_over_while_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that were fetched, and wait until others are handled, do not hold the group."""
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.2)

    async def work() -> None:
        client, gate, begun = Reader({}), asyncio.Event(), list[Item]()

        async def handle(item: Item) -> None:
            begun.append(item)
            await gate.wait()

        async with AsyncEventConsumer(client, topics=["orders"]) as events:
            options: Any = {"max_ahead": 1, "concurrency": 3, "revoke_timeout": 0.1, "stop_timeout": 0.1}
            running = asyncio.create_task(events.run(handle, **options))
            while len(begun) < 3:  # noqa: ASYNC110  # a run has no event for that
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)  # until no record is read
            async with asyncio.timeout(100):
                await client.rebalance([])
            events.stop()
            gate.set()
            await running

    run(work())


class Joining(Reader):
    """A member whose ``getmany`` does not return while it joins its group again, as that of aiokafka."""

    def __init__(self) -> None:
        super().__init__({})
        self.joined, self.is_asked = asyncio.Event(), asyncio.Event()
        self.joined.set()

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        if not self.joined.is_set():
            self.is_asked.set()
        await self.joined.wait()
        return await super().getmany(timeout_ms=timeout_ms, max_records=max_records)

    async def rebalance(self, partitions: list[TopicPartition]) -> None:
        self.joined.clear()
        await self.is_asked.wait()
        await super().rebalance(partitions)
        self.joined.set()


def test_a_rebalance_waits_for_no_fetch() -> None:
    """The group waits for handlers alone, and the run reads on after the rebalance."""

    async def work() -> None:
        client, handled = Joining(), list[Item]()
        async with AsyncEventConsumer(client, topics=["orders"]) as events:
            running = asyncio.create_task(events.run(append_to(handled)))
            for number in range(20):
                await client.rebalance(PARTITIONS[: 1 + number % 3])
            await client.rebalance(PARTITIONS)
            while len(handled) < 3 * COUNT:  # noqa: ASYNC110  # a run has no event for that
                await asyncio.sleep(0.01)
            events.stop()
            await running
        assert sorted(ids(handled)) == sorted(f"{n}-{offset}" for n in range(3) for offset in range(COUNT))

    run(work())


@each("by", ["stop", "SIGTERM", "cancel", "idle"])
def test_a_run_ends_while_its_group_is_rebalanced(by: str) -> None:
    """A group may wait for another member for minutes."""

    async def work() -> None:
        client = Joining()
        async with AsyncEventConsumer(client, topics=["orders"]) as events:
            running = asyncio.create_task(
                events.run(append_to([]), idle_timeout=0.3 if by == "idle" else None)
            )
            client.joined.clear()
            await client.is_asked.wait()
            if by == "stop":
                events.stop()
            elif by == "SIGTERM":
                os.kill(os.getpid(), signal.SIGTERM)
            elif by == "cancel":
                running.cancel()
            await asyncio.wait((running,))
            assert running.cancelled() == (by == "cancel")

    run(work())


def test_a_subscription_of_the_client_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Without the listener of a subscription the run does not hand over partitions."""

    async def work() -> None:
        client = Reader({})
        client.member_id = "member-1"  # type: ignore[attr-defined]  # of its coordinator
        async with AsyncEventConsumer(client) as events:
            await events.run(append_to([]), idle_timeout=0.1)
        assert caplog.text.count("the consumer was subscribed with a method of its client") == 1

    run(work())


def test_a_commit_that_was_refused_is_made_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Within the time between two commits, also if no other record is done meanwhile."""
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.05)

    async def work() -> None:
        client, handled = Reader({}), list[Item]()
        client.refusal = CommitFailedError()
        async with AsyncEventConsumer(client, topics=["orders"]) as events:
            running = asyncio.create_task(events.run(append_to(handled)))
            while "offsets were not committed" not in caplog.text:  # noqa: ASYNC110  # a log has no event
                await asyncio.sleep(0.01)
            client.refusal = None
            while client.committed != dict.fromkeys(PARTITIONS, COUNT):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            events.stop()
            await running

    run(work())


def test_a_pause_is_ended_only_for_partitions_that_aiokafka_has() -> None:
    """It forgets the pause with the partition, and raises an error for others."""

    async def work() -> None:
        reader = Reader({})
        source = AsyncEventConsumer(reader)._source
        await source.answer(Ask("pause", places_of(PARTITIONS[:2])))
        reader._assigned = frozenset(PARTITIONS[:1])
        await source.answer(Ask("resume", places_of(PARTITIONS[:2])))
        assert reader._paused == {PARTITIONS[1]}

    run(work())


def test_the_next_run_reads_what_was_fetched_and_not_handled() -> None:
    """Nothing is left out after a run that has failed."""

    async def work() -> None:
        client, handled = Reader({}), list[str]()

        async def handle(item: Decoded) -> None:
            if len(handled) == 5 and "" not in handled:
                handled.append("")
                raise ValueError
            handled.append(item.event.id)

        async with AsyncEventConsumer(client, topics=["orders"]) as events:
            with pytest.raises(ValueError):
                await events.run(handle, concurrency=3)
            await events.run(handle, concurrency=3, idle_timeout=0.3)
        assert {*handled} == {"", *(f"{number}-{offset}" for number in range(3) for offset in range(COUNT))}

    run(work())


def test_aiokafka_does_not_say_that_partitions_are_lost() -> None:
    """A function that would never be called is refused."""
    events = AsyncEventConsumer(Reader({}))
    with pytest.raises(ValueError, match=r"on_lost must be None for aiokafka.*pass on_revoke"):
        events.subscribe(["orders"], on_lost=print)


def append_to(handled: list[Item]) -> Any:
    async def handle(item: Item) -> None:
        handled.append(item)

    return handle


histories = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 8)), max_size=12)


@make.examples(40)
@given(histories, st.integers(1, 5), st.integers(1, 20), st.sets(st.integers(0, 3 * COUNT)))
def test_a_run_loses_and_repeats_no_record_in_any_rebalances(
    steps: list[tuple[int, int]], concurrency: int, max_ahead: int, failing: set[int]
) -> None:
    """No offset passes a record that is not done, and none that was done begins again."""

    async def work() -> None:
        client, done, begun = Joining(), set[str](), Counter[str]()
        failed = {f"{number % 3}-{number // 3}" for number in failing}
        commit = client.commit

        async def commit_done(offsets: dict[TopicPartition, Any]) -> None:
            for place, at in offsets.items():
                missing = {f"{place.partition}-{offset}" for offset in range(at[0])} - done
                assert not missing
            await commit(offsets)

        client.commit = commit_done  # type: ignore[method-assign]

        async def handle(item: Item) -> None:
            [id] = ids([item])
            begun[id] += 1
            await asyncio.sleep(begun.total() % 3 / 1000)
            if id in failed:
                failed.discard(id)
                begun[id] -= 1
                raise OSError
            done.add(id)

        async with AsyncEventConsumer(client, topics=["orders"], max_records=7) as events:
            running = asyncio.create_task(
                events.run(handle, concurrency=concurrency, max_ahead=max_ahead, tries=2, backoff=0)
            )
            for chosen, turns in steps:
                for _ in range(turns):
                    await asyncio.sleep(0.001)
                await client.rebalance([PARTITIONS[n] for n in range(3) if chosen >> n & 1])
            await client.rebalance(PARTITIONS)
            while len(done) < 3 * COUNT and not running.done():  # noqa: ASYNC110  # a run has no event
                await asyncio.sleep(0.001)
            events.stop()
            await running
        assert set(begun.values()) == {1}
        assert client.committed == dict.fromkeys(PARTITIONS, COUNT)

    run(work())
