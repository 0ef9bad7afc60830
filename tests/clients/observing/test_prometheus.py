"""Figures of `PrometheusObserver`, as Prometheus scrapes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from cloudevents_kafka import (
    AsyncEventConsumer,
    DeadLetters,
    Decoded,
    DeliveryError,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    to_record,
)
from cloudevents_kafka.clients.observing.prometheus import FIGURES, MOST_LABELS, PREFIX, PrometheusObserver
from cloudevents_kafka.primitives.bounded import OTHERS
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer


class Served:
    """A server, which takes half a second to end, for the registry of the current test."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.server, self.thread = start_http_server(0, "127.0.0.1", self)  # type: ignore[arg-type]

    def collect(self) -> Any:
        return self.registry.collect()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Scraped:
    """An observer whose registry is served; `figures` has the samples, by name and values of labels."""

    def __init__(self, served: Served) -> None:
        served.registry = CollectorRegistry()
        self.observer = PrometheusObserver(served.registry)
        self.server = served.server

    @property
    def figures(self) -> dict[tuple[str, ...], float]:
        with urlopen(f"http://127.0.0.1:{self.server.server_port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        found = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                name = sample.name.removeprefix(PREFIX)
                assert name != sample.name
                labels, _ = (
                    FIGURES[name.removesuffix("_count").removesuffix("_sum")]
                    if (name.endswith(("_count", "_sum")))
                    else FIGURES.get(name, ((), ""))
                )
                if name.endswith(("_created", "_bucket")):
                    continue
                assert set(sample.labels) == set(labels)
                found[name, *(sample.labels[label] for label in labels)] = sample.value
        return found


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    found = Served()
    yield found
    found.close()


@pytest.fixture
def scraped(served: Served) -> Scraped:
    return Scraped(served)


def message(number: int, *, age: float = 0, type: str = "t", partition: int = 0) -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type=type, data=number))
    timestamp = int((time.time() - age) * 1000)
    return FakeMessage("in", record.value, None, record.headers, partition=partition, timestamp=timestamp)


def reader(*messages: FakeMessage) -> FakeConsumer:
    client = FakeConsumer(FakeLog(messages), auto_commit=False)
    client.subscribe(["in"])
    return client


def test_what_is_sent_is_counted(scraped: Scraped) -> None:
    """Deliveries, their bytes, their times, and failures are counted by topic and error."""
    client = FakeProducer()
    client.fail_next("_MSG_TIMED_OUT")
    producer = EventProducer(client, topic="out", observers=[scraped.observer])
    with pytest.raises(DeliveryError):
        producer.send(Event(id="1", source="/s", type="t")).result()
    with producer:
        for number in range(3):
            producer.send(Event(id=str(number), source="/s", type="t", data=b"1234"))
    found = scraped.figures
    assert found["delivered_records_total", "out"] == found["delivery_seconds_count", "out"] == 3
    assert found["delivered_bytes_total", "out"] == 12
    assert found["failed_records_total", "out", "_MSG_TIMED_OUT"] == 1
    assert 0 <= found["delivery_seconds_sum", "out"] < 5


def run_by_threads(client: Any, handler: Any, observer: Any, **options: Any) -> None:
    EventConsumer(client, observers=[observer]).run(handler, idle_timeout=0, backoff=0, **options)


def run_by_tasks(client: Any, handler: Any, observer: Any, **options: Any) -> None:
    async def handle(item: Decoded) -> None:
        handler(item)

    async def main() -> None:
        await AsyncEventConsumer(client, observers=[observer]).run(
            handle, idle_timeout=0, backoff=0, **options
        )

    asyncio.run(main())


@pytest.mark.parametrize("run", [run_by_threads, run_by_tasks])
@pytest.mark.parametrize("action", ["skip", "dead"])
def test_what_is_handled_is_counted(scraped: Scraped, run: Any, action: str) -> None:
    """Records, events by type, verdicts with clauses, handlers, tries and outcomes are counted."""

    def handle(item: Decoded) -> None:
        if item.event.type == "bad":
            raise ValueError("bad")

    letters = DeadLetters(EventProducer(FakeProducer()), topic="dead")
    run(
        reader(message(0), message(1, type="bad"), FakeMessage("in", b"17"), message(3)),
        handle,
        scraped.observer,
        on_failure="skip" if action == "skip" else letters,
        tries=3,
    )
    found = scraped.figures
    assert found["received_records_total", "in"] == 4
    assert found["received_bytes_total", "in"] == 5
    assert (found["events_total", "t"], found["events_total", "bad"]) == (2, 1)
    assert found["refused_records_total", "not-an-event", "K-11"] == 1
    assert found["handling_seconds_count", "in", ""] == 2
    assert found["handling_seconds_count", "in", "ValueError"] == 3
    assert found["retried_records_total", "in", "ValueError"] == 2
    name = "skipped_records_total" if action == "skip" else "dead_records_total"
    assert (found[name, "in", "ValueError"], found[name, "in", "not-an-event"]) == (1, 1)


