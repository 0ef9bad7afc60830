"""The commits of a run: each is confirmed by the group, and a client that commits by itself is found."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from random import Random
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from cloudevents_kafka import (
    AsyncEventConsumer,
    ConsumeError,
    Decoded,
    Event,
    EventConsumer,
    to_record,
)
from cloudevents_kafka.clients._places import MARK
from cloudevents_kafka.clients._protocols import stores_offsets
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, LocalBroker
from tests.support.cases import each
from tests.support.wire_broker import WireBroker, faults

SETTINGS: dict[str, Any] = {"group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}


def message(number: int) -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type="t", data=number))
    return FakeMessage("t", record.value, headers=record.headers)


@pytest.fixture
def broker() -> Iterator[WireBroker]:
    with WireBroker("4.3") as broker:
        broker.create_topic("t")
        record = to_record(Event(id="1", source="/s", type="t"))
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for _ in range(5):
            producer.produce("t", record.value, headers=record.headers)
        producer.flush()
        yield broker


class Reading:
    """A run of either kind, which ends when the group has an offset, or after some seconds.

    With ``holds``, no handler returns before the group has any offset.
    """

    def __init__(self, broker: WireBroker, offset: int, *, holds: bool = False) -> None:
        self.broker, self.offset, self.holds = broker, offset, holds
        self.until = time.monotonic() + 30

    @property
    def committed(self) -> int:
        place = self.broker.committed_offsets("g").get(("t", 0))
        return -1001 if place is None else place.offset

    @property
    def settings(self) -> dict[str, Any]:
        return {**SETTINGS, "bootstrap.servers": self.broker.bootstrap_servers}

    def end(self, events: Any, before_end: list[int]) -> None:
        while self.committed != self.offset and time.monotonic() < self.until:
            time.sleep(0.05)
        before_end.append(self.committed)
        events.stop()

    @property
    def is_held(self) -> bool:
        return self.holds and self.committed < 0 and time.monotonic() < self.until

    def handle(self, _: Decoded) -> None:
        while self.is_held:
            time.sleep(0.05)

    def run(self, kind: str) -> int:
        """Return the offset that the group had before the end of the run."""
        found = list[int]()
        if kind == "threads":
            with EventConsumer(self.settings, topics=["t"]) as events:
                thread = threading.Thread(target=self.end, args=(events, found))
                thread.start()
                events.run(self.handle)
        else:
            asyncio.run(self._run(found, kind))
        return found[0]

    async def _run(self, found: list[int], kind: str) -> None:
        async def handle(_: Decoded) -> None:
            while self.is_held:  # noqa: ASYNC110  # the broker has no event
                await asyncio.sleep(0.05)

        client: Any = self.settings
        if kind == "aiokafka":
            import aiokafka

            client = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=self.broker.bootstrap_servers, group_id="g", enable_auto_commit=False,
                auto_offset_reset="earliest",
            )  # fmt: skip
            await client.start()
        async with AsyncEventConsumer(client, topics=["t"]) as events:
            ending = asyncio.get_running_loop().run_in_executor(None, self.end, events, found)
            await events.run(handle)
            await ending


@pytest.mark.parametrize("code", [27, 22, 28])
@pytest.mark.parametrize("kind", ["threads", "asyncio", "aiokafka"])
def test_a_refused_commit_is_logged_and_made_again(
    broker: WireBroker, kind: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The group has the offset while the run goes on, although nothing more is read."""
    broker.faults.add(faults.error(code), api=ApiKey.OFFSET_COMMIT)
    with caplog.at_level(logging.WARNING, "cloudevents_kafka.run"):
        assert Reading(broker, 5).run(kind) == 5
    assert "offsets were not committed: " in caplog.text


@pytest.mark.parametrize("kind", ["threads", "asyncio", "aiokafka"])
def test_a_new_group_gets_the_offset_of_the_first_record_before_it_is_handled(
    broker: WireBroker, kind: str
) -> None:
    """If the process is killed, ``auto.offset.reset`` does not skip the record, even if it is ``latest``."""
    assert Reading(broker, 0, holds=True).run(kind) == 0


def disturb(broker: WireBroker, random: Random) -> None:
    """Let the group refuse commits, hang up and hesitate for some seconds."""
    refusals = [faults.error(code) for code in (27, 22, 28, 16, 15, 14, 12, 25, 7)]
    others = [faults.drop_before(), faults.drop_after(), faults.delay(random.random()), faults.error(14)]
    for _ in range(random.randint(2, 9)):
        commits = random.random() < 0.7
        fault = random.choice([*refusals, *others] if commits else others)
        api = ApiKey.OFFSET_COMMIT if commits else ApiKey.OFFSET_FETCH
        broker.faults.add(fault, api=api, times=random.randint(1, 3))
        time.sleep(random.random())
    broker.faults.clear()


@pytest.mark.release
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["threads", "asyncio", "aiokafka"])
def test_the_group_has_the_offset_after_any_answers(broker: WireBroker, kind: str, seed: int) -> None:
    """A run goes on through any answers to its commits and questions, and the last commit arrives."""
    disturbing = threading.Thread(target=disturb, args=(broker, Random(f"{kind}{seed}")))
    disturbing.start()
    assert Reading(broker, 5).run(kind) == 5
    disturbing.join()


class ShortMetadata(FakeConsumer):
    """A client whose group refuses what is after an offset, as with a low offset.metadata.max.bytes."""

    def __init__(self, *args: Any, raises: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self.raises, self.refused = raises, 0

    def commit(self, *, offsets: Any, asynchronous: bool = True) -> Any:  # type: ignore[override]
        short = [place for place in offsets if place.metadata == MARK]
        self.refused += len(short) < len(offsets)
        error = KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE)
        if len(short) == len(offsets):
            return super().commit(offsets=offsets, asynchronous=asynchronous)
        if self.raises:  # as aiokafka's does in each case
            raise KafkaException(error)
        return [SimpleNamespace(topic=each.topic, partition=each.partition, error=error) for each in offsets]


