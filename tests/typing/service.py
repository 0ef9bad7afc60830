"""A service as a user writes it; tests/test_typing.py runs mypy and pyright on it, both strict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_type

import msgspec
import pydantic
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.kafka import to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.v1.http import CloudEvent as OldEvent
from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka import (
    AttributeType,
    BrokenData,
    Codec,
    ConsumeError,
    DeadLetters,
    Decoded,
    Delivery,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    Record,
    Undecodable,
    register_codec,
    register_extension,
    register_format,
)
from cloudevents_kafka.clients.observing import Notice, Observer
from cloudevents_kafka.clients.observing.opentelemetry import OpenTelemetryObserver
from cloudevents_kafka.clients.observing.prometheus import PrometheusObserver
from cloudevents_kafka.clients.typed_data import by_dataschema, by_type
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.testing import FakeConsumer, FakeProducer


class Order(pydantic.BaseModel):
    number: int


class Payment(msgspec.Struct):
    number: int


@dataclass
class Refund:
    number: int


def read_orders(client: Consumer) -> None:
    """The data of the events has the type that was asked for."""
    with EventConsumer(client, data_type=Order) as events:
        for item in events:
            match item:
                case Decoded(event, record):
                    assert_type(event, Event[Order])
                    assert_type(event.data.number, int)
                    assert_type(record, Record)
                    assert_type(record.position, TopicPartition)
                    assert_type(record.next_offset, int)
                case Undecodable(error):
                    if isinstance(error, BrokenData):
                        assert_type(error.record, Record)
            events.commit(item)
        for batch in events.batches(50):
            assert_type(batch, list[Decoded[Order] | Undecodable])
            events.commit(batch)
            events.seek(batch[0])
        assert_type(events.consumer, Consumer)


def strict_items(client: FakeConsumer) -> Iterator[Refund]:
    """With strict all items are decoded."""
    events = EventConsumer(client, strict=True, data_type=Refund)
    assert_type(events.poll(), Decoded[Refund] | None)
    for item in events:
        yield item.event.data
    for batch in EventConsumer(client, strict=True).batches():
        assert_type(batch, list[Decoded[Any]])


def either(client: FakeConsumer, *, strict: bool) -> None:
    """A setting that is known at run time only yields both kinds of items."""
    assert_type(EventConsumer(client, strict=strict).poll(), Decoded[Any] | Undecodable | None)
    assert_type(EventConsumer(client).poll(), Decoded[Any] | Undecodable | None)


def by_types(client: FakeConsumer) -> int:
    """The class of data says which of several types it is, and that of other events has any type."""
    events = EventConsumer(client, strict=True, data_type={"order.placed": Order, "order.paid": Payment})
    for item in events:
        data = item.event.data
        if isinstance(data, Order):
            assert_type(data, Order)
        elif isinstance(data, Payment):
            return assert_type(data, Payment).number
        else:
            return int(data["number"])
    hook = by_type({"order.placed": Order, "order.paid": Payment, "order.sent": length})
    either = EventConsumer(client, data_type=hook).poll()
    data = either.event.data if isinstance(either, Decoded) else None
    return data.number if isinstance(data, Order | Payment) else 0


def decide(error: ConsumeError) -> bool | None:
    return error.final or None


def length(event: Event) -> int:
    """A hook; an Event without a parameter has data of any type."""
    return len(event.payload or b"")


def with_hooks(client: FakeConsumer) -> None:
    """Functions of the event are types of data, too."""
    counted = EventConsumer(client, strict=True, data_type=length, on_error=decide, lenient=True).poll()
    assert_type(counted, Decoded[int] | None)
    EventConsumer(client, data_type=by_dataschema({"https://s.example": print}))
    EventConsumer(client, data_type=Order | None, strict=True)
    assert_type(EventConsumer(client, strict=True, data_type=None).poll(), Decoded[Any] | None)
    EventConsumer(client, data_reader=lambda event, record: (event.id, record.topic), eager_data=True)
    both = EventConsumer(
        client, strict=True, data_type=Order, data_reader=lambda event, record: {"number": 1}
    )
    assert_type(both.poll(), Decoded[Order] | None)


def process(client: Consumer, producer: EventProducer[Producer]) -> None:
    """With on_failure a handler gets events only, and without it what the consumer returns."""

    def of_order(item: Decoded[Order]) -> None:
        producer.send(item.event.replace(type="order.seen"), like=item.record)

    def of_any(item: Decoded[Order] | Undecodable) -> None:
        DeadLetters(producer, topic="bad").send(item, "refused")

    orders = EventConsumer(client, data_type=Order)
    EventProcessor(orders, producer, of_order, on_failure="skip", tries=3)
    EventProcessor(orders, producer, of_order, on_failure=DeadLetters(producer, topic="bad"))
    EventProcessor(orders, producer, of_order, on_failure=lambda item, error: "fail")
    EventProcessor(orders, producer, lambda item: item.event.data.number, on_failure="fail")
    EventProcessor(orders, producer, of_any, max_records=10)
    EventProcessor(orders, producer, of_any, on_failure=None)
    EventProcessor(EventConsumer(client, strict=True, data_type=Order), producer, of_order)


def send(producer: EventProducer[Any], order: Event[Any], record: Record) -> None:
    """The delivery of a record has the record; that of an event has only the event."""
    assert_type(producer.send(order), Delivery)
    assert_type(producer.send(order).result().event, Event[Any])
    assert_type(producer.send_record(record).result(1).record, Record)
    assert_type(producer.send_record(record), Delivery[Record])


class Late(Observer):
    """Has the methods that it needs, with their types."""

    def received(self, notices: Sequence[Notice]) -> None:
        """Look at what is not an event."""
        late = [(notice.topic, notice.offset, notice.clause) for notice in notices if notice.verdict]
        assert_type(late, list[tuple[str | None, int | None, str | None]])

    def sending(self, record: Record) -> dict[str, str]:
        """Add a header."""
        return {"by": record.topic or ""}


def observe(client: Consumer, handle: Callable[[Decoded], None]) -> None:
    """Observers are passed to clients, to a run, and to a processor."""
    spans = OpenTelemetryObserver(attributes={"messaging.consumer.group.name": "mail"})
    observers = [Late(), spans, PrometheusObserver()]
    with EventConsumer(client, observers=observers) as events:
        assert_type(events, EventConsumer[Consumer, Decoded | Undecodable])
        events.run(handle, observers=(Late(),))
    producer = EventProducer({"transactional.id": "1"}, observers=observers)
    EventProcessor(events, producer, handle, on_failure="skip", observers=observers).run()
    for item in events:
        with spans.handling(item) as span:
            span.set_attribute("late", value=True)


event = Event(id="1", source="/", type="t", time=datetime.now().astimezone(), data={"a": 1}, attempt=3)
as_base: BaseCloudEvent = event
to_structured(event, JSONFormat())
assert_type(event.extension("attempt", int), int | None)
assert_type(event.extension("at", datetime), datetime | None)
assert_type(event.read_with(lambda event: 3).data, int)

register_extension("attempt", AttributeType.INTEGER, rule="must be above zero", accepts=lambda n: n > 0)
register_codec("+csv", Codec(lambda payload: payload.decode().split(","), lambda row: ",".join(row).encode()))
register_format("json", lambda: JsonFormat(text_data=True))


def send_with_settings(settings: dict[str, str | int], event: BaseCloudEvent, old: OldEvent) -> None:
    """Settings make a client of confluent-kafka; events of both versions of the SDK are sent, too."""
    with EventProducer(settings, topic="orders") as producer:
        assert_type(producer, EventProducer[Producer])
        assert_type(producer.producer, Producer)
        assert_type(producer.send(event), Delivery)
        producer.send(old)
    letters = DeadLetters(EventProducer(settings), topic="dead", too_large=lambda letter: None)
    assert_type(letters.send(Record(), "no").record, Record)
    assert_type(EventProducer(FakeProducer()).producer, FakeProducer)
