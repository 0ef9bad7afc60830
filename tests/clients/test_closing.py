"""A consumer that closes: a dynamic member leaves its group, and a static member stays in its group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import AsyncEventConsumer, Decoded, Event, EventConsumer, to_record
from cloudevents_kafka.protocol.api_keys import ApiKey
from tests.support.wire_broker import WireBroker


@pytest.fixture
def broker() -> Iterator[WireBroker]:
    with WireBroker("4.3") as broker:
        broker.create_topic("t")
        record = to_record(Event(id="1", source="/s", type="t"))
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        producer.produce("t", record.value, headers=record.headers)
        producer.flush()
        yield broker


def loop(settings: dict[str, Any]) -> None:
    with EventConsumer(settings, topics=["t"]) as events:
        next(iter(events))


def loop_of_a_client(settings: dict[str, Any]) -> None:
    with EventConsumer(Consumer({**settings, "enable.auto.commit": True}), topics=["t"]) as events:
        next(iter(events))


def run(settings: dict[str, Any]) -> None:
    settings["partition.assignment.strategy"] = "cooperative-sticky"
    with EventConsumer(settings, topics=["t"]) as events:
        events.run(lambda _: events.stop())


def run_in_asyncio(settings: dict[str, Any]) -> None:
    async def main() -> None:
        async def handle(_: Decoded) -> None:
            events.stop()

        async with AsyncEventConsumer(settings, topics=["t"]) as events:
            await events.run(handle)

    asyncio.run(main())


@pytest.mark.parametrize("instance", [{}, {"group.instance.id": "one"}], ids=["dynamic", "static"])
@pytest.mark.parametrize("read", [loop, loop_of_a_client, run, run_in_asyncio])
def test_only_a_static_member_stays_in_its_group(
    broker: WireBroker, read: Callable[[dict[str, Any]], None], instance: dict[str, str]
) -> None:
    """A restart of a static member causes no rebalance, and the group has the offset after the record."""
    servers = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    read({**servers, "group.id": "g", "auto.offset.reset": "earliest", **instance})
    stays = len(instance)
    assert (len(broker.calls(ApiKey.LEAVE_GROUP)), len(broker.group("g").members)) == (1 - stays, stays)
    if read is not loop:  # a loop over settings commits nothing by itself
        assert broker.committed_offsets("g")["t", 0].offset == 1


def test_a_static_member_is_informed_when_it_closes(broker: WireBroker) -> None:
    """`on_revoke` is called with the partitions of a static member, which may still commit."""
    servers = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    static = {"group.id": "g", "group.instance.id": "one", "auto.offset.reset": "earliest"}
    revoked = list[int]()
    with EventConsumer({**servers, **static}) as events:
        events.subscribe(["t"], on_revoke=lambda _, places: revoked.extend(p.partition for p in places))
        next(iter(events))
    assert revoked == [0]
