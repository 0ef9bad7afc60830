"""Observers of services on a real broker: threads, both clients for asyncio, and a rebalance."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Producer
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProducer,
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    to_record,
)
from cloudevents_kafka.clients.observing import Observer
from cloudevents_kafka.clients.observing.opentelemetry import OpenTelemetryObserver
from cloudevents_kafka.clients.observing.prometheus import PREFIX, PrometheusObserver
from cloudevents_kafka.extensions import hop_trace
from cloudevents_kafka.testing import LocalBroker

pytestmark = pytest.mark.broker
COUNT = 60


class Service:
    """The settings of clients, a topic of three partitions with events, and an observer."""

    def __init__(self, broker: LocalBroker) -> None:
        self.topic = broker.create_topic(f"observed-{uuid.uuid4()}", partitions=3)
        self.out = broker.create_topic(f"observed-{uuid.uuid4()}")
        self.group = f"g-{uuid.uuid4()}"
        self.servers = broker.bootstrap_servers
        self.settings = {"bootstrap.servers": self.servers, "log_level": 0}
        self.reading = {**self.settings, "group.id": self.group, "auto.offset.reset": "earliest"}
        self.registry = CollectorRegistry()
        self.observer = PrometheusObserver(self.registry)
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.observers = [self.observer, OpenTelemetryObserver(provider)]

    def send(self, count: int = COUNT) -> None:
        with EventProducer(self.settings, topic=self.topic, observers=self.observers) as producer:
            for number in range(count):
                producer.send(Event(id=str(number), source="/s", type="t"), key=f"k{number}")

    def figure(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(PREFIX + name, labels)

    def spans(self, name: str) -> dict[int, int | None]:
        """Return the parents of the spans with a name, by the ids of these."""
        found = [span for span in self.exporter.get_finished_spans() if span.name == name]
        return {
            span.get_span_context().span_id: None if span.parent is None else span.parent.span_id
            for span in found
        }

    def age(self) -> float | None:
        return self.figure("lag_seconds", group=self.group, topic=self.topic, partition="0")

    def lags(self) -> dict[str, float]:
        return {
            sample.labels["partition"]: sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == f"{PREFIX}lag_records"
        }


@pytest.fixture
def service(kafka_broker: LocalBroker) -> Service:
    return Service(kafka_broker)


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold in time"
        time.sleep(0.05)


async def run_by_confluent(service: Service, handle: Any) -> None:
    async with (
        AsyncEventProducer(service.settings, topic=service.out, observers=service.observers) as producer,
        AsyncEventConsumer(service.reading, topics=[service.topic], observers=service.observers) as consumer,
    ):
        await consumer.run(handle(producer, consumer), producer=producer, concurrency=4)


async def run_by_aiokafka(service: Service, handle: Any) -> None:
    async with (
        AIOKafkaProducer(bootstrap_servers=service.servers) as writer,
        AIOKafkaConsumer(
            bootstrap_servers=service.servers,
            group_id=service.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as client,
        AsyncEventProducer(writer, topic=service.out, observers=service.observers) as producer,
        AsyncEventConsumer(client, topics=[service.topic], observers=service.observers) as consumer,
    ):
        await consumer.run(handle(producer, consumer), producer=producer, concurrency=4)


@pytest.mark.parametrize("run", [run_by_confluent, run_by_aiokafka])
def test_a_service_of_asyncio_is_counted(service: Service, run: Any) -> None:
    """Each record is received, handled and sent on once, and the lag of each partition ends at 0."""
    service.send()
    left = [COUNT]

    def handle(producer: Any, consumer: Any) -> Any:
        async def handler(item: Decoded) -> None:
            await producer.send(item.event, key=item.record.key)
            left[0] -= 1
            if not left[0]:
                consumer.stop()

        return handler

    asyncio.run(asyncio.wait_for(run(service, handle), 60))
    assert service.figure("received_records_total", topic=service.topic) == COUNT
    assert service.figure("handling_seconds_count", topic=service.topic, error="") == COUNT
    for topic in (service.topic, service.out):
        assert service.figure("delivered_records_total", topic=topic) == COUNT
    lags = service.lags()
    assert lags == dict.fromkeys(lags, 0)
    # Each record that was sent has one trace: of its send, in its handler, of the send that it was read from.
    sent, handled = service.spans(f"send {service.out}"), service.spans(f"process {service.topic}")
    assert set(sent.values()) == handled.keys()
    assert set(handled.values()) == service.spans(f"send {service.topic}").keys()
    reading = {**service.reading, "group.id": f"g-{uuid.uuid4()}"}
    hops = set()
    with EventConsumer(reading, topics=[service.out], strict=True) as events:
        for item in events:
            hop = hop_trace(item.record)  # None if it has several
            assert hop is not None
            hops.add(int(hop.parent_id, 16))
            if len(hops) == COUNT:
                break
    assert hops == sent.keys()


def test_a_processor_is_counted(service: Service) -> None:
    """A processor's transactions are counted: its sends, its handlers, and its lags."""
    service.send()
    transactional = {**service.settings, "transactional.id": str(uuid.uuid4())}
    with (
        EventProducer(transactional, topic=service.out) as producer,
        EventConsumer(service.reading, topics=[service.topic]) as consumer,
    ):

        def handle(item: Any) -> None:
            producer.send(item.event)

        processor = EventProcessor(consumer, producer, handle, observers=service.observers)
        assert processor.run(idle_timeout=3) == COUNT
        assert service.lags() == dict.fromkeys("012", 0)
    # More, if a busy broker has moved the group, and a transaction was repeated.
    assert service.figure("delivered_records_total", topic=service.out) >= COUNT
    assert service.figure("handling_seconds_count", topic=service.topic, error="") >= COUNT


