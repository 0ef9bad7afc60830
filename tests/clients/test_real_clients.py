"""EventProducer and EventConsumer with confluent-kafka: its mock cluster, and a real broker."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka import (
    Decoded,
    DeliveryError,
    Event,
    EventConsumer,
    EventProducer,
    NotAnEvent,
    Undecodable,
    to_record,
)
from cloudevents_kafka.testing import LocalBroker

QUIET = {"log_level": 0}
EVENTS = [
    Event(id="json", source="/s", type="t", datacontenttype="application/json", data=b'{ "a" : 1.10 }'),
    Event(id="bytes", source="/s", type="t", data=b"\x00\xff"),
    Event(id="text", source="/s", type="t", datacontenttype="text/plain", data="Euro € 😀"),
    Event(id="empty", source="/s", type="t", datacontenttype="text/plain", data=b""),
    Event(id="none", source="/s", type="t", subject="Euro € 😀", time="2018-04-05T17:31:00.123456789+01:00"),
    Event(id="typed", source="/s", type="t", data="x", sampledrate=7, deprecated=True, dssematerial=b"\x00"),
]
MODES: list[dict[str, Any]] = [
    {"mode": "binary"},
    {"mode": "structured", "format": "json"},
    {"mode": "structured", "format": "avro", "key": b"\xff\x00"},
]


@pytest.fixture(scope="module")
def mock_cluster() -> Iterator[str]:
    """The address of librdkafka's mock cluster, which exists as long as its client."""
    host = Producer({"test.mock.num.brokers": 1, **QUIET})
    metadata = host.list_topics(timeout=10)
    yield ",".join(f"{broker.host}:{broker.port}" for broker in metadata.brokers.values())
    host.flush(1)


@pytest.fixture(params=["mock", pytest.param("real", marks=pytest.mark.broker)])
def servers(request: pytest.FixtureRequest) -> str:
    """The addresses of both kinds of cluster."""
    if request.param == "mock":
        return str(request.getfixturevalue("mock_cluster"))
    return str(request.getfixturevalue("kafka_broker").bootstrap_servers)


@pytest.fixture
def topic() -> str:
    """The name of a topic that is created by the first message."""
    return f"events-{uuid.uuid4()}"


def producing(servers: str, **config: Any) -> Producer:
    return Producer({"bootstrap.servers": servers, "linger.ms": 1, **QUIET, **config})


def reading(servers: str, topic: str, **config: Any) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"g-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **QUIET,
            **config,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def take(events: EventConsumer[Any], count: int) -> list[Decoded | Undecodable]:
    taken = []
    for item in events.items(idle_timeout=20):
        taken.append(item)
        if len(taken) == count:
            break
    return taken


def test_every_event_arrives_as_it_was_sent(servers: str, topic: str) -> None:
    """Events arrive unchanged in all modes and formats, with null and empty values and any keys."""
    with EventProducer(producing(servers), topic=topic) as producer:
        deliveries = [producer.send(event, partition=0, **options) for options in MODES for event in EVENTS]
    with EventConsumer(reading(servers, topic)) as events:
        items = take(events, len(deliveries))
    sent = [to_record(event, **options) for options in MODES for event in EVENTS]
    for delivery, record, item in zip(deliveries, sent, items, strict=True):
        assert isinstance(item, Decoded)
        assert item.event.payload == delivery.event.payload
        received = item.record
        assert (received.key, received.value, received.headers) == (record.key, record.value, record.headers)
        assert (received.partition, received.offset) == (delivery.partition, delivery.offset)
        if record.headers[0][0] == "content-type":  # structured formats keep every type
            assert item.event == delivery.event


def test_null_repeated_and_binary_headers_pass(servers: str, topic: str) -> None:
    """Other headers arrive in order, with nulls and repeats, and do not change the event."""
    foreign: list[tuple[str, str | bytes | None]] = [("a", b"\xff"), ("a", None), ("b", b""), ("a", b"\xff")]
    with EventProducer(producing(servers), topic=topic) as producer:
        producer.send(EVENTS[0], headers=foreign, partition=0)
    with EventConsumer(reading(servers, topic)) as events:
        (item,) = take(events, 1)
    assert isinstance(item, Decoded)
    assert item.record.headers[-4:] == foreign


def test_an_event_of_64_kib_passes(servers: str, topic: str) -> None:
    """Events of 64 KiB pass, as intermediaries must forward them (core: Size Limits)."""
    event = Event(id="1", source="/s", type="t", data=b"x" * 65_536)
    with EventProducer(producing(servers), topic=topic, mode="structured") as producer:
        producer.send(event, partition=0)
    with EventConsumer(reading(servers, topic)) as events:
        (item,) = take(events, 1)
    assert isinstance(item, Decoded)
    assert item.event == event


