"""What observers are called with, by producers, consumers, runs and processors, and that none stops them."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import TopicPartition

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    BrokenEvent,
    DeadLetters,
    Decoded,
    DecodeError,
    DeliveryError,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    Record,
    RunResult,
    Undecodable,
    to_record,
)
from cloudevents_kafka.clients.observing import Notice, Observer
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support.cases import each

Call = tuple[str, Any]
BROKEN: Any = [("ce_specversion", b"1.0"), ("ce_id", b""), ("ce_source", b"/s"), ("ce_type", b"t")]


class Recorder(Observer):
    """Keeps all calls, in their order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def sending(self, record: Record) -> Any:
        self.calls.append(("sending", record))
        return {"seen": record.topic}

    @contextmanager
    def handling(self, item: Any, /) -> Iterator[None]:
        self.calls.append(("handling", item))
        try:
            yield
        except BaseException as error:
            self.calls.append(("error", error))
            raise
        finally:
            self.calls.append(("handled", item))

    def of(self, name: str) -> list[Any]:
        return [what for called, what in self.calls if called == name]

    def counts(self) -> Counter[str]:
        return Counter(name for name, _ in self.calls)


def _recording(name: str) -> Callable[[Recorder, Any], None]:
    def method(self: Recorder, notice: Any) -> None:
        self.calls.append((name, notice))

    return method


NOTICES = (
    *("delivered", "failed", "received", "retried", "skipped", "dead_lettered"),
    *("committed", "reached", "revoked"),
)
for notice in NOTICES:
    setattr(Recorder, notice, _recording(notice))


class Raising(Observer):
    """Raises an error in each method, and at the end of a context manager, or at its beginning."""

    def __init__(self, *, enters: bool) -> None:
        self.enters = enters

    def sending(self, record: Record) -> Any:
        raise RuntimeError("sending")

    def handling(self, item: Any, /) -> Any:
        if not self.enters:
            raise RuntimeError("handling")

        class Manager:
            def __enter__(self) -> None:
                pass

            def __exit__(self, *_: object) -> bool:
                raise RuntimeError("at the end")

        return Manager()


def _raising(name: str) -> Callable[..., None]:
    def method(self: Raising, notice: Any) -> None:
        raise KeyError(name)

    return method


for notice in NOTICES:
    setattr(Raising, notice, _raising(notice))


def event(number: int) -> Event:
    return Event(id=str(number), source="/s", type="t", data=number)


def message(number: int, *, good: bool = True, key: str | None = None, partition: int = 0) -> FakeMessage:
    record = to_record(event(number)) if good else Record(value=b"17", headers=BROKEN)
    return FakeMessage("in", record.value, key, record.headers, partition=partition)


def sent_headers(client: FakeProducer) -> Any:
    return next(iter(client.log)).headers()


def reader(*messages: FakeMessage, **options: Any) -> FakeConsumer:
    client = FakeConsumer(FakeLog(messages), auto_commit=False, **options)
    client.subscribe(["in"])
    return client


# Producers


def test_a_delivery_follows_its_call_of_sending_with_the_same_record() -> None:
    """`delivered` has the place, the sizes, the event, and the record that `sending` has got."""
    seen, client = Recorder(), FakeProducer()
    with EventProducer(client, topic="in", observers=[seen]) as producer:
        producer.send(event(1), key="k")
    [(_, record), (_, notice)] = seen.calls
    assert [name for name, _ in seen.calls] == ["sending", "delivered"]
    assert (record.topic, record.key, record.value) == ("in", b"k", b"1")
    assert notice.record is record
    assert (notice.topic, notice.partition, notice.offset, notice.event) == ("in", 0, 0, event(1))
    assert (notice.value_size, notice.size) == (1, record.wire_size())
    assert 0 <= notice.seconds < 5
    assert (notice.error, notice.error_name, notice.verdict) == (None, "", None)
    assert ("seen", b"in") in sent_headers(client)


def test_any_record_is_observed() -> None:
    """A record that `send_record` sends has no event."""
    seen = Recorder()
    with EventProducer(FakeProducer(), observers=[seen]) as producer:
        producer.send_record(Record(value=b"17"), "in")
    assert seen.of("delivered")[0].event is None


