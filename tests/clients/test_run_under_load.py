"""EventConsumer.run with rebalances, slow keys, bounds, and messages that its handlers send, with fakes."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import nullcontext
from typing import Any

import pytest
from confluent_kafka import KafkaError

from cloudevents_kafka import (
    DeadLetter,
    DeadLetters,
    Decoded,
    Event,
    EventConsumer,
    EventProducer,
    Record,
    RunResult,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer


def message(number: int, partition: int = 0, key: str | None = None) -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type="t", data=number))
    return FakeMessage("in", record.value, key, record.headers, partition=partition)


class Service:
    """A service with its own subscription; ``begun`` and ``done`` are numbers of events, in order."""

    def __init__(self, *messages: FakeMessage, topics: list[str] | None = None) -> None:
        self.offsets: dict[tuple[str, int], int] = {}
        self.client = FakeConsumer(FakeLog(messages), offsets=self.offsets, auto_commit=False)
        self.events = EventConsumer(self.client, topics=topics or ["in"])
        self.begun: list[int] = []
        self.done: list[int] = []
        self.gate = threading.Event()

    def handle(self, item: Decoded) -> None:
        """Handle an event; the first waits for the gate."""
        self.begun.append(item.event.data)
        if item.event.data == 0:
            assert self.gate.wait(20)
        self.done.append(item.event.data)

    def start(self, handler: Any = None, **options: Any) -> threading.Thread:
        options = {"concurrency": 4, "idle_timeout": 0.2, **options}
        thread = threading.Thread(target=self.events.run, args=(handler or self.handle,), kwargs=options)
        thread.start()
        return thread


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def rebalanced_at(service: Service, *, lost: bool = False) -> threading.Event:
    """Return an event; after it is set, the next poll revokes all partitions."""
    asked, poll = threading.Event(), service.client.poll

    def poll_with_rebalance(timeout: float = -1) -> Any:
        if asked.is_set():
            asked.clear()
            service.client.rebalance(lost=lost)
            return None
        return poll(timeout)

    service.client.poll = poll_with_rebalance  # type: ignore[method-assign]
    return asked


def test_revoked_partitions_end_with_the_records_in_work() -> None:
    """Queued records are dropped; those in work are waited for and committed before the partitions go."""
    service = Service(*(message(n, key="k") for n in range(9)))
    asked = rebalanced_at(service)
    committed: list[Any] = []
    service.events.subscribe(["in"], on_revoke=lambda *_: committed.append(dict(service.offsets)))
    thread = service.start()
    wait_until(lambda: service.begun == [0])
    asked.set()
    wait_until(lambda: not asked.is_set())
    time.sleep(0.1)
    assert committed == []  # it waits for record 0
    service.gate.set()
    thread.join(20)
    assert committed[0] == {("in", 0): 1}
    assert service.begun == list(range(9))  # the partition was assigned again, and nothing began twice
    assert service.offsets == {("in", 0): 9}


@pytest.mark.parametrize("was_expelled", [False, True])
def test_a_wait_for_revoked_records_is_bounded(
    caplog: pytest.LogCaptureFixture, *, was_expelled: bool
) -> None:
    """After revoke_timeout the partitions go; the unfinished record is not committed, and is named.

    Once the client that was passed has said its max.poll.interval.ms, half of that is the bound.
    """
    service = Service(*(message(n, key=f"k{n}") for n in range(3)))
    asked = rebalanced_at(service)
    if was_expelled:
        late = KafkaError(-147, "Application maximum poll interval (200ms) exceeded by 9ms")
        assert not service.events._gathered.is_record(FakeMessage(error=late))
    thread = service.start(**({} if was_expelled else {"revoke_timeout": 0.1}))
    wait_until(lambda: len(service.done) == 2)
    asked.set()
    wait_until(lambda: "1 record was still unfinished after revoke_timeout" in caplog.text)
    service.gate.set()
    thread.join(20)
    assert sorted(service.begun) == [0, 0, 1, 2]  # what is done after record 0 does not begin again
    assert service.offsets == {("in", 0): 3}


def test_nothing_is_committed_for_lost_partitions() -> None:
    """Another member has them already; nobody waits for what is in work."""
    service = Service(*(message(n, key=f"k{n}") for n in range(3)))
    asked = rebalanced_at(service, lost=True)
    lost: list[Any] = []
    service.events.subscribe(["in"], on_lost=lambda *_: lost.append(dict(service.offsets)))
    thread = service.start(stop_timeout=0.1)
    wait_until(lambda: len(service.done) == 2)
    asked.set()
    wait_until(lambda: lost)
    assert lost == [{}]
    service.events.stop()
    thread.join(20)
    service.gate.set()


@pytest.mark.parametrize("subscribed", [True, False])
def test_a_subscription_of_the_client_is_warned_of_once(
    caplog: pytest.LogCaptureFixture, *, subscribed: bool
) -> None:
    """The run does not learn then which partitions are revoked."""
    service = Service(message(1), message(2))
    service.client.memberid = lambda: "member-1"  # type: ignore[attr-defined,method-assign,unused-ignore]
    if not subscribed:
        service.client.subscribe(["in"])
        service.events = EventConsumer(service.client)
    service.events.run(service.handle, idle_timeout=0)
    service.events.run(service.handle, idle_timeout=0)
    assert caplog.text.count("subscribe by EventConsumer(") == (not subscribed)


def test_topics_are_a_list() -> None:
    """The letters of one name are not topics."""
    with pytest.raises(TypeError, match=r"topics must be a list of names, got 'in'; pass \['in'\]"):
        EventConsumer(FakeConsumer(), topics="in")


def test_few_records_are_repeated_after_a_slow_one(caplog: pytest.LogCaptureFixture) -> None:
    """At most max_ahead records begin after it; other partitions go on; its place and age are logged."""
    messages = [message(n, key=f"k{n}") for n in range(500)]
    messages += [message(n, partition=1, key=f"k{n}") for n in range(500, 1000)]
    service = Service(*messages)
    paused: list[Any] = []
    pause = service.client.pause
    service.client.pause = lambda places: (paused.extend(places), pause(places))  # type: ignore[method-assign,func-returns-value]
    thread = service.start(max_ahead=20, max_age=0.5, max_bytes=700_000)
    wait_until(lambda: len(service.done) == 520)
    time.sleep(1.5)
    assert sorted(service.done) == [*range(1, 21), *range(500, 1000)]
    assert [(place.topic, place.partition) for place in paused] == [("in", 0)]
    assert "in[0]@0 is unfinished after" in caplog.text
    assert caplog.text.count("is unfinished") == 1
    service.gate.set()
    thread.join(20)
    assert sorted(service.done) == list(range(1000))
    assert service.offsets == {("in", 0): 500, ("in", 1): 500}


def test_a_run_leaves_no_partition_paused() -> None:
    """What was read beyond the bound is read again by the next run."""
    service = Service(*(message(n, key=f"k{n}") for n in range(99)), message(99, partition=1))
    thread = service.start(max_ahead=5, stop_timeout=0.2, max_bytes=100_000)
    wait_until(lambda: len(service.done) == 6)
    wait_until(lambda: service.client._paused)
    service.events.stop()
    thread.join(20)
    service.gate.set()
    assert not service.client._paused
    assert service.offsets == {("in", 0): 0, ("in", 1): 1}
    again = EventConsumer(service.client)
    assert again.run(service.handle, idle_timeout=0).handled == 99 - 5
    assert service.offsets == {("in", 0): 99, ("in", 1): 1}


@pytest.mark.parametrize("lost", [False, True])
def test_a_partition_that_was_paused_is_read_after_a_rebalance(*, lost: bool) -> None:
    """The client keeps a pause over a rebalance, so the run ends it; it is not idle before all is read."""
    messages = [message(n, key=f"k{n}") for n in range(300)]
    messages += [message(n, partition=1, key=f"k{n}") for n in range(300, 600)]
    service = Service(*messages)
    asked = rebalanced_at(service, lost=lost)
    thread = service.start(max_ahead=5, revoke_timeout=0.1, max_bytes=200_000)
    wait_until(lambda: ("in", 0) in service.client._paused and len(service.done) == 305)
    asked.set()
    wait_until(lambda: not asked.is_set())
    service.gate.set()
    thread.join(20)
    assert set(service.done) == set(range(600))
    assert service.offsets == {("in", 0): 300, ("in", 1): 300}


def test_a_failure_is_raised_when_the_other_handlers_have_returned() -> None:
    """The next run does not handle a record while an earlier handler of it works."""
    service = Service(*(message(n, key=f"k{n}") for n in range(9)))
    failed, at_work, most = threading.Event(), list[int](), list[int]()

    def handle(item: Decoded) -> None:
        at_work.append(item.event.data)
        most.append(at_work.count(item.event.data))
        if item.event.data == 1 and not failed.is_set():
            wait_until(lambda: 0 in at_work)
            failed.set()
            at_work.remove(1)
            raise OSError
        if item.event.data == 0:
            assert failed.wait(20)
            time.sleep(0.2)
        at_work.remove(item.event.data)
        service.done.append(item.event.data)

    for _ in range(2):
        with pytest.raises(OSError) if not failed.is_set() else nullcontext():
            service.events.run(handle, concurrency=2, idle_timeout=0)
        assert 0 in service.done
    assert max(most) == 1
    assert service.done.count(0) == 1
    assert service.offsets == {("in", 0): 9}


def test_a_run_does_not_begin_while_a_handler_of_the_last_one_works() -> None:
    """It waits for that up to stop_timeout, and is refused then."""
    service = Service(*(message(n, key=f"k{n}") for n in range(3)))
    service.start(stop_timeout=0.1)
    wait_until(lambda: len(service.done) == 2)
    service.events.stop()
    wait_until(lambda: service.events.only_loop.name is None)
    service.events._stopped = False
    with pytest.raises(RuntimeError, match="got 1 record still being handled; limit"):
        service.events.run(service.handle, idle_timeout=0, stop_timeout=0.1)
    assert service.begun.count(0) == 1
    threading.Timer(0.1, service.gate.set).start()
    service.events.run(service.handle, idle_timeout=0)
    assert service.offsets == {("in", 0): 3}


@pytest.mark.parametrize(
    "concurrency",
    [
        pytest.param(1, marks=pytest.mark.release),
        2,
        pytest.param(4, marks=pytest.mark.release),
        7,
        pytest.param(8, marks=pytest.mark.release),
    ],
)
def test_slow_keys_slow_no_other(concurrency: int) -> None:
    """With fewer threads than slow keys they take turns with all others; other partitions do not wait."""
    slow = [message(n, key=f"slow{n % 3}") for n in range(1500)]
    near = [message(n, key=f"k{n}") for n in range(1500, 1600)]
    far = [message(n, partition=1 + n % 2, key=f"k{n}") for n in range(1600, 2200)]
    service = Service(*slow[:600], *near, *slow[600:], *far)
    ended, others, before = threading.Event(), list[int](), list[int]()

    def handle(item: Decoded) -> None:
        if item.event.data < 1500 and not ended.is_set():
            time.sleep(0.002)
        service.done.append(item.event.data)
        if item.event.data >= 1500:
            others.append(item.event.data)
        if len(others) == 700 and not ended.is_set():
            before.append(len(service.done) - 700)
            ended.set()

    thread = service.start(handle, concurrency=concurrency)
    assert ended.wait(60)
    assert before[0] < 700
    thread.join(60)
    assert sorted(service.done) == list(range(2200))


def test_tries_of_a_key_hold_no_other() -> None:
    """Its records wait in order, in no thread, and others are read and handled meanwhile."""
    service = Service(*(message(n, key="bad" if n % 10 == 0 else f"k{n}") for n in range(2000)))
    seen: list[int] = []

    def handle(item: Decoded) -> None:
        if item.record.key == b"bad":
            seen.append(item.event.data)
            raise ConnectionError
        service.done.append(item.event.data)

    thread = service.start(handle, concurrency=1, tries=3, backoff=60, max_ahead=5000, stop_timeout=1)
    wait_until(lambda: len(service.done) == 1800)
    assert seen == [0]
    service.events.stop()
    thread.join(20)


def test_waits_between_tries_differ() -> None:
    """Records that have failed together are not tried again together."""
    from cloudevents_kafka.clients._policy import Policy

    policy = Policy(read=lambda _: None, tries=99, backoff=4)  # type: ignore[arg-type,return-value]
    item = Decoded(Event(id="1", source="/", type="t"), Record(topic="t", partition=0, offset=0))
    waits = [policy.next_try(item, 1, OSError()) for _ in range(99)]
    assert len(set(waits)) > 90
    assert all(wait is not None and 2 <= wait <= 4 for wait in waits)
    later = [policy.next_try(item, 9, OSError()) for _ in range(99)]
    assert all(wait is not None and 15 <= wait <= 30 for wait in later)


def test_log_records_have_fields(caplog: pytest.LogCaptureFixture) -> None:
    """A log of JSON has the place, the key, the try and the error, by loggers whose names stay."""
    service = Service(message(7, key="k"))

    def fail(_: Decoded) -> None:
        raise OSError("no")

    with caplog.at_level(logging.INFO):
        service.events.run(fail, tries=2, backoff=0, on_failure="skip", idle_timeout=0)
    expected = {"topic": "in", "partition": 0, "offset": 0, "key": "k", "error": "OSError('no')"}
    for number, log in enumerate(caplog.records, 1):
        assert log.name == "cloudevents_kafka.run"
        assert vars(log).items() >= {**expected, "attempt": number}.items()
    assert len(caplog.records) == 2


class Outbox:
    """A producer whose reports come when they are asked for."""

    def __init__(self, *fails: str) -> None:
        self.client = FakeProducer()
        self.client.fail_next(*fails)
        self.producer = EventProducer(self.client, topic="out")
        self.may_report = threading.Event()
        poll = self.client.poll

        def poll_when_asked(timeout: float = -1) -> int:
            return poll(timeout) if self.may_report.is_set() else 0

        self.client.poll = poll_when_asked  # type: ignore[method-assign]


def test_a_record_is_done_when_what_its_handler_sent_has_arrived() -> None:
    """Until then it is not committed, and the next record of its key waits; no thread does."""
    service, outbox = Service(message(1, key="a"), message(2, key="a"), message(3, key="b")), Outbox()

    def handle(item: Decoded) -> None:
        service.begun.append(item.event.data)
        outbox.producer.send(item.event)
        outbox.producer.send(item.event)

    thread = service.start(handle, producer=outbox.producer, concurrency=1)
    wait_until(lambda: service.begun == [1, 3])
    time.sleep(1.2)
    assert service.begun == [1, 3]
    assert not any(service.offsets.values())
    outbox.may_report.set()
    thread.join(20)
    assert service.begun == [1, 3, 2]
    assert service.offsets == {("in", 0): 3}
    assert len(outbox.client.log) == 6


@pytest.mark.parametrize("tries", [1, 2])
def test_a_failed_delivery_is_a_failure_of_its_record(tries: int) -> None:
    """It is tried again, then it becomes a dead letter; flush does not raise it again."""
    service, outbox = Service(message(1), message(2)), Outbox("_MSG_TIMED_OUT")
    outbox.may_report.set()
    letters = DeadLetters(EventProducer(FakeProducer()), topic="dead")
    seen: list[Any] = []

    def handle(item: Decoded) -> None:
        outbox.producer.send(item.event, on_delivery=lambda delivery: seen.append(delivery.error is None))

    counts = service.events.run(
        handle, producer=outbox.producer, on_failure=letters, tries=tries, backoff=0, idle_timeout=0.1
    )
    assert counts == (RunResult(handled=1, dead=1) if tries == 1 else RunResult(handled=2, retried=1))
    assert seen == ([False, True] if tries == 1 else [False, True, True])
    outbox.producer.flush()
    found = [DeadLetter.of(Record.of(letter)) for letter in letters.producer.producer.log]
    assert len(found) == (tries == 1)
    assert all("_MSG_TIMED_OUT" in str(letter and letter.error) for letter in found)


def test_sends_of_others_do_not_count() -> None:
    """What another thread sends by the producer at the same time is its own."""
    service, outbox = Service(message(1)), Outbox()

    def handle(item: Decoded) -> None:
        thread = threading.Thread(target=outbox.producer.send, args=(item.event,))
        thread.start()
        thread.join()

    assert service.events.run(handle, producer=outbox.producer, idle_timeout=0.1).handled == 1


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"enable.auto.commit": True}, "enable.auto.commit must be False in the settings, got True"),
        (
            {"max.poll.interval.ms": 60_000},
            "revoke_timeout must be below max.poll.interval.ms, which is 60 s",
        ),
    ],
)
def test_settings_that_a_run_cannot_have_are_refused(settings: dict[str, Any], error: str) -> None:
    """An error names the setting, before a record is read."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **settings}
    with pytest.raises(ValueError, match=error), EventConsumer(settings, topics=["in"]) as events:
        events.run(print, revoke_timeout=60)


def test_a_client_of_settings_is_made_and_closed() -> None:
    """It has what a run needs, and no offset is committed by itself."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
    with EventConsumer(settings, topics=["in"]) as events:
        assert events.is_subscribed
        assert events.run(print, idle_timeout=0) == RunResult()
    with pytest.raises(RuntimeError, match="closed"):
        events.consumer.poll(0)