def test_back_pressure_takes_the_place_of_buffer_errors(servers: str, topic: str) -> None:
    """With a queue of 100 messages, 1,000 arrive in order."""
    small = producing(servers, **{"queue.buffering.max.messages": 100})
    with EventProducer(small, topic=topic) as producer:
        for number in range(1000):
            producer.send(Event(id=str(number), source="/s", type="t"), partition=0)
    with EventConsumer(reading(servers, topic)) as events:
        batches = events.batches(200, 1.0, idle_timeout=20)
        ids: list[str] = []
        while len(ids) < 1000:
            ids += [item.event.id for item in next(batches) if isinstance(item, Decoded)]
    assert ids == [str(number) for number in range(1000)]


def test_foreign_records_do_not_stop_the_loop(servers: str, topic: str) -> None:
    """Other records are Undecodable items with their offsets, between the events."""
    client = producing(servers)
    with EventProducer(client, topic=topic) as producer:
        producer.send(EVENTS[0], partition=0)
        client.produce(topic, value=b"\xff", key=b"\xff", partition=0)
        producer.send(EVENTS[1], partition=0)
    with EventConsumer(reading(servers, topic)) as events:
        first, foreign, last = take(events, 3)
    assert isinstance(first, Decoded)
    assert isinstance(foreign, Undecodable)
    assert isinstance(foreign.error, NotAnEvent)
    assert str(foreign.error).startswith(f"{topic}[0]@1: not a CloudEvent")
    assert isinstance(last, Decoded)


def test_commit_pause_and_seek_are_done_on_the_client(servers: str, topic: str) -> None:
    """After a commit within the loop, another consumer of the group continues after that record."""
    group = {"group.id": f"g-{uuid.uuid4()}"}
    with EventProducer(producing(servers), topic=topic) as producer:
        for number in range(6):
            producer.send(Event(id=str(number), source="/s", type="t"), partition=0)
    with EventConsumer(reading(servers, topic, **group)) as events:
        for item in events.items(idle_timeout=20):
            if item.record.offset == 2:
                events.consumer.commit(asynchronous=False)
                break
        events.consumer.seek(TopicPartition(topic, 0, 1))
        (again,) = take(events, 1)
        assert again.record.offset == 1
    consumer = reading(servers, topic, **group)
    assert consumer.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == 3
    consumer.close()


@pytest.mark.parametrize("by_client", [False, True])
def test_gathered_records_are_dropped_by_a_seek(servers: str, topic: str, *, by_client: bool) -> None:
    """After an error within a batch, a seek on the wrapper or the client is obeyed, and commits are exact."""
    client = producing(servers)
    for value in (to_record(EVENTS[0]), None, *map(to_record, EVENTS[1:4])):
        client.produce(topic, value and value.value, headers=value.headers if value else None, partition=0)
    client.flush(20)
    part = TopicPartition(topic, 0)
    with EventConsumer(reading(servers, topic), strict=True) as events:
        batches = events.batches(5, 20, idle_timeout=20)
        batch = next(batches)
        assert [item.record.offset for item in batch] == [0]
        events.commit(batch)
        with pytest.raises(NotAnEvent) as caught:
            next(batches)
        (committed,) = events.consumer.committed([part], timeout=20)
        assert committed.offset == 1
        if by_client:
            events.consumer.seek(TopicPartition(topic, 0, 3))
        else:
            events.seek(caught.value.record)
            with pytest.raises(NotAnEvent):
                take(events, 1)
            events.seek(TopicPartition(topic, 0, 3))
        items = take(events, 2)
        assert [item.record.offset for item in items] == [3, 4]
        events.commit(items[0])
        (committed,) = events.consumer.committed([part], timeout=20)
        assert committed.offset == items[0].record.next_offset == 4


def test_a_transaction_that_is_aborted_is_not_read(servers: str, topic: str) -> None:
    """Events of a transaction of the wrapped producer are read if it is committed."""
    client = producing(servers, **{"transactional.id": f"tx-{uuid.uuid4()}"})
    client.init_transactions(30)
    producer = EventProducer(client, topic=topic)
    client.begin_transaction()
    producer.send(Event(id="committed", source="/s", type="t"), partition=0)
    client.commit_transaction(30)
    client.begin_transaction()
    aborted = producer.send(Event(id="aborted", source="/s", type="t"), partition=0)
    client.abort_transaction(30)
    producer.flush()  # which does not raise what its user took back
    assert aborted.done
    assert aborted.aborted
    assert "_PURGE" in str(aborted.error)
    client.begin_transaction()
    producer.send(Event(id="after", source="/s", type="t"), partition=0)
    client.commit_transaction(30)
    producer.close()
    with EventConsumer(reading(servers, topic)) as events:
        items = take(events, 2)
    assert [item.event.id for item in items if isinstance(item, Decoded)] == ["committed", "after"]