def test_a_failed_delivery_has_its_error() -> None:
    """`failed` has the error of the client, by its name."""
    seen, client = Recorder(), FakeProducer()
    client.fail_next("_MSG_TIMED_OUT")
    with EventProducer(client, topic="in", observers=[seen]) as producer, pytest.raises(DeliveryError):
        producer.send(event(1)).result()
    [notice] = seen.of("failed")
    assert (notice.topic, notice.partition, notice.error_name) == ("in", None, "_MSG_TIMED_OUT")
    assert not seen.of("delivered")


def test_a_message_that_is_refused_has_failed() -> None:
    """A message that the client does not accept has failed, although the call raises its error, too."""
    seen = Recorder()
    producer = EventProducer(FakeProducer(max_bytes=1000), topic="in", observers=[seen])
    with pytest.raises(DeliveryError):
        producer.send(Event(id="1", source="/s", type="t", data=b"x" * 2000))
    assert [each.error_name for each in seen.of("failed")] == ["MSG_SIZE_TOO_LARGE"]
    with pytest.raises(Exception, match="_INVALID_ARG"):
        producer.send(event(1), "x" * 600)
    assert seen.of("failed")[1].error_name == "_INVALID_ARG"
    assert seen.counts() == {"sending": 2, "failed": 2}


def test_what_the_client_does_not_report_has_failed() -> None:
    """A client that reports only failures is an error, which observers see, too."""
    seen = Recorder()

    class Silent(FakeProducer):
        def produce(self, *arguments: Any, on_delivery: Any = None, **options: Any) -> None:
            super().produce(*arguments, **options)

    producer = EventProducer(Silent(), topic="in", observers=[seen])
    producer.send(event(1))
    with pytest.raises(DeliveryError, match="without a report"):
        producer.close()
    [notice] = seen.of("failed")
    assert (notice.topic, notice.partition, notice.offset) == ("in", None, None)


def test_an_interrupted_send_has_no_report() -> None:
    """Ctrl-C while an observer is called ends `send`, and nothing is delivered."""
    seen = Recorder()

    class Interrupted(Observer):
        def sending(self, record: Record) -> Any:
            raise KeyboardInterrupt

    producer = EventProducer(FakeProducer(), topic="in", observers=[seen, Interrupted()])
    with pytest.raises(KeyboardInterrupt):
        producer.send(event(1))
    producer.close()
    assert seen.counts() == {"sending": 1}


def test_headers_replace_those_with_their_names() -> None:
    """A record has each header of observers once, by the last of them; the client appends only others."""
    client = FakeProducer()

    class Instrumented(FakeProducer):
        def produce(self, topic: str, value: Any = None, **options: Any) -> None:
            options["headers"].append(("trace", b"of the client"))
            options["headers"].append(("other", b"of the client"))
            super().produce(topic, value, **options)

    class Tracing(Observer):
        def __init__(self, value: str) -> None:
            self.value = value

        def sending(self, record: Record) -> Any:
            return [("trace", self.value), ("null", None)]

    client = Instrumented()
    observers = [Tracing("first"), Tracing("second")]
    with EventProducer(client, topic="in", observers=observers) as producer:
        producer.send(event(1), headers=[("trace", b"a"), ("trace", b"b"), ("mine", b"c")])
    found = [header for header in sent_headers(client) if not header[0].startswith(("ce_", "content"))]
    assert found == [("mine", b"c"), ("trace", b"second"), ("null", None), ("other", b"of the client")]


def test_a_traceparent_replaces_the_tracestate() -> None:
    """The two headers are one trace; later instrumentation appends neither of them."""

    class Instrumented(FakeProducer):
        def produce(self, topic: str, value: Any = None, **options: Any) -> None:
            options["headers"].append(("tracestate", b"of=the_client"))
            super().produce(topic, value, **options)

    class Tracing(Observer):
        def __init__(self, headers: dict[str, str]) -> None:
            self.headers = headers

        def sending(self, record: Record) -> Any:
            return self.headers

    client = Instrumented()
    before = [("tracestate", b"a=1"), ("mine", b"c"), ("tracestate", b"b=2")]
    for headers in ({"traceparent": "t"}, {"traceparent": "t", "tracestate": "new=1"}, {"other": "t"}):
        EventProducer(client, topic="in", observers=[Tracing(headers)]).send(event(1), headers=before)
    client.flush()
    found = [dict(Record.of(sent).headers).get("tracestate") for sent in client.log]
    assert found == [None, b"new=1", b"of=the_client"]