async def read_by_asyncio(service: Service, loop: str, seconds: float) -> None:
    consumer: Any = service.reading
    if loop == "aiokafka":
        consumer = AIOKafkaConsumer(
            bootstrap_servers=service.servers, group_id=service.group, enable_auto_commit=False,
            auto_offset_reset="earliest", isolation_level="read_committed",
        )  # fmt: skip
        await consumer.start()
    async with AsyncEventConsumer(consumer, topics=[service.topic], observers=[service.observer]) as events:
        if loop == "items of asyncio":
            async for item in events.items(idle_timeout=seconds):
                await events.commit(item)
        else:

            async def handle(item: Decoded) -> None:
                return

            await events.run(handle, idle_timeout=seconds)
        assert service.lags() == {"0": 0}
        assert not service.age()


def read(service: Service, loop: str, seconds: float) -> None:
    with EventConsumer(service.reading, topics=[service.topic], observers=[service.observer]) as events:
        if loop == "run":
            events.run(lambda _: None, idle_timeout=seconds)
        elif loop == "items":
            for item in events.items(idle_timeout=seconds):
                events.commit(item)
        else:
            for batch in events.batches(2, idle_timeout=seconds):
                events.commit(batch)
        assert service.lags() == {"0": 0}
        assert not service.age()


@pytest.mark.parametrize(
    "loop",
    [
        *("run", "items of asyncio"),
        *(
            pytest.param(loop, marks=pytest.mark.release)
            for loop in ("items", "batches", "run of asyncio", "aiokafka")
        ),
    ],
)
def test_markers_of_transactions_do_not_count(service: Service, loop: str) -> None:
    """Nothing but markers, and a record that was aborted, is after the last one that was read."""
    client = Producer({**service.settings, "transactional.id": service.group})
    client.init_transactions()
    for number in range(4):
        client.begin_transaction()
        record = to_record(Event(id=str(number), source="/s", type="t"))
        client.produce(service.topic, record.value, headers=record.headers, partition=0)
        client.flush()
        (client.abort_transaction if number == 3 else client.commit_transaction)()
    if loop.endswith(("asyncio", "aiokafka")):
        asyncio.run(read_by_asyncio(service, loop, 2.5))
    else:
        read(service, loop, 2.5)


@pytest.mark.parametrize(
    "kind",
    ["threads", "aiokafka", pytest.param("aiokafka, subscribed on the client", marks=pytest.mark.release)],
)
def test_lags_move_with_their_partitions(service: Service, kind: str) -> None:
    """Through a rebalance each partition has a lag at the member that reads it, and at no other."""
    second = Service.__new__(Service)
    second.registry = CollectorRegistry()
    second.observer = PrometheusObserver(second.registry)
    handled: Counter[str] = Counter()

    class Noting(Observer):
        def __init__(self) -> None:
            self.revoked_partitions = 0

        def revoked(self, notices: Any) -> None:
            self.revoked_partitions += len(notices)

    noting = Noting()
    consumers: list[Any] = []
    threads = []

    def run_in_thread(observers: tuple[Observer, ...]) -> None:
        with EventConsumer(service.reading, topics=[service.topic], observers=observers) as consumer:
            consumers.append(consumer)
            consumer.run(lambda item: handled.update([item.event.id]))

    async def run_by_aiokafka(observers: tuple[Observer, ...]) -> None:
        client = AIOKafkaConsumer(
            bootstrap_servers=service.servers,
            group_id=service.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        topics = [service.topic]
        if kind.endswith("client"):
            client.subscribe(topics)

        async def handle(item: Decoded) -> None:
            handled.update([item.event.id])

        subscribed = None if kind.endswith("client") else topics
        async with client, AsyncEventConsumer(client, topics=subscribed, observers=observers) as consumer:
            consumers.append(consumer)
            await consumer.run(handle)

    def start(*observers: Observer) -> None:
        run = threading.Thread(
            target=partial(run_in_thread, observers)
            if kind == "threads"
            else lambda: asyncio.run(run_by_aiokafka(observers))
        )
        run.start()
        threads.append(run)

    try:
        service.send()
        start(service.observer, noting)
        until(lambda: len(handled) == COUNT and service.lags() == dict.fromkeys("012", 0))
        start(second.observer)
        until(lambda: noting.revoked_partitions > 0 and len(service.lags()) < 3)
        service.send(2 * COUNT)
        until(
            lambda: (
                sum(handled.values()) >= 3 * COUNT
                and service.lags().keys() | second.lags().keys() == set("012")
                and not any([*service.lags().values(), *second.lags().values()])
            )
        )
        assert not service.lags().keys() & second.lags().keys()
        assert second.lags()
    finally:
        for consumer in consumers:
            consumer.stop()
        for run in threads:
            run.join(30)
    assert not service.lags()
    assert not second.lags()