@pytest.mark.broker
def test_a_tombstone_stays_null_on_a_compacted_topic(kafka_broker: LocalBroker) -> None:
    """An event without data has a null value in binary mode, but not in structured mode."""
    topic = kafka_broker.create_topic(f"compact-{uuid.uuid4()}", config={"cleanup.policy": "compact"})
    event = Event(id="gone", source="/s", type="order.deleted")
    with EventProducer(producing(kafka_broker.bootstrap_servers), topic=topic) as producer:
        producer.send(event, key="order-1", partition=0)
        producer.send(event, key="order-2", partition=0, mode="structured").result(20)
        with pytest.raises(
            DeliveryError, match="validate"
        ):  # a compacted topic takes no record without a key
            producer.send(event, partition=0).result(20)
    with EventConsumer(reading(kafka_broker.bootstrap_servers, topic)) as events:
        binary, structured = take(events, 2)
    assert isinstance(binary, Decoded)
    assert isinstance(structured, Decoded)
    assert binary.record.value is None
    assert binary.event == structured.event == event
    assert structured.record.value is not None


@pytest.mark.broker
def test_nothing_acknowledged_is_lost_when_the_broker_dies() -> None:
    """Events that are sent while a broker is killed and started again arrive once each."""
    with LocalBroker() as broker:
        topic = broker.create_topic("orders")
        client = producing(
            broker.bootstrap_servers, **{"enable.idempotence": True, "reconnect.backoff.max.ms": 200}
        )
        with EventProducer(client, topic=topic) as producer:
            for number in range(500):
                producer.send(Event(id=str(number), source="/s", type="t"))
                if number == 250:
                    producer.flush()
                    broker.kill()
                    broker.start()
        with EventConsumer(reading(broker.bootstrap_servers, topic)) as events:
            ids = [item.event.id for item in take(events, 500) if isinstance(item, Decoded)]
    assert ids == [str(number) for number in range(500)]


@pytest.mark.release  # tests/clients/test_consumer_errors.py has a broker that is away
@pytest.mark.broker
def test_a_broker_that_stays_away_fails_deliveries_in_time() -> None:
    """The message timeout of the client ends the wait, and the error has every lost event."""
    with LocalBroker() as broker:
        topic = broker.create_topic("orders")
        client = producing(broker.bootstrap_servers, **{"message.timeout.ms": 500})
        producer = EventProducer(client, topic=topic)
        producer.send(EVENTS[0]).result(20)
    producer.send(EVENTS[1])
    with pytest.raises(DeliveryError, match="1 event was not delivered") as caught:
        producer.flush(30)
    assert [delivery.event for delivery in caught.value.failed] == [EVENTS[1]]


@pytest.mark.parametrize("reads", ["poll", "items", "batches"])
def test_another_thread_may_close_a_consumer_that_reads(mock_cluster: str, topic: str, reads: str) -> None:
    """The client lets no other call through while one thread polls again and again, so `poll` must end."""
    events = EventConsumer(reading(mock_cluster, topic), topics=[topic])
    has_polled, errors = threading.Event(), list[RuntimeError]()

    def read() -> None:
        has_polled.set()
        try:
            if reads == "poll":
                while True:
                    events.poll(0.2)
            list(getattr(events, reads)())
        except RuntimeError as error:  # of a closed consumer
            errors.append(error)

    loop, closing = (threading.Thread(target=each, daemon=True) for each in (read, events.close))
    loop.start()
    has_polled.wait()
    closing.start()
    for thread in (closing, loop):
        thread.join(20)
        assert not thread.is_alive()
    assert errors or reads != "poll"


@pytest.mark.parametrize("arrive", [False, True])
@pytest.mark.parametrize("reads", ["items", "batches"])
def test_another_thread_may_commit_while_a_loop_waits_for_records(
    mock_cluster: str, topic: str, reads: str, *, arrive: bool
) -> None:
    """The client makes one call at a time, and a loop leaves it to other threads, even if records arrive."""

    def commit() -> None:
        for _ in range(3):
            time.sleep(0.1)  # meanwhile, the loop has the client
            events.commit(items)

    with EventProducer(producing(mock_cluster), topic=topic) as producer:
        producer.send(EVENTS[0], partition=0)
        producer.flush()
        events = EventConsumer(reading(mock_cluster, topic))
        items = take(events, 1)
        loop = threading.Thread(target=lambda: list(getattr(events, reads)()), daemon=True)
        committing = threading.Thread(target=commit, daemon=True)
        loop.start()
        committing.start()
        for _ in range(400):
            if arrive and committing.is_alive():
                producer.send(EVENTS[0], partition=0)
            committing.join(0.05)
    assert not committing.is_alive()
    events.close()


def test_the_batch_call_of_the_client_is_not_used() -> None:
    """confluent-kafka's produce_batch drops headers silently, so it is not called."""
    used: list[str] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            used.append(name)
            return lambda *_, **__: 0

    with EventProducer(Watched(), topic="t") as producer:
        producer.send(EVENTS[0])
    assert set(used) == {"produce", "poll", "flush"}