@pytest.mark.parametrize(
    "headers",
    [{"ce_id": "2"}, {"Content-Type": "text/plain"}, 17, [("a",)], [(1, b"")], {"a": 1}, [("\ud800", b"")]],
)
def test_wrong_headers_are_not_sent(headers: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Headers of the event, and what is not a header, are left out and logged."""

    class Wrong(Observer):
        def sending(self, record: Record) -> Any:
            return headers

    client = FakeProducer()
    with EventProducer(client, topic="in", observers=[Wrong()]) as producer:
        producer.send(event(1))
    assert sent_headers(client) == to_record(event(1)).headers
    [logged] = [each for each in caplog.records if each.name == "cloudevents_kafka.clients.observing"]
    start = "Wrong.sending has failed; such errors are not logged again: Traceback"
    assert logged.getMessage().startswith(start)


@pytest.mark.parametrize("observers", [(), [Observer()]])
def test_without_observers_nothing_is_different(observers: Any) -> None:
    """Without an observer of sends the client gets headers that are a list."""
    given: list[Any] = []

    class Client(FakeProducer):
        def produce(self, topic: str, value: Any = None, **options: Any) -> None:
            given.append(type(options["headers"]))
            super().produce(topic, value, **options)

    with EventProducer(Client(), topic="in", observers=observers) as producer:
        producer.send(event(1))
    assert given == [list]


@each("client", [FakeProducer(), FakeConsumer(FakeLog())])
@each("observers", [Recorder(), [Recorder], ["otel"], [None], None])
def test_other_objects_are_refused(client: Any, observers: Any) -> None:
    """An observer without a list, a class, and an object without the methods raise `TypeError`."""
    kinds = (EventProducer, AsyncEventProducer) if hasattr(client, "produce") else (EventConsumer,)
    for kind in kinds:
        with pytest.raises(TypeError, match="observers must"):
            kind(client, observers=observers)


def test_an_object_of_another_class_may_observe() -> None:
    """Any object with some of the methods is an observer."""
    names = []

    class Own:
        def delivered(self, notice: Notice) -> None:
            names.append(notice.topic)

    with EventProducer(FakeProducer(), topic="in", observers=[Own()]) as producer:  # type: ignore[list-item]
        producer.send(event(1))
    assert names == ["in"]


def test_a_mock_and_an_observer_without_a_hash_may_observe() -> None:
    """Observers that are equal are called each, and mocks have the methods, too."""

    @dataclass
    class Equal(Observer):
        calls: int = 0

        def delivered(self, notice: Notice) -> None:
            self.calls += 1

    mock = Mock(spec=Observer)
    mock.sending.return_value = None
    equal = [Equal(), Equal()]
    with EventProducer(FakeProducer(), topic="in", observers=[mock, *equal]) as producer:
        producer.send(event(1))
    assert [each.calls for each in equal] == [1, 1]
    mock.delivered.assert_called_once()
    mock.failed.assert_not_called()


def test_an_observer_that_is_passed_twice_is_called_once() -> None:
    """A processor and its clients may have the same observer."""
    seen, client = Recorder(), FakeProducer(transactional=True)
    consumer = EventConsumer(reader(message(1)), observers=[seen])
    producer = EventProducer(client, topic="out", observers=[seen])
    EventProcessor(consumer, producer, lambda item: producer.send(item.event), observers=[seen, seen]).run(
        idle_timeout=0
    )
    counts = seen.counts()
    assert counts.pop("revoked", 0) == 0
    counts.pop("reached", 0)
    assert counts == dict.fromkeys(
        ("received", "handling", "handled", "sending", "delivered", "committed"), 1
    )


def test_sends_of_many_threads_end_once_each() -> None:
    """Each call of `sending` is followed by one of `delivered` or `failed`, from any number of threads."""
    seen, client = Recorder(), FakeProducer()
    client.fail_next(*["_MSG_TIMED_OUT"] * 50)
    producer = EventProducer(client, topic="in", observers=[seen])

    def send() -> None:
        for number in range(100):
            producer.send(event(number), on_delivery=lambda delivery: None)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.close()
    sent = Counter(id(record) for record in seen.of("sending"))
    ended = Counter(id(notice.record) for notice in seen.of("delivered") + seen.of("failed"))
    assert sent == ended
    assert (len(sent), len(seen.of("failed"))) == (400, 50)


# Consumers


def test_each_record_is_received_once() -> None:
    """`received` has the place, the end of the partition, the sizes, and for a bad record its verdict."""
    seen = Recorder()
    events = EventConsumer(reader(message(0), message(1, good=False)), observers=[seen])
    assert [type(item) for item in events.items(idle_timeout=0)] == [Decoded, Undecodable]
    [[good], [bad]] = seen.of("received")
    assert (good.topic, good.partition, good.offset, good.end) == ("in", 0, 0, 2)
    assert good.event.data == 0
    assert (good.value_size, good.size, good.verdict) == (1, good.record.wire_size(), None)
    assert (bad.offset, bad.verdict, bad.clause, bad.event) == (1, "broken-event", "R-02", None)
    assert isinstance(bad.error, BrokenEvent)
    assert bad.error_name == "broken-event"


def test_a_batch_is_received_together() -> None:
    """The records of a list of `batches` are in one call."""
    seen = Recorder()
    events = EventConsumer(reader(*map(message, range(5))), observers=[seen])
    assert [len(batch) for batch in events.batches(3, idle_timeout=0)] == [3, 2]
    assert [[notice.offset for notice in notices] for notices in seen.of("received")] == [[0, 1, 2], [3, 4]]


def test_a_refused_record_of_a_strict_consumer_is_received_once() -> None:
    """With ``strict`` the record whose error is raised is in one call, also if a batch ends before it."""
    for read in (EventConsumer.items, EventConsumer.batches):
        seen = Recorder()
        events = EventConsumer(
            reader(message(0), message(1, good=False), message(2)), strict=True, observers=[seen]
        )
        found = []
        while len(found) < 3:
            try:
                for each in read(events, idle_timeout=0):
                    found += each if isinstance(each, list) else [each]
            except DecodeError as error:
                found.append(error)
        offsets = [notice.offset for notices in seen.of("received") for notice in notices]
        assert offsets == [0, 1, 2]


def test_commits_and_revoked_partitions_are_noted() -> None:
    """`committed` has the offset after the record and the end; `revoked` the partition."""
    seen, client = Recorder(), FakeConsumer(FakeLog([message(0), message(1)]), auto_commit=False)
    events = EventConsumer(client, topics=["in"], observers=[seen])
    item = events.poll()
    assert item is not None
    events.commit(item)
    client.rebalance()
    [[committed]], [[revoked]] = seen.of("committed"), seen.of("revoked")
    assert (committed.topic, committed.partition, committed.offset, committed.end) == ("in", 0, 1, 2)
    assert 0 <= committed.seconds < 5
    assert (revoked.topic, revoked.partition) == ("in", 0)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_reached_was_returned(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No noted offset is after a record that the client has returned, and the consumer has not."""
    chance, now = random.Random(seed), 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    seen = Recorder()
    messages = [message(number, partition=number % 2) for number in range(60)]
    events = EventConsumer(
        FakeConsumer(FakeLog(messages), auto_commit=False), topics=["in"], observers=[seen]
    )
    read, noted = Counter[int](), 0
    while sum(read.values()) < len(messages):
        now += chance.choice([0.1, 2.0])
        if chance.random() < 0.5:
            taken = [events.poll(0)]
        else:
            taken = next(events.batches(chance.randint(1, 9), 0, idle_timeout=0), [])
            if chance.random() < 0.3 and taken:  # the rest waits, and is returned again
                events.seek(taken[-1])
                taken.pop()
        for notices in seen.of("reached"):
            noted += 1
            assert all((notice.offset or 0) <= read[notice.partition or 0] for notice in notices)
        seen.calls.clear()
        read.update(item.record.partition or 0 for item in taken if item is not None)
    now += 2
    events.poll(0)
    [last] = seen.of("reached")
    assert {(notice.partition, notice.offset, notice.end) for notice in last} == {(0, 30, 30), (1, 30, 30)}
    assert noted > 1


def test_a_commit_that_fails_is_not_noted() -> None:
    """Partitions whose commit has failed, and calls that raise, are left out."""
    seen = Recorder()

    class Refusing(FakeConsumer):
        def commit(self, *arguments: Any, **options: Any) -> Any:
            raise RuntimeError("away")

    events = EventConsumer(Refusing(FakeLog([message(0)])), topics=["in"], observers=[seen])
    with pytest.raises(RuntimeError, match="away"):
        events.commit(next(events.items()))
    assert not seen.of("committed")


# Runs


class Service:
    """A handler that fails for some numbers, each as often as it has a number."""

    def __init__(self, fails: dict[int, int]) -> None:
        self.fails = dict(fails)

    def __call__(self, item: Decoded) -> None:
        number = item.event.data
        if self.fails.get(number, 0):
            self.fails[number] -= 1
            raise ValueError(number)

    async def asynchronous(self, item: Decoded) -> None:
        await asyncio.sleep(0)
        self(item)


def run_by_threads(client: Any, service: Service, own: Sequence[Observer], **options: Any) -> RunResult:
    return EventConsumer(client, observers=own).run(service, idle_timeout=0, backoff=0, **options)


def run_by_tasks(client: Any, service: Service, own: Sequence[Observer], **options: Any) -> RunResult:
    async def main() -> RunResult:
        events = AsyncEventConsumer(client, observers=own)
        return await events.run(service.asynchronous, idle_timeout=0, backoff=0, **options)

    return asyncio.run(main())


RUNS = pytest.mark.parametrize("run", [run_by_threads, run_by_tasks])


@RUNS
@pytest.mark.parametrize("seed", range(6))
def test_what_observers_see_agrees_with_the_counts_of_a_run(run: Any, seed: int) -> None:
    """In random runs with tries, failures and dead letters there are as many calls as `RunResult` says."""
    choose = random.Random(seed)
    numbers = range(choose.randrange(1, 60))
    bad = {number for number in numbers if choose.random() < 0.1}
    service = Service({number: choose.randrange(5) for number in numbers if choose.random() < 0.4})
    messages = [
        message(number, good=number not in bad, key=f"k{number % 7}", partition=number % 3)
        for number in numbers
    ]
    seen, raising = Recorder(), [Raising(enters=False), Raising(enters=True)]
    letters_seen, log = Recorder(), FakeProducer()
    letters = DeadLetters(EventProducer(log, observers=[letters_seen]), topic="dead")
    action: Any = letters if choose.random() < 0.5 else "skip"
    result = run(
        reader(*messages),
        service,
        [raising[0], seen, raising[1]],
        on_failure=action,
        tries=3,
        concurrency=choose.choice((1, 4)),
    )
    counts = seen.counts()
    assert counts["received"] == len(numbers)
    assert (counts["retried"], counts["skipped"], counts["dead_lettered"]) == (
        *(result.retried, result.skipped, result.dead),
    )
    # A bad record is not passed to the handler; the tries of others are.
    assert counts["handling"] == counts["handled"] == len(numbers) - len(bad) + result.retried
    assert counts["handling"] - counts["error"] == result.handled
    assert result.handled + result.skipped + result.dead == len(numbers)
    assert letters_seen.counts()["delivered"] == result.dead == len([*log.log])
    ends = {(notice.partition): notice.offset for notices in seen.of("committed") for notice in notices}
    assert sum(ends.values()) == len(numbers)
    for notice in seen.of("skipped") + seen.of("dead_lettered"):
        is_bad = notice.event is None
        assert notice.verdict == ("broken-event" if is_bad else None)
        assert notice.attempt == (1 if is_bad else 3)
        assert notice.error_name == ("broken-event" if is_bad else "ValueError")
        assert notice.seconds >= 0
    assert all(notice.seconds == 0 and notice.attempt < 3 for notice in seen.of("retried"))


@RUNS
def test_the_observers_of_a_run_are_called_during_it(run: Any) -> None:
    """`run` accepts observers, too: they are called with what it receives, handles and commits."""
    client, seen, own = reader(message(0), message(1)), Recorder(), Recorder()
    run(client, Service({}), [own], observers=[seen])
    assert seen.counts() == own.counts()
    assert seen.counts() | {"committed": 1} == {"received": 2, "handling": 2, "handled": 2, "committed": 1}


def test_the_observers_of_a_run_are_not_called_after_it() -> None:
    """After the run only the consumer's own observers are called, and those of the run before are not."""
    seen, own = Recorder(), Recorder()
    events = EventConsumer(reader(message(0)), observers=[own])
    events.run(Service({}), idle_timeout=0, observers=[seen])
    before = len(seen.calls)
    events.seek(TopicPartition("in", 0, 0))
    assert events.poll() is not None
    assert len(seen.calls) == before
    assert len(own.of("received")) == 2


@RUNS
def test_the_handler_runs_within_its_observers(run: Any) -> None:
    """The context managers surround the handler, get its error, and cannot suppress it."""
    inner = []

    class Suppressing(Observer):
        @contextmanager
        def handling(self, item: Any, /) -> Iterator[None]:
            inner.append("begin")
            try:
                yield
            except ValueError as error:
                inner.append(repr(error))

    result = run(reader(message(7)), Service({7: 1}), [Suppressing()], on_failure="skip")
    assert inner == ["begin", "ValueError(7)"]
    assert (result.handled, result.skipped) == (0, 1)


@RUNS
def test_an_error_of_an_observer_is_logged_once(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Each kind of error of an observer is logged once, with its traceback, and the run goes on."""
    run(reader(*map(message, range(5))), Service({}), [Raising(enters=True)])
    logged = [each for each in caplog.records if each.name == "cloudevents_kafka.clients.observing"]
    texts = Counter(each.getMessage().split()[0] for each in logged)
    assert texts == {"Raising.received": 1, "Raising.handling": 1, "Raising.committed": 1}
    assert all(each.levelno == logging.WARNING and "Traceback" in each.getMessage() for each in logged)


def test_a_failed_delivery_of_a_handler_is_its_failure() -> None:
    """A record whose sends have failed is retried or skipped with the error of the delivery."""
    seen, client = Recorder(), FakeProducer()
    client.fail_next("_MSG_TIMED_OUT", "_MSG_TIMED_OUT")
    producer = EventProducer(client, topic="out", observers=[seen])
    consumer = EventConsumer(reader(message(0)), observers=[seen])
    consumer.run(
        lambda item: producer.send(item.event),
        producer=producer,
        tries=2,
        backoff=0,
        on_failure="skip",
        idle_timeout=0.1,
    )
    counts = seen.counts()
    assert (counts["sending"], counts["failed"], counts["retried"], counts["skipped"]) == (2, 2, 1, 1)
    [skipped] = seen.of("skipped")
    assert skipped.error_name == "_MSG_TIMED_OUT" or isinstance(skipped.error, DeliveryError)


def test_each_task_has_the_context_of_its_run() -> None:
    """A handler of asyncio has the context in which `run` is awaited, without what others have set."""
    from contextvars import ContextVar

    value: ContextVar[str] = ContextVar("value", default="none")
    found = []

    async def handle(item: Decoded) -> None:
        await asyncio.sleep(0)
        found.append(value.get())
        value.set(f"of {item.event.id}")

    async def main() -> None:
        value.set("of the run")
        await AsyncEventConsumer(reader(*map(message, range(4)))).run(handle, idle_timeout=0, concurrency=2)

    asyncio.run(main())
    assert found == ["of the run"] * 4


# Processors


def process_by_threads(client: Any, writer: Any, service: Service, observers: Any, **options: Any) -> int:
    producer = EventProducer(writer, topic="out")

    def handle(item: Decoded) -> None:
        producer.send(item.event)
        service(item)

    processor = EventProcessor(EventConsumer(client), producer, handle, observers=observers, **options)
    return processor.run(idle_timeout=0)


def process_by_tasks(client: Any, writer: Any, service: Service, observers: Any, **options: Any) -> int:
    async def main() -> int:
        producer = AsyncEventProducer(writer, topic="out")

        async def handle(item: Decoded) -> None:
            producer.send_nowait(item.event)
            await service.asynchronous(item)

        events = AsyncEventConsumer(client)
        processor = AsyncEventProcessor(events, producer, handle, observers=observers, **options)
        return await processor.run(idle_timeout=0)

    return asyncio.run(main())


@pytest.mark.parametrize("process", [process_by_threads, process_by_tasks])
def test_a_processor_is_observed(process: Any) -> None:
    """A transaction has a call for each handler, send and outcome, and one for its commit."""
    seen, writer = Recorder(), FakeProducer(transactional=True)
    messages = [message(0), message(1, good=False), message(2)]
    options = {"on_failure": "skip", "tries": 2, "backoff": 0}
    observers = [Raising(enters=False), seen, Raising(enters=True)]
    assert process(reader(*messages), writer, Service({2: 1}), observers, **options) == 3
    counts = seen.counts()
    assert (counts["skipped"], counts["retried"]) == (1, 1)
    assert [notice.verdict for notice in seen.of("skipped")] == ["broken-event"]
    assert counts["handling"] == counts["handled"] > counts["error"] == 1
    assert counts["sending"] == counts["delivered"] + counts["failed"]
    assert [notices[-1].offset for notices in seen.of("committed")][-1] == 3
    committed = [each for each in writer.log if ("seen", b"out") in each.headers()]
    assert len(committed) == len([*writer.log])


@pytest.mark.parametrize("process", [process_by_threads, process_by_tasks])
def test_an_aborted_transaction_is_not_committed(process: Any) -> None:
    """A handler that raises an error ends the processor: no offset is noted as committed."""
    seen, writer = Recorder(), FakeProducer(transactional=True)
    with pytest.raises(ValueError, match="0"):
        process(reader(message(0)), writer, Service({0: 9}), [seen])
    assert not seen.of("committed")
    assert [type(error) for error in seen.of("error")] == [ValueError]


# asyncio


def test_a_producer_for_asyncio_is_observed() -> None:
    """`AsyncEventProducer` calls its observers as an `EventProducer` does."""
    seen, client = Recorder(), FakeProducer()
    client.fail_next("_MSG_TIMED_OUT")

    async def main() -> None:
        async with AsyncEventProducer(client, topic="in", observers=[seen, Raising(enters=True)]) as producer:
            with pytest.raises(DeliveryError):
                await producer.send(event(0))
            await producer.send(event(1))
            await producer.send_record(Record(value=b"17"))

    asyncio.run(main())
    assert seen.counts() == {"sending": 3, "failed": 1, "delivered": 2}


def test_leaving_a_block_of_asyncio_waits_for_observers() -> None:
    """At the end of the block of an `AsyncEventProducer` its observers have been called, also slow ones."""

    class Slow(Recorder):
        def delivered(self, notice: Any, /) -> None:
            time.sleep(0.05)
            super().delivered(notice)

    seen = Slow()

    async def main() -> None:
        async with AsyncEventProducer(FakeProducer(), topic="in", observers=[seen]) as producer:
            for number in range(3):
                await producer.send(event(number))
        assert seen.counts() == {"sending": 3, "delivered": 3}

    asyncio.run(main())


def test_a_message_for_which_there_is_no_room_has_failed() -> None:
    """`send_nowait` that raises `asyncio.QueueFull` is a failure; `send` waits and begins again."""
    seen, client = Recorder(), FakeProducer(queue_limit=1)
    client.hold = True

    async def main() -> None:
        async with AsyncEventProducer(client, topic="in", observers=[seen]) as producer:
            producer.send_nowait(event(0))
            with pytest.raises(asyncio.QueueFull):
                producer.send_nowait(event(1))
            client.hold = False
            await producer.send(event(2))

    asyncio.run(main())
    assert [each.error_name for each in seen.of("failed")][:1] == ["QueueFull"]
    assert seen.counts()["sending"] == seen.counts()["delivered"] + seen.counts()["failed"]
    assert [each.event.id for each in seen.of("delivered")] == ["0", "2"]


def test_a_consumer_for_asyncio_is_observed() -> None:
    """`AsyncEventConsumer` calls its observers as an `EventConsumer` does, also with batches and commits."""
    seen = Recorder()

    async def main() -> None:
        client = FakeConsumer(FakeLog(map(message, range(4))), auto_commit=False)
        async with AsyncEventConsumer(client, topics=["in"], observers=[seen]) as events:
            assert await events.poll() is not None
            async for batch in events.batches(idle_timeout=0):
                await events.commit(batch)

    asyncio.run(main())
    assert [[each.offset for each in notices] for notices in seen.of("received")] == [[0], [1, 2, 3]]
    assert [[(each.offset, each.end) for each in notices] for notices in seen.of("committed")] == [[(4, 4)]]
