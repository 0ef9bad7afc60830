"""The example of an ASGI application runs on fakes, and on a real broker."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.testing import FakeConsumer, FakeProducer, LocalBroker

EXAMPLE = Path(__file__).parents[3] / "examples" / "web_orders.py"

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def example() -> Any:
    """The example's module."""
    spec = importlib.util.spec_from_file_location("web_orders", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def served(application: Any) -> AsyncIterator[Ask]:
    """Run an application as a server does, and yield a function that sends a request."""
    to_application: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    from_application: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    life = asyncio.create_task(application({"type": "lifespan"}, to_application.get, from_application.put))

    async def ask(method: str, path: str, *body: bytes) -> tuple[int, Any]:
        parts = [{"type": "http.request", "body": part, "more_body": True} for part in body]
        parts.append({"type": "http.request", "body": b"", "more_body": False})
        answers: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return parts.pop(0)

        async def send(message: dict[str, Any]) -> None:
            answers.append(message)

        await application({"type": "http", "method": method, "path": path}, receive, send)
        start, end = answers
        return start["status"], json.loads(end["body"])

    async with asyncio.timeout(60):
        await to_application.put({"type": "lifespan.startup"})
        assert await from_application.get() == {"type": "lifespan.startup.complete"}
        yield ask
        await to_application.put({"type": "lifespan.shutdown"})
        assert await from_application.get() == {"type": "lifespan.shutdown.complete"}
        await life


async def use(ask: Ask) -> None:
    """Place 50 orders at the same time, and ask for each until it is there."""
    orders = [{"number": f"n{number}", "total": "9.50"} for number in range(50)]
    bodies = [json.dumps(order).encode() for order in orders]
    answers = await asyncio.gather(*(ask("POST", "/orders", body[:5], body[5:]) for body in bodies))
    assert {status for status, _ in answers} == {201}
    assert len({(place["partition"], place["offset"]) for _, place in answers}) == 50
    for order in orders:
        while (answer := await ask("GET", f"/orders/{order['number']}")) != (200, order):
            assert answer[0] == 404
            await asyncio.sleep(0.01)
    assert (await ask("GET", "/orders/none"))[0] == 404
    assert (await ask("GET", "/"))[0] == 404
    for wrong in (b"{", b"[]", b"{}", b'{"number": 1}'):
        assert (await ask("POST", "/orders", wrong))[0] == 400


def test_the_example_runs_on_fakes(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders are sent and read; a delivery that fails, and one that takes too long, are answered."""

    async def work() -> None:
        producer = FakeProducer()
        consumer = FakeConsumer(producer.log)
        consumer.subscribe(["orders"])
        async with served(example.WebOrders(producer, consumer, "orders")) as ask:
            await use(ask)
            producer.fail_next("_MSG_TIMED_OUT")
            status, text = await ask("POST", "/orders", b'{"number": "failed"}')
            assert status == 503
            assert "_MSG_TIMED_OUT" in text
            producer.hold = True
            assert (await ask("POST", "/orders", b'{"number": "late"}'))[0] == 504
            producer.hold = False

    monkeypatch.setattr(example, "SEND_SECONDS", 0.2)
    asyncio.run(work())


def test_the_health_of_the_example_is_that_of_its_reader(
    example: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is 503 when the reader has ended, which is logged, while orders are still answered."""

    async def work() -> None:
        producer = FakeProducer()
        consumer = FakeConsumer(producer.log)
        consumer.subscribe(["orders"])
        application = example.WebOrders(producer, consumer, "orders")
        async with served(application) as ask:
            assert (await ask("GET", "/health"))[0] == 200
            consumer.fail_next("TOPIC_AUTHORIZATION_FAILED")
            await asyncio.wait([application.reading])
            assert (await ask("GET", "/health"))[0] == 503
            assert (await ask("POST", "/orders", b'{"number": "1"}'))[0] == 201

    asyncio.run(work())
    assert "TOPIC_AUTHORIZATION_FAILED" in caplog.text


@pytest.mark.broker
def test_the_example_runs_on_a_broker(
    example: Any, kafka_broker: LocalBroker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders are sent and read, by the settings of the environment."""
    monkeypatch.setenv("BOOTSTRAP_SERVERS", kafka_broker.bootstrap_servers)
    monkeypatch.setenv("TOPIC", kafka_topic)
    monkeypatch.setattr(example, "SEND_SECONDS", 30)

    async def work() -> None:
        async with served(example.create()) as ask:
            await use(ask)

    asyncio.run(work())
