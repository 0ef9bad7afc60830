"""EventProcessor with a real broker; tests/test_soak_processor.py kills both."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import (
    Decoded,
    Delivery,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    TransactionError,
    Undecodable,
)
from cloudevents_kafka.testing import LocalBroker

COUNT, COPIES = 40, 100


class Topics:
    """A topic with events, and one for their copies."""

    def __init__(self, broker: LocalBroker) -> None:
        self.servers = broker.bootstrap_servers
        self.name = str(uuid.uuid4())
        self.source, self.target = (broker.create_topic(f"{kind}-{self.name}", 2) for kind in ("in", "out"))
        with EventProducer(self.writer(), topic=self.source) as producer:
            for number in range(COUNT):
                producer.send(Event(id=str(number), source="/s", type="t"), key=str(number))

    def reader(self, topic: str, group: str) -> EventConsumer[Consumer, Decoded | Undecodable]:
        settings = {"group.id": f"{group}-{self.name}", "enable.auto.commit": False, "log_level": 0}
        client = Consumer({"bootstrap.servers": self.servers, "auto.offset.reset": "earliest", **settings})
        client.subscribe([topic])
        return EventConsumer(client)

    def writer(self, **settings: Any) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 0, "log_level": 0, **settings})

    def copies(self) -> Counter[str]:
        with self.reader(self.target, "copies") as events:
            return Counter(
                item.event.id for item in events.items(idle_timeout=3) if isinstance(item, Decoded)
            )


@pytest.fixture
def topics(kafka_broker: LocalBroker) -> Topics:
    return Topics(kafka_broker)


@pytest.mark.broker
def test_transactions_are_aborted_with_much_on_its_way(topics: Topics) -> None:
    """The client survives each abort; what was removed by it is aborted, and the copies are there once."""
    client = topics.writer(**{"transactional.id": topics.name})
    producer = EventProducer(client, topic=topics.target)
    failures, deliveries = [3, 11, 25, 40], []

    def copy(item: Decoded | Undecodable) -> None:
        assert isinstance(item, Decoded)
        for number in range(COPIES):
            event = Event(id=f"{item.event.id}-{number}", source="/s", type="t", data=b"x" * 2_000)
            deliveries.append(producer.send(event, key=str(number)))
        if failures and len(deliveries) > failures[0] * COPIES:
            del failures[0]
            raise ZeroDivisionError

    with topics.reader(topics.source, "copy") as events:
        processor = EventProcessor(events, producer, copy, max_records=20)
        done = 0
        while done < COUNT:  # the first run may end before the group has begun
            try:
                done += processor.run(idle_timeout=1)
            except ZeroDivisionError:
                continue
    assert not failures
    producer.close()
    assert topics.copies() == {f"{n}-{copy}": 1 for n in range(COUNT) for copy in range(COPIES)}
    kinds = Counter(map(_outcome, deliveries))
    assert kinds["delivered"] >= COUNT * COPIES
    assert kinds.keys() <= {"delivered", "aborted"}


def _outcome(delivery: Delivery) -> str:
    assert delivery.done
    return "aborted" if delivery.aborted else "failed" if delivery.error else "delivered"


@pytest.mark.broker
def test_another_process_with_the_same_id_ends_this_one(topics: Topics) -> None:
    """The one that began first is fenced: its transaction is aborted, and the error says what to do."""
    settings = {"transactional.id": topics.name}
    producer = EventProducer(topics.writer(**settings), topic=topics.target)
    other = topics.writer(**settings)

    def copy(item: Decoded | Undecodable) -> None:
        if other is not None and item.record.offset == 3:
            other.init_transactions(30)
        producer.send_record(item.record)

    with (
        topics.reader(topics.source, "copy") as events,
        pytest.raises(TransactionError, match=r"another process has the same transactional.id"),
    ):
        EventProcessor(events, producer, copy).run(idle_timeout=20)
    assert topics.copies() == {}


@pytest.mark.broker
def test_the_consumer_of_a_fenced_producer_goes_on_with_its_batch(topics: Topics) -> None:
    """A new producer, with which the same consumer goes on, writes each record once."""
    settings, others = {"transactional.id": topics.name}, list[Producer]()

    def copy(item: Decoded | Undecodable) -> None:
        if not others and item.record.offset == 3:
            others.append(topics.writer(**settings))
            others[0].init_transactions(30)
        producer.send_record(item.record)

    with topics.reader(topics.source, "copy") as events:
        producer = EventProducer(topics.writer(**settings), topic=topics.target)
        with pytest.raises(TransactionError, match=r"another process has the same transactional.id"):
            EventProcessor(events, producer, copy).run(idle_timeout=20)
        producer = EventProducer(topics.writer(**settings), topic=topics.target)
        assert EventProcessor(events, producer, copy).run(idle_timeout=3) == COUNT
    assert topics.copies() == {str(number): 1 for number in range(COUNT)}


@pytest.mark.broker
def test_a_batch_that_takes_longer_than_a_transaction_may_is_several(topics: Topics) -> None:
    """Slow records are committed in transactions that end in time, by default a tenth of the time-out."""
    client = topics.writer(**{"transactional.id": topics.name, "transaction.timeout.ms": 1000})
    producer, ends = EventProducer(client, topic=topics.target), set[float]()

    def copy(item: Decoded | Undecodable) -> None:
        time.sleep(0.03)  # the handler is slow: 40 records take longer than the time-out
        ends.add(processor._time._began or 0)
        producer.send_record(item.record)

    with topics.reader(topics.source, "copy") as events:
        processor = EventProcessor(events, producer, copy, transaction_timeout=1)
        done = 0
        while done < COUNT:  # the first run may end before the group has begun
            done += processor.run(idle_timeout=1)
    assert len(ends) >= COUNT / 5
    assert topics.copies() == {str(number): 1 for number in range(COUNT)}


@pytest.mark.broker
@pytest.mark.release
@pytest.mark.slow
def test_a_transaction_that_the_broker_timed_out_is_reported_as_that(topics: Topics) -> None:
    """The error names the slow record, its seconds and the setting, and the next process goes on."""
    settings = {"transactional.id": topics.name, "transaction.timeout.ms": 1000}
    producer, slow = EventProducer(topics.writer(**settings), topic=topics.target), list[str]()

    def copy(item: Decoded | Undecodable) -> None:
        producer.send_record(item.record, partition=0)
        if not slow:
            slow.append(item.record.where)
            began = time.monotonic()
            wait_until_aborted()
            # The broker may be early: then the time that is not known is too short to name it as the reason.
            time.sleep(max(0.0, began + 7 - time.monotonic()))

    def wait_until_aborted() -> None:
        """Wait for a record behind the transaction, which can be read when the broker has ended that."""
        producer.producer.flush()
        with EventProducer(topics.writer(), topic=topics.target) as later:
            later.send(Event(id="later", source="/s", type="t"), partition=0)
        with topics.reader(topics.target, "later") as behind:
            next(behind.items())

    with topics.reader(topics.source, "copy") as events, pytest.raises(TransactionError) as caught:
        EventProcessor(events, producer, copy).run(idle_timeout=20)
    assert "timed the transaction out: it was open for" in str(caught.value)
    assert f"s of them for {slow[0]}, and transaction.timeout.ms is 60 s by default" in str(caught.value)
    assert "another process" not in str(caught.value)
    producer = EventProducer(topics.writer(**settings), topic=topics.target)
    with topics.reader(topics.source, "copy") as events:
        assert EventProcessor(events, producer, copy, transaction_timeout=1).run(idle_timeout=10) == COUNT
    assert topics.copies() == {str(number): 1 for number in range(COUNT)} | {"later": 1}


@pytest.mark.broker
def test_a_producer_without_an_id_is_refused(topics: Topics) -> None:
    """The error names the setting that is missing."""
    producer = EventProducer(topics.writer(), topic=topics.target)
    with (
        topics.reader(topics.source, "copy") as events,
        pytest.raises(TransactionError, match=r"create the Producer with a transactional.id$"),
    ):
        EventProcessor(events, producer, print).run(idle_timeout=0)
