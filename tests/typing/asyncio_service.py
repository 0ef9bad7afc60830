"""A service for asyncio as a user writes it; tests/test_typing.py runs both type checkers on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from cloudevents.core.base import BaseCloudEvent
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import (
    AsyncDelivery,
    AsyncEventConsumer,
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


async def send_with_settings(event: BaseCloudEvent) -> None:
    """Settings make a client of confluent-kafka; an SDK's event is sent, too."""
    async with AsyncEventProducer({"bootstrap.servers": "localhost:9092", "linger.ms": 5}) as producer:
        assert_type(producer, AsyncEventProducer[Producer])
        assert_type(await producer.send(event, "orders"), AsyncDelivery)
