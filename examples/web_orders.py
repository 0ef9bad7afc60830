"""A web service, as an ASGI application: POST sends an order as an event, GET returns what the topic has.

BOOTSTRAP_SERVERS=localhost:9092 TOPIC=orders uvicorn --factory web_orders:create

The number of an order is the id of its event, so a client may repeat a request that was not answered.
Each process reads the topic from its start and keeps the orders in memory, so it commits nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from cloudevents_kafka import AsyncEventConsumer, AsyncEventProducer, Decoded, DeliveryError, Event

SEND_SECONDS = 5
POLL_SECONDS = 120

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def create() -> WebOrders:
    """Return the application for the broker and the topic of the environment."""
    servers, topic = os.environ["BOOTSTRAP_SERVERS"], os.environ["TOPIC"]
    settings = {
        "bootstrap.servers": servers,
        "group.id": f"web-orders-{uuid.uuid4()}",
        "auto.offset.reset": "earliest",
    }
    return WebOrders({"bootstrap.servers": servers}, settings, topic)


class WebOrders:
    """The application: it owns its clients, or makes them from settings, until the end of the server."""

    def __init__(self, producer: Any, consumer: Any, topic: str) -> None:
        self.producer = AsyncEventProducer(producer, topic=topic, close_timeout=10)
        self.consumer = AsyncEventConsumer(consumer, topics=[topic], eager_data=True)
        self.orders: dict[str, Any] = {}
        self.reading: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.live(receive, send)
        elif scope["type"] == "http":
            status, body = await self.answer(scope, receive)
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    async def live(self, receive: Receive, send: Send) -> None:
        await receive()  # lifespan.startup
        async with self.producer, self.consumer:
            self.reading = asyncio.create_task(self.read())
            self.reading.add_done_callback(note_end)
            await send({"type": "lifespan.startup.complete"})
            await receive()  # lifespan.shutdown
            self.consumer.stop()
            await asyncio.wait([self.reading])
        await send({"type": "lifespan.shutdown.complete"})

    async def read(self) -> None:
        async for item in self.consumer:
            if isinstance(item, Decoded):  # other records are not orders
                self.orders[item.event.id] = item.event.data

    async def answer(self, scope: Scope, receive: Receive) -> tuple[int, Any]:
        match scope["method"], scope["path"].strip("/").split("/"):
            case "GET", ["health"]:
                return self.health()
            case "POST", ["orders"]:
                return await self.place(await body_of(receive))
            case "GET", ["orders", number]:
                return (200, self.orders[number]) if number in self.orders else (404, "no such order")
        return 404, "POST /orders, GET /orders/NUMBER, or GET /health"

    def health(self) -> tuple[int, Any]:
        """Return 503 if nothing reads any more: a server goes on when a task of the application fails."""
        now = self.consumer.health()
        is_reading = self.reading is not None and not self.reading.done()
        is_well = is_reading and now.seconds_since_poll < POLL_SECONDS
        return 200 if is_well else 503, {"seconds_since_poll": now.seconds_since_poll}

    async def place(self, body: bytes) -> tuple[int, Any]:
        try:
            order = json.loads(body)
            event = Event(id=order["number"], source="/web", type="order.placed", data=order)
        except (KeyError, TypeError, ValueError):
            return 400, "the body must be a JSON object with a number, which is a text"
        try:
            async with asyncio.timeout(SEND_SECONDS):
                delivery = await self.producer.send(event, key=event.id)
        except TimeoutError:
            return 504, "the order may still arrive; repeat the request"
        except DeliveryError as error:
            return 503, f"{error}; repeat the request"
        return 201, {"partition": delivery.partition, "offset": delivery.offset}


def note_end(reading: asyncio.Task[None]) -> None:
    """Log the error of the reader at once: the server goes on."""
    if not reading.cancelled() and (error := reading.exception()):
        logging.getLogger("web_orders").error("the reader has ended", exc_info=error)


async def body_of(receive: Receive) -> bytes:
    """Return the whole body of a request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body