def test_the_lag_of_each_partition_is_a_figure(scraped: Scraped) -> None:
    """A lag counts offsets that are not committed, and the age of the newest record."""
    client = reader(*[message(number, age=100, partition=number % 2) for number in range(8)])
    events = EventConsumer(client, observers=[scraped.observer])
    first = [next(events.items()) for _ in range(2)]
    places = {item.record.partition for item in first}
    found = scraped.figures
    for partition in places:
        read = sum(item.record.partition == partition for item in first)
        assert found["lag_records", "in", str(partition)] == 4 - read
        assert 100 <= found["lag_seconds", "in", str(partition)] < 130
    events.run(lambda item: None, idle_timeout=0)
    found = scraped.figures
    for partition in ("0", "1"):
        assert (found["lag_records", "in", partition], found["lag_seconds", "in", partition]) == (0, 0)


def test_a_record_in_work_is_lag(scraped: Scraped) -> None:
    """A record whose handler has not returned is not committed, so a handler that hangs is seen."""
    client = reader(*[message(number, age=10) for number in range(3)])
    events = EventConsumer(client, observers=[scraped.observer])
    seen = []

    def handle(item: Decoded) -> None:
        if item.event.data == 2:
            deadline = time.monotonic() + 5
            while scraped.figures["lag_records", "in", "0"] != 1 and time.monotonic() < deadline:
                time.sleep(0.05)
            seen.append(scraped.figures["lag_records", "in", "0"])

    events.run(handle, idle_timeout=0)
    assert seen == [1]
    assert scraped.figures["lag_records", "in", "0"] == 0


def test_a_revoked_partition_has_no_lag(scraped: Scraped) -> None:
    """After a rebalance there are lags of the partitions that the consumer reads only."""
    client = FakeConsumer(FakeLog([message(0)]), auto_commit=False)
    events = EventConsumer(client, topics=["in"], observers=[scraped.observer])
    assert events.poll() is not None
    assert ("lag_records", "in", "0") in scraped.figures
    client.rebalance()
    assert not [name for name in scraped.figures if name[0].startswith("lag")]
    assert events.poll() is not None
    assert ("lag_records", "in", "0") in scraped.figures


def test_a_processor_has_lags(scraped: Scraped) -> None:
    """What a transaction has committed is not lag any more."""
    producer = EventProducer(FakeProducer(transactional=True), topic="out")
    processor = EventProcessor(
        EventConsumer(reader(*map(message, range(3)))),
        producer,
        lambda item: producer.send(item.event),  # type: ignore[union-attr]
        observers=[scraped.observer],
        max_records=2,
    )
    processor.run(idle_timeout=0)
    found = scraped.figures
    assert found["lag_records", "in", "0"] == 0
    assert found["delivered_records_total", "out"] == found["handling_seconds_count", "in", ""] == 3


def test_types_are_bounded(scraped: Scraped) -> None:
    """A figure has the labels that came first; all others are counted together."""
    count = 3 * MOST_LABELS
    messages = [message(number, type=f"t{number}") for number in range(count)]
    for _ in EventConsumer(reader(*messages), observers=[scraped.observer]).batches(idle_timeout=0):
        pass
    found = {name[1]: value for name, value in scraped.figures.items() if name[0] == "events_total"}
    assert len(found) == MOST_LABELS
    assert found[OTHERS] == count - (MOST_LABELS - 1)
    assert found["t0"] == 1


def test_names_agree_with_those_of_a_pipeline() -> None:
    """A figure of the same name has the same labels and the same kind, and times are in seconds in both."""
    watching = pytest.importorskip("cloudevents_kafka.spark.pipeline.watching")
    theirs = {figure.name: figure for figure in watching.FIGURES}
    shared = theirs.keys() & FIGURES.keys()
    assert shared == {"events_total", "lag_records", "lag_seconds"}
    for name in shared:
        assert FIGURES[name][0] == theirs[name].labels
    assert FIGURES["refused_records_total"][0] == theirs["quarantined_records_total"].labels
    assert watching.PREFIX.startswith(PREFIX)


def test_two_clients_may_share_an_observer_and_two_observers_no_registry() -> None:
    """One observer counts for any number of clients; a registry has each name once."""
    registry = CollectorRegistry()
    observer = PrometheusObserver(registry)
    for _ in range(2):
        with EventProducer(FakeProducer(), topic="out", observers=[observer]) as producer:
            producer.send(Event(id="1", source="/s", type="t"))
    assert registry.get_sample_value(f"{PREFIX}delivered_records_total", {"topic": "out"}) == 2
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        PrometheusObserver(registry)
