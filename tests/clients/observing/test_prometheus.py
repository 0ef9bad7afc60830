"""Figures of `PrometheusObserver`, as Prometheus scrapes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import TopicPartition
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
    Record,
    to_record,
)
from cloudevents_kafka.clients.observing import Notice
from cloudevents_kafka.clients.observing.prometheus import (
    FIGURES,
    MOST_LABELS,
    MOST_LAGS,
    PREFIX,
    PrometheusObserver,
)
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, OTHERS
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support.cases import each


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
        assert found["lag_records", "", "in", str(partition)] == 4 - read
        assert 100 <= found["lag_seconds", "", "in", str(partition)] < 130
    events.run(lambda item: None, idle_timeout=0)
    found = scraped.figures
    for partition in ("0", "1"):
        assert (found["lag_records", "", "in", partition], found["lag_seconds", "", "in", partition]) == (
            0,
            0,
        )


def test_a_record_of_the_future_is_as_old_as_its_receipt(
    scraped: Scraped, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a handler hangs with a record of a wrong clock, the lag grows all the same."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    record = Record(value=b"1", timestamp=int((now + 86_400) * 1000))
    place: Any = {"group": "", "consumer": 1, "topic": "in", "partition": 0}
    scraped.observer.received([Notice(**place, offset=0, end=3, record=record)])
    monkeypatch.setattr(time, "time", lambda: now + 30)
    assert scraped.figures["lag_seconds", "", "in", "0"] == 30


def test_a_record_in_work_is_lag(scraped: Scraped) -> None:
    """A record whose handler has not returned is not committed, so a handler that hangs is seen."""
    client = reader(*[message(number, age=10) for number in range(3)])
    events = EventConsumer(client, observers=[scraped.observer])
    seen = []

    def handle(item: Decoded) -> None:
        if item.event.data == 2:
            deadline = time.monotonic() + 5
            while scraped.figures["lag_records", "", "in", "0"] != 1 and time.monotonic() < deadline:
                time.sleep(0.05)
            seen.append(scraped.figures["lag_records", "", "in", "0"])

    events.run(handle, idle_timeout=0)
    assert seen == [1]
    assert scraped.figures["lag_records", "", "in", "0"] == 0


def test_a_revoked_partition_has_no_lag(scraped: Scraped) -> None:
    """After a rebalance there are lags of the partitions that the consumer reads only."""
    client = FakeConsumer(FakeLog([message(0)]), auto_commit=False)
    events = EventConsumer(client, topics=["in"], observers=[scraped.observer])
    assert events.poll() is not None
    assert ("lag_records", "", "in", "0") in scraped.figures
    client.rebalance()
    assert not [name for name in scraped.figures if name[0].startswith("lag")]
    assert events.poll() is not None
    assert ("lag_records", "", "in", "0") in scraped.figures


class Member(FakeConsumer):
    """A client that shows its group as confluent-kafka's does."""

    def __init__(self, group: str, messages: Any, **options: Any) -> None:
        super().__init__(FakeLog(messages), auto_commit=False, **options)
        self.group = group

    def consumer_group_metadata(self) -> Any:
        return b"CGMDv2:\xff\xff\xff\xff" + self.group.encode() + b"\0\0\x01"


def lags(scraped: Scraped) -> dict[tuple[str, ...], float]:
    return {name[1:]: value for name, value in scraped.figures.items() if name[0] == "lag_records"}


def test_the_lag_of_each_group_is_a_figure(scraped: Scraped) -> None:
    """Two groups that read a topic have a lag each, whichever of them was served last."""
    messages = [message(number) for number in range(91)]
    slow, fast = (
        EventConsumer(Member(group, messages), topics=["in"], observers=[scraped.observer])
        for group in ("slow", "fast")
    )
    assert slow.poll() is not None
    fast.run(lambda item: None, idle_timeout=0)
    assert lags(scraped) == {("slow", "in", "0"): 90, ("fast", "in", "0"): 0}


def test_a_partition_that_is_committed_in_on_revoke_has_no_lag(scraped: Scraped) -> None:
    """A function that commits when partitions are revoked is called before their lags are forgotten."""
    client = Member("g", [message(number) for number in range(3)])
    events = EventConsumer(client, observers=[scraped.observer])
    item: Any = None
    events.subscribe(["in"], on_revoke=lambda *_: events.commit(item))
    item = events.poll()
    assert lags(scraped) == {("g", "in", "0"): 2}
    client.rebalance()
    assert client.offsets == {("in", 0): 1}
    assert not lags(scraped)
    events.commit(item)  # too late: the partition may be another member's
    assert not lags(scraped)


@pytest.mark.parametrize("of_run", [False, True], ids=["of the consumer", "of the run"])
@pytest.mark.parametrize("subscribes", [False, True], ids=["the client", "the consumer"])
def test_a_consumer_that_is_closed_has_no_lag(scraped: Scraped, *, of_run: bool, subscribes: bool) -> None:
    """After `close` no lag is left, also without our subscription, and of observers of the run alone."""
    client = Member("g", [message(0)])
    observers = [scraped.observer]
    events = EventConsumer(client, observers=[] if of_run else observers)
    (events if subscribes else client).subscribe(["in"])
    events.run(lambda item: None, idle_timeout=0, observers=observers if of_run else [])
    assert lags(scraped) == {("g", "in", "0"): 0}
    events.close()
    assert not lags(scraped)


