"""Calls that type checkers refuse, each in the line of its comment; tests/test_typing.py counts them."""

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
)
from cloudevents_kafka.testing import FakeConsumer, FakeProducer

client = FakeConsumer()
event = Event(id="1", source="/", type="t")
sender = EventProducer(FakeProducer())
async_sender = AsyncEventProducer(FakeProducer())


def handle(item: Decoded) -> None: ...
async def handle_async(item: Decoded) -> None: ...


Event(source="/", type="t")  # refused: no id
Event(id="1", type="t")  # refused: no source
Event(id="1", source="/")  # refused: no type
Event("1", "/", "t")  # refused: attributes go by name
event.data = 1  # refused: events are read-only
event.extension("attempt", list)  # refused: not a type of attributes
EventConsumer(client, data_type=int, data_reader=lambda event: 1)  # refused: the record is missing
EventConsumer(client, strict=True, idle=1)  # refused: no such option
_ = EventProducer(FakeProducer()).send(event).record  # refused: an event was sent, not a record
EventProducer(FakeProducer()).send("x")  # refused: not an event
EventProducer(FakeProducer()).send({"id": "1"})  # refused: not an event
AsyncEventProducer(FakeProducer()).send({"id": "1"})  # refused: not an event
EventProducer("localhost:9092")  # refused: neither settings nor a client
EventProducer(FakeProducer(), observers=["x"])  # refused: not an observer
EventProducer(FakeProducer(), key_mapper="x")  # refused: not a function
EventProcessor(EventConsumer(client), sender, handle)  # refused: records that are not events come, too
AsyncEventProcessor(AsyncEventConsumer(client), async_sender, handle_async)  # refused: they come, too
EventProcessor(EventConsumer(client, data_type=str), sender, handle, on_failure="drop")  # refused: no action
