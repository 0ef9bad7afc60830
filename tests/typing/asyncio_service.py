"""A service for asyncio as a user writes it; tests/test_typing.py runs both type checkers on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from cloudevents.core.base import BaseCloudEvent
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import (
    AsyncDelivery,
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    Decoded,
    Event,
    Undecodable,
)


@dataclass
class Order:
    number: int


async def read(client: Consumer) -> None:
    """Items have the types that the options ask for."""
    async with AsyncEventConsumer(client) as events:
        assert_type(events.consumer, Consumer)
        events.subscribe(["orders"], on_assign=print, on_revoke=lambda _, partitions: partitions.clear())
        async for item in events:
            assert_type(item, Decoded | Undecodable)
            await events.commit(item)
    async with AsyncEventConsumer(client, strict=True, data_type=Order, max_records=10) as orders:
        async for order in orders.items(idle_timeout=1):
            assert_type(order.event.data, Order)
        async for batch in orders.batches():
            assert_type(batch, list[Decoded[Order]])
        await orders.seek((await anext(aiter(orders))).record)


async def send(client: Producer, event: Event[Any]) -> int | None:
    """Deliveries have the event and where it is."""
    async with AsyncEventProducer(client, topic="orders", max_in_flight=10) as producer:
        assert_type(producer.producer, Producer)
        await producer.drain()
        delivery = producer.send_nowait(event, key="k")
        assert_type(await delivery, AsyncDelivery)
        return (await producer.send(event, "others", headers={"h": b"1"})).offset


async def process(client: Consumer, producer: AsyncEventProducer[Producer]) -> None:
    """With on_failure a handler gets events only, and without it what the consumer returns."""

    async def of_order(item: Decoded[Order]) -> None:
        producer.send_nowait(item.event.replace(type="order.seen"), like=item.record)

    async def of_any(item: Decoded[Order] | Undecodable) -> None:
        await producer.send_record(item.record, "others")

    orders = AsyncEventConsumer(client, data_type=Order)
    await AsyncEventProcessor(orders, producer, of_order, on_failure="skip", tries=3).run()
    await AsyncEventProcessor(orders, producer, of_any, max_records=10).run()
    await AsyncEventProcessor(orders, producer, of_any, on_failure=None).run(idle_timeout=1)


async def send_with_settings(event: BaseCloudEvent) -> None:
    """Settings make a client of confluent-kafka; an SDK's event is sent, too."""
    async with AsyncEventProducer({"bootstrap.servers": "localhost:9092", "linger.ms": 5}) as producer:
        assert_type(producer, AsyncEventProducer[Producer])
        assert_type(await producer.send(event, "orders"), AsyncDelivery)