def test_a_closed_consumer_for_asyncio_has_no_lag(scraped: Scraped) -> None:
    """The same with asyncio."""

    async def main() -> None:
        async with AsyncEventConsumer(
            Member("g", [message(0)]), topics=["in"], observers=[scraped.observer]
        ) as events:
            assert await events.poll() is not None
            assert lags(scraped) == {("g", "in", "0"): 0}

    asyncio.run(main())
    assert not lags(scraped)


def test_a_partition_that_went_unseen_has_no_lag(scraped: Scraped, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is asked once a second what it has, as its user may subscribe and assign without us."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    client = Member("g", [message(0), message(1, partition=1)])
    client.subscribe(["in"])
    events = EventConsumer(client, observers=[scraped.observer])
    while events.poll() is not None:
        pass
    assert len(lags(scraped)) == 2
    client.unsubscribe()
    client.assign([TopicPartition("in", 1)])
    now += 1.5
    events.poll()
    assert set(lags(scraped)) == {("g", "in", "1")}


def test_a_late_member_takes_no_lag_from_the_next(scraped: Scraped) -> None:
    """A member that learns late that its partition is lost, or commits, changes nothing of the new one's."""
    messages = [message(number) for number in range(5)]
    old, new = (
        EventConsumer(Member("g", messages), topics=["in"], observers=[scraped.observer]) for _ in range(2)
    )
    last = None
    for _ in range(4):
        last = old.poll()
    assert new.poll() is not None
    assert last is not None
    old.commit(last)
    assert lags(scraped) == {("g", "in", "0"): 4}
    old.consumer.rebalance(lost=True)
    old.close()
    assert lags(scraped) == {("g", "in", "0"): 4}
    new.close()
    assert not lags(scraped)


@each("seed", range(20))
def test_lags_are_those_of_a_model(seed: int) -> None:
    """Members of two groups receive, commit and lose partitions in any order, and some learn of it late."""
    random, registry = Random(seed), CollectorRegistry()
    observer = PrometheusObserver(registry)
    owners: dict[tuple[str, int], int] = {}  # the member that has received last
    places: dict[tuple[str, int], tuple[int, int]] = {}  # its received and committed offsets
    at_end: set[tuple[str, int]] = set()  # what is after its last received record are markers
    end = 100
    for _ in range(300):
        group, partition, member = random.choice("ab"), random.randrange(3), random.randrange(3)
        name, offset = (group, partition), random.randrange(end)
        known: Any = {"group": group, "consumer": member + 3 * (group == "b"), "topic": "in", "end": end}
        step = random.choice(["received", "received", "committed", "committed", "reached", "revoked"])
        offset = random.choice([offset, end]) if step == "reached" else offset
        notice = Notice(**known, partition=partition, offset=offset, record=Record(value=b""))
        getattr(observer, step)([notice])
        if step == "received":
            before = places.get(name, (0, -1))[1] if owners.get(name) == member else -1
            owners[name], places[name] = member, (offset + 1, before)
            at_end.discard(name)
        elif owners.get(name) == member and step == "committed":
            places[name] = places[name][0], offset
        elif owners.get(name) == member and step == "reached":
            at_end.discard(name)
            at_end.update([name] * (offset == end))
        elif owners.get(name) == member:
            del owners[name], places[name]
        expected = {
            (
                *name,
                max(0, (received if name in at_end else end) - (received if committed < 0 else committed)),
            )
            for name, (received, committed) in places.items()
        }
        assert expected == {
            (sample.labels["group"], int(sample.labels["partition"]), sample.value)
            for family in registry.collect()
            for sample in family.samples
            if sample.name == f"{PREFIX}lag_records"
        }


def test_lags_are_bounded(scraped: Scraped) -> None:
    """Partitions beyond the bound have one lag together: the sum, and the greatest age."""
    count, record = MOST_LAGS + 9, Record(value=b"1", timestamp=int((time.time() - 100) * 1000))
    place: Any = {"group": "g", "consumer": 1, "topic": "in"}
    for number in range(count):
        notice = Notice(**place, partition=number, offset=0, end=3, record=record)
        scraped.observer.received([notice])
    found = lags(scraped)
    assert len(found) == MOST_LAGS
    assert found[OTHERS, OTHERS, OTHERS] == 2 * (count - (MOST_LAGS - 1))
    assert 100 <= scraped.figures["lag_seconds", OTHERS, OTHERS, OTHERS] < 130
    scraped.observer.revoked([Notice(**place, partition=each) for each in range(count)])
    assert not lags(scraped)


def test_labels_are_short(scraped: Scraped) -> None:
    """A type is untrusted input: a long one is counted with all others, so what is scraped is small."""
    messages = [message(number, type=f"{number}" + "x" * 100_000) for number in range(50)]
    messages += [message(50, type="t" * MAX_KEY_LENGTH)]
    for _ in EventConsumer(reader(*messages), observers=[scraped.observer]).batches(idle_timeout=0):
        pass
    found = {name[1]: value for name, value in scraped.figures.items() if name[0] == "events_total"}
    assert found == {OTHERS: 50, "t" * MAX_KEY_LENGTH: 1}


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
    assert found["lag_records", "", "in", "0"] == 0
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
    """A figure of the same name has the same labels, but for the group of lags, and times are in seconds."""
    watching = pytest.importorskip("cloudevents_kafka.spark.pipeline.watching")
    theirs = {figure.name: figure for figure in watching.FIGURES}
    shared = theirs.keys() & FIGURES.keys()
    assert shared == {"events_total", "lag_records", "lag_seconds"}
    for name in shared:
        assert [label for label in FIGURES[name][0] if label != "group"] == list(theirs[name].labels)
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
