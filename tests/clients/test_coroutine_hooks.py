"""A coroutine function is refused wherever a plain function is needed, since nothing would await it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AsyncAvroSerializer
from confluent_kafka.schema_registry.json_schema import AsyncJSONDeserializer

from cloudevents_kafka import (
    AsyncEventConsumer,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
)
from cloudevents_kafka.clients import serdes
from cloudevents_kafka.clients.observing import Observer
from cloudevents_kafka.clients.typed_data import by_dataschema
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeProducer
from tests.support.cases import each


async def hook(*_: Any) -> Any:
    """Do nothing, later."""


class Hook:
    async def __call__(self, *_: Any) -> Any:
        """Do nothing, later."""


def consumer(**options: Any) -> EventConsumer[Any, Any]:
    return EventConsumer(FakeConsumer(FakeLog(()), auto_commit=False), **options)


def process(hook: Any) -> None:
    log = FakeLog(())
    processor = EventProcessor(
        consumer(), EventProducer(FakeProducer(log, transactional=True)), print, on_failure=hook
    )
    processor.run(idle_timeout=0)


async def run_in_asyncio(hook: Any) -> None:
    async with AsyncEventConsumer(FakeConsumer(FakeLog(()), auto_commit=False)) as events:
        await events.run(globals()["hook"], on_failure=hook, idle_timeout=0)


def observe(hook: Any) -> None:
    class Watches(Observer):
        received = hook

    consumer(observers=[Watches()])


TAKES: dict[str, Callable[[Any], object]] = {
    "data_reader": lambda hook: consumer(data_reader=hook),
    "deserializer": serdes.data_reader,
    "data_type": lambda hook: consumer(data_type=hook),
    "data_type of a mapping": lambda hook: consumer(data_type={"t": hook}),
    "check": lambda hook: by_dataschema({None: hook}),
    "reverse_key_mapper": lambda hook: consumer(reverse_key_mapper=hook),
    "on_error": lambda hook: consumer(on_error=hook),
    "on_error in asyncio": lambda hook: AsyncEventConsumer(FakeConsumer(FakeLog(())), on_error=hook),
    "on_failure": lambda hook: consumer().run(print, on_failure=hook, idle_timeout=0),
    "on_failure in asyncio": lambda hook: asyncio.run(run_in_asyncio(hook)),
    "on_failure of a processor": process,
    "Watches.received": observe,
}


@each("name", list(TAKES))
@pytest.mark.parametrize("hook", [hook, Hook()], ids=["a function", "an object"])
def test_a_hook_that_would_not_be_awaited_is_refused(name: str, hook: Any) -> None:
    """The error names the option, before any record is read."""
    match = f"^{name.split(' ', maxsplit=1)[0]} must be a plain function, got a coroutine function$"
    with pytest.raises(TypeError, match=match):
        TAKES[name](hook)


@each("use", ["serializer", "deserializer"])
def test_a_serializer_for_asyncio_is_refused(use: str) -> None:
    """A call of confluent-kafka's serializers for asyncio returns a coroutine, so the error names another."""
    event = Event(id="1", source="/s", type="t")
    uses: dict[str, Callable[[Any], object]] = {
        "serializer": lambda serde: serdes.serialize_data(event, 17, serde, "orders"),
        "deserializer": serdes.data_reader,
    }
    for kind, plain in ((AsyncAvroSerializer, "AvroSerializer"), (AsyncJSONDeserializer, "JSONDeserializer")):
        serde = object.__new__(kind)  # a call of the class returns a coroutine, too
        match = f"^{use} must be a plain function, got {kind.__name__}, which is awaited; pass {plain}$"
        with pytest.raises(TypeError, match=match):
            uses[use](serde)


@each("on_delivery", [hook, Hook(), partial(Hook())])
def test_a_callback_of_a_delivery_that_would_not_be_awaited_fails(
    on_delivery: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The failure is logged, and `callback_error` is set, as if the callback had raised an error."""
    client = FakeProducer()
    client.fail_next("_MSG_TIMED_OUT")
    with EventProducer(client) as producer:
        event = Event(id="1", source="/s", type="t")
        delivery = producer.send(event, "t", on_delivery=on_delivery)
        producer.flush()
    assert "got a function that returns a coroutine" in str(delivery.callback_error)
    assert "on_delivery of event '1' of '/s' has failed" in caplog.text