@each("waits", [False, True])
@each("raises", [False, True])
def test_an_offset_is_committed_alone_if_the_group_refuses_what_is_after_it(
    *, waits: bool, raises: bool
) -> None:
    """One record hangs, and those after it are done: at the end of a run, and before it, if that waits."""
    messages = [
        FakeMessage("t", each.value(), key=b"%d" % number, headers=each.headers())
        for number, each in enumerate(map(message, range(9)))
    ]
    client = ShortMetadata(FakeLog(messages), raises=raises, auto_commit=False)
    client.subscribe(["t"])
    gate, done = threading.Event(), set[int]()

    def handle(item: Decoded) -> None:
        if item.event.data == 3:
            gate.wait(60)
        done.add(item.event.data)

    def end() -> None:
        until = time.monotonic() + 60
        while (len(done) < 8 or (waits and not client.offsets)) and time.monotonic() < until:
            time.sleep(0.01)
        events.stop()

    with EventConsumer(client) as events:
        ending = threading.Thread(target=end)
        ending.start()
        assert events.run(handle, concurrency=2, stop_timeout=3).handled == 8
        ending.join()
        assert client.offsets == {("t", 0): 3}
        assert client.refused == 1
        gate.set()


CLIENTS = [
    ({}, True),
    ({"enable.auto.commit": False}, True),
    ({"enable.auto.commit": True, "enable.auto.offset.store": False}, False),
    ({"enable.auto.commit": False, "enable.auto.offset.store": False}, False),
    ({"group.protocol": "consumer"}, True),
    ({"group.protocol": "consumer", "enable.auto.offset.store": False}, False),
]


@each(("settings", "stores"), CLIENTS)
@each("assigned", [False, True])
def test_a_client_says_at_once_whether_it_stores_offsets(
    settings: dict[str, Any], *, stores: bool, assigned: bool
) -> None:
    """It needs no broker and no partition, and stores nothing."""
    with closing(Consumer({**SETTINGS, "bootstrap.servers": "127.0.0.1:1", **settings})) as client:
        if assigned:
            client.assign([TopicPartition("t", 0, 3)])
        assert stores_offsets(client) is stores
    fake = FakeConsumer(auto_offset_store=stores)
    assert stores_offsets(fake) is stores
    assert fake.commit(asynchronous=True) is None
    assert fake.offsets == {}


@pytest.mark.parametrize(
    ("stores", "is_passed", "is_asked"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_the_group_is_asked_only_for_a_client_that_may_commit(
    monkeypatch: pytest.MonkeyPatch, *, stores: bool, is_passed: bool, is_asked: bool
) -> None:
    """One that stores no offsets, or is made from settings, has nothing to commit by itself."""
    asked, handled = list[int](), list[Decoded]()

    class Client(FakeConsumer):
        def committed(self, partitions: Any, timeout: float = -1) -> Any:
            asked.append(len(handled))
            return super().committed(partitions, timeout)

    def handle(item: Decoded) -> None:
        time.sleep(1.6)
        handled.append(item)

    client = Client(FakeLog([message(0)]), offsets={("t", 0): 0}, auto_offset_store=stores)
    client.subscribe(["t"])
    monkeypatch.setattr(confluent_kafka, "Consumer", lambda _: client)
    with EventConsumer(client if is_passed else {"bootstrap.servers": "127.0.0.1:1"}) as events:
        events.run(handle, idle_timeout=0)
    assert asked[0] == 0  # of the new partition
    assert (asked.count(0) > 1) is is_asked
    assert client.offsets == {("t", 0): 1}


@pytest.mark.broker
def test_an_automatic_commit_before_the_first_answer_is_set_back(
    kafka_broker: LocalBroker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group does not answer for two seconds, in which the client commits what is unfinished, once."""
    group = f"g-{uuid.uuid4()}"
    servers = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    producer = Producer({**servers, "log_level": 0})
    record = to_record(Event(id="1", source="/s", type="t"))
    for _ in range(2):
        producer.produce(kafka_topic, record.value, headers=record.headers)
    producer.flush()
    until = list[float]()

    class Client(confluent_kafka.Consumer):
        def committed(self, partitions: Any, timeout: float = -1) -> Any:
            until.append(until[0] if until else time.monotonic() + 2)
            if time.monotonic() < until[0]:
                raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(-185))
            return super().committed(partitions, timeout=timeout)

    own = {**SETTINGS, **servers, "group.id": group, "auto.commit.interval.ms": 500}
    client = Client({**own, "enable.auto.commit": True})
    client.subscribe([kafka_topic])
    begun, gate = threading.Event(), threading.Event()

    def handle(_: Decoded) -> None:
        begun.set()
        gate.wait(60)

    def offset() -> int:
        with closing(Consumer({**own, "enable.auto.commit": False})) as other:
            return int(other.committed([TopicPartition(kafka_topic, 0)], timeout=30)[0].offset)

    events, failed = EventConsumer(client), list[BaseException]()

    def run() -> None:
        try:
            events.run(handle, stop_timeout=0.1)
        except ConsumeError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(60)
    end = time.monotonic() + 30
    while (at := offset()) != 0 and time.monotonic() < end:
        time.sleep(0.2)
    assert at == 0
    events.stop()
    gate.set()
    thread.join(60)
    events.close()
