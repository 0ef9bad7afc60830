"""EventProducer with a fake client, which tests/testing compares with a real one."""

from __future__ import annotations

import gc
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from cloudevents_kafka import (
    Decoded,
    DeliveryError,
    EncodeError,
    Event,
    EventProducer,
    NotAnEvent,
    Record,
    from_record,
    to_record,
)
from cloudevents_kafka.binding import partition_key
from cloudevents_kafka.testing import FakeConsumer, FakeProducer
from tests.support.cases import each
from tests.support.dying_producer import DyingProducer
from tests.support.strategies import scaled


def order(number: int = 1, **more: Any) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed", data={"number": number}, **more)


def records(fake: FakeProducer) -> list[Record]:
    return [Record.of(message) for message in fake.log]


def test_an_event_is_sent_in_binary_mode_by_default() -> None:
    """The sent record is that of to_record."""
    fake = FakeProducer()
    with EventProducer(fake, topic="orders") as producer:
        producer.send(order())
    (record,) = records(fake)
    assert from_record(record).data == {"number": 1}
    assert record.headers == to_record(order()).headers
    assert record.topic == "orders"
    assert record.key is None


def test_arguments_of_a_call_take_precedence() -> None:
    """Mode, format, key mapper and key of a call take precedence over those of the producer."""
    fake = FakeProducer()
    event = order(partitionkey="p", subject="s")
    with EventProducer(
        fake, topic="t", mode="structured", format="avro", key_mapper=partition_key
    ) as producer:
        producer.send(event)
        producer.send(event, mode="binary", key_mapper=lambda e: e.subject)
        producer.send(event, format="json", key="explicit")
        producer.send(event, topic="elsewhere")
    avro, binary, json, elsewhere = sorted(records(fake), key=lambda r: (r.topic != "t", r.offset))
    assert dict(avro.headers)["content-type"] == b"application/cloudevents+avro"
    assert avro.key == b"p"
    assert dict(binary.headers)["ce_partitionkey"] == b"p"
    assert binary.key == b"s"
    assert dict(json.headers)["content-type"] == b"application/cloudevents+json"
    assert json.key == b"explicit"
    assert elsewhere.topic == "elsewhere"


def test_a_delivery_has_its_event_and_position() -> None:
    """A client's report has no headers; the delivery has the event."""
    fake = FakeProducer()
    fake.hold = True
    producer = EventProducer(fake, topic="orders")
    event = order()
    delivery = producer.send(event)
    assert not delivery.done
    fake.hold = False
    assert delivery.result(5) is delivery
    assert (delivery.event, delivery.topic, delivery.partition, delivery.offset) == (event, "orders", 0, 0)
    assert "orders[0]@0" in repr(delivery)


def test_a_callback_is_called_for_every_delivery() -> None:
    """on_delivery gets successful and failed deliveries, and flush does not raise an error for them."""
    fake = FakeProducer()
    fake.fail_next("_MSG_TIMED_OUT")
    reported: list[Any] = []
    with EventProducer(fake, topic="t") as producer:
        for number in (1, 2):
            producer.send(order(number), on_delivery=reported.append)
    assert [(d.event.id, d.error is None) for d in reported] == [("1", False), ("2", True)]


def test_send_waits_while_the_queue_is_full() -> None:
    """A full queue raises no BufferError and loses no event."""
    fake = FakeProducer(queue_limit=2)
    with EventProducer(fake, topic="t") as producer:
        for number in range(50):
            producer.send(order(number))
    assert [from_record(r).id for r in records(fake)] == [str(n) for n in range(50)]


def test_flush_raises_an_error_for_failures_without_a_callback() -> None:
    """Every failed event is in the error of one flush."""
    fake = FakeProducer()
    producer = EventProducer(fake, topic="t")
    fake.fail_next("_MSG_TIMED_OUT", "_MSG_TIMED_OUT")
    for number in (1, 2, 3):
        producer.send(order(number))
    with pytest.raises(DeliveryError, match="2 events were not delivered") as caught:
        producer.flush()
    assert [d.event.id for d in caught.value.failed] == ["1", "2"]
    producer.flush()


def test_what_a_fatal_error_purges_has_failed() -> None:
    """The client reports purged messages, but the user has purged nothing: each is in the error of flush."""
    client = DyingProducer()
    producer = EventProducer(client, topic="t")
    deliveries = [producer.send(order(number)) for number in (1, 2, 3)]
    client.die()
    with pytest.raises(DeliveryError, match=r"3 events were not delivered.*lost order") as caught:
        producer.flush()
    assert caught.value.failed == tuple(deliveries)
    assert not any(delivery.aborted for delivery in deliveries)
    with pytest.raises(KafkaException) as refused:
        producer.send(order(4))
    (note,) = refused.value.__notes__
    assert re.fullmatch(r"the client has ended with a fatal error: .*lost order.*; make a new producer", note)


def test_a_failure_that_result_raises_is_not_raised_again() -> None:
    """result() raises the error of its event, and flush does not raise it again."""
    fake = FakeProducer()
    fake.fail_next("_MSG_TIMED_OUT")
    producer = EventProducer(fake, topic="orders")
    delivery = producer.send(order(7))
    with pytest.raises(DeliveryError, match="event '7' of '/shop' to orders"):
        delivery.result()
    producer.flush()


def test_results_are_awaited_in_any_order() -> None:
    """result() removes a failure from those of flush in constant time."""
    fake = FakeProducer()
    fake.fail_next(*["_MSG_TIMED_OUT"] * 4)
    producer = EventProducer(fake, topic="orders")
    deliveries = [producer.send(order(number)) for number in range(4)]
    for number in (2, 0):
        with pytest.raises(DeliveryError):
            deliveries[number].result()
    with pytest.raises(DeliveryError) as caught:
        producer.flush()
    assert caught.value.failed == (deliveries[1], deliveries[3])


def test_flush_and_result_end_at_their_timeout() -> None:
    """Flush and result return after their timeout, and no event is forgotten."""
    fake = FakeProducer()
    fake.hold = True
    producer = EventProducer(fake, topic="t")
    delivery = producer.send(order())
    with pytest.raises(DeliveryError, match=r"still pending after 0\.05 s; flush again"):
        producer.flush(0.05)
    with pytest.raises(DeliveryError, match="no delivery report for event '1'"):
        delivery.result(0.05)
    fake.hold = False
    producer.flush()
    assert delivery.done


def test_sent_events_are_delivered_if_the_block_raises_an_error() -> None:
    """The error of the block is raised, with a note about events that were not delivered."""
    fake = FakeProducer()
    fake.fail_next("_MSG_TIMED_OUT")

    def block() -> None:
        with EventProducer(fake, topic="t") as producer:
            producer.send(order(1))
            producer.send(order(2))
            raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        block()
    assert [from_record(r).id for r in records(fake)] == ["2"]
    assert "1 event was not delivered" in caught.value.__notes__[0]


def test_a_closed_producer_leaves_its_client_open() -> None:
    """Close does not close the wrapped client."""
    fake = FakeProducer()
    producer = EventProducer(fake, topic="t")
    producer.close()
    with pytest.raises(DeliveryError, match="is closed"):
        producer.send(order())
    producer.producer.produce("t", b"mine")
    fake.flush()
    assert len(fake.log) == 1


def test_other_headers_are_sent_and_reserved_names_refused() -> None:
    """Other headers are kept in order; a reserved name is an error before anything is sent."""
    fake = FakeProducer()
    mine = [("trace", b"\xff"), ("trace", None)]
    with EventProducer(fake, topic="t") as producer:
        producer.send(order(), headers=mine)
        for name in ("ce_id", "content-type", "Content-Type", "CE_foo"):
            with pytest.raises(EncodeError, match="belongs to the event"):
                producer.send(order(), headers=[(name, b"x")])
        with pytest.raises(EncodeError, match=r"a header name must be UTF-8 \(K-06\), got '.udcff'"):
            producer.send(order(), headers=[("\udcff", b"x")])
        with pytest.raises(TypeError, match="a header name must be a str, got bytes"):
            producer.send(order(), headers=[(b"trace", b"x")])
    (record,) = records(fake)
    assert record.headers[-2:] == mine
    assert mine == [("trace", b"\xff"), ("trace", None)]


def test_a_record_is_sent_unchanged_with_like() -> None:
    """With like=, the sent record equals the received one, byte for byte."""
    fake = FakeProducer()
    value = b'{ "specversion":"1.0", "type":"t", "id":"1", "source":"/s", "data": [1.0] }'
    record = Record(
        key=b"\xff",
        value=value,
        headers=[("x", None), ("content-type", b"application/cloudevents+json; charset=UTF-8"), ("x", b"")],
    )
    with EventProducer(fake, topic="t") as producer:
        producer.send(from_record(record), like=record)
    (sent,) = records(fake)
    assert (sent.key, sent.value, sent.headers) == (record.key, record.value, record.headers)


def test_timestamp_and_partition_are_the_clients() -> None:
    """Partition and timestamp are passed to the client if they are set."""
    fake = FakeProducer()
    with EventProducer(fake, topic="t") as producer:
        producer.send(order(), timestamp=1_234_567_890_123, partition=0)
    assert records(fake)[0].timestamp == 1_234_567_890_123


class Recorder:
    """A client that keeps the arguments of produce, and whose queue is full at first."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def produce(self, topic: str, **options: Any) -> None:
        self.calls.append({"topic": topic, **options})
        if len(self.calls) == 1:
            raise BufferError

    def poll(self, timeout: float = 0) -> int:
        return 0

    def flush(self, timeout: float = 0) -> int:
        return 0


@each("given", [{}, {"partition": 0}, {"timestamp": 0}, {"partition": 2, "timestamp": 1_234_567_890_123}])
def test_only_passed_arguments_reach_the_client(given: dict[str, int]) -> None:
    """The client's defaults apply otherwise, also after a full queue."""
    client = Recorder()
    EventProducer(client, topic="t").send(order(), **given)
    first, second = client.calls
    assert first == second
    assert set(first) - {"topic", "value", "key", "headers", "on_delivery"} == set(given)
    assert given.items() <= first.items()


@pytest.mark.parametrize("topic", [None, ""])
def test_an_event_without_a_topic_is_refused(topic: str | None) -> None:
    """An event without a topic is an EncodeError."""
    with pytest.raises(EncodeError, match="topic must be set"):
        EventProducer(FakeProducer()).send(order(), topic)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"format": "avro"}, "format must be None in binary mode"),
        ({"mode": "batched"}, "mode must be 'binary' or 'structured', got 'batched'"),
    ],
)
def test_the_constructor_checks_mode_and_format(options: Any, expected: str) -> None:
    """An unknown mode, and a format in binary mode, are refused."""
    with pytest.raises(EncodeError, match=expected):
        EventProducer(FakeProducer(), **options)


def test_transactions_are_the_clients() -> None:
    """The deliveries of an aborted transaction fail, and those of a committed one succeed."""
    fake = FakeProducer(transactional=True)
    fake.init_transactions()
    with EventProducer(fake, topic="t") as producer:
        fake.begin_transaction()
        producer.send(order(1))
        fake.commit_transaction()
        fake.begin_transaction()
        lost = producer.send(order(2), on_delivery=lambda _: None)
        fake.abort_transaction()
    assert [from_record(r).id for r in records(fake)] == ["1"]
    assert lost.done


RECORD = Record(
    key=b"\xff",
    value=b"{",
    headers=[("x", None), ("ce_id", b"1"), ("x", b"\xff")],
    topic="orders",
    partition=2,
    offset=1741,
    timestamp=1_234,
)


def test_a_record_is_sent_unchanged() -> None:
    """Key, value and headers are those of the record; partition and timestamp only if they are passed."""
    fake = FakeProducer()
    with EventProducer(fake, topic="copies", mode="structured", key_mapper=partition_key) as producer:
        delivery = producer.send_record(RECORD)
        producer.send_record(RECORD, "others", partition=0, timestamp=1_234)
        producer.send_record({"value": None, "key": None, "headers": None})
    copy, tombstone, other = records(fake)
    assert (copy.key, copy.value, copy.headers) == (RECORD.key, RECORD.value, RECORD.headers)
    assert (copy.topic, copy.partition) == ("copies", 0)
    assert copy.timestamp != 1_234
    assert (other.topic, other.timestamp) == ("others", 1_234)
    assert (tombstone.key, tombstone.value, tombstone.headers) == (None, None, [])
    assert delivery.result() is delivery
    assert delivery.record is RECORD
    assert repr(delivery) == "Delivery(record orders[2]@1741: copies[0]@0)"
    with pytest.raises(NotAnEvent):
        _ = delivery.event


def test_a_header_name_that_crashes_the_client_is_refused() -> None:
    """A record that another client has read may have a name that is not UTF-8."""
    fake = FakeProducer()
    producer = EventProducer(fake, topic="copies")
    with pytest.raises(EncodeError, match=r"a header name must be UTF-8 \(K-06\), got 'a\\udcff'"):
        producer.send_record(Record(value=b"17", headers=[("a\udcff", b"")]))
    assert records(fake) == []
    with pytest.raises(SystemError):
        fake.produce("copies", headers=[("a\udcff", b"")])


def test_the_topic_of_a_record_is_the_last_choice() -> None:
    """Without a topic of the call and of the producer, a record is sent to its own; else it is refused."""
    producer = EventProducer(FakeProducer())
    assert producer.send_record(RECORD).result().topic == "orders"
    with pytest.raises(EncodeError, match="topic must be set, in send_record"):
        producer.send_record(Record())
    producer.close()
    with pytest.raises(DeliveryError, match="closed; the record was not sent"):
        producer.send_record(RECORD)


def test_records_wait_for_room_and_fail_as_events_do() -> None:
    """A full queue raises no BufferError, and flush raises an error for a record that failed."""
    fake = FakeProducer(queue_limit=2)
    producer = EventProducer(fake, topic="t")
    fake.fail_next("_MSG_TIMED_OUT")
    for _ in range(10):
        producer.send_record(RECORD)
    with pytest.raises(
        DeliveryError, match=r"the first: record orders\[2\]@1741 to t: .*_MSG_TIMED_OUT"
    ) as caught:
        producer.flush()
    assert caught.value.failed[0].record.where == RECORD.where
    assert len(fake.log) == 9


def test_leaving_a_block_ends_at_its_bound() -> None:
    """At close_timeout, failed has what failed and, not done, what is on its way, also with a callback."""
    fake = FakeProducer()
    fake.fail_next("_MSG_TIMED_OUT")
    reported: list[Any] = []

    producer = EventProducer(fake, topic="t", close_timeout=0.05)

    def block() -> None:
        with producer:
            for number in (1, 2):
                assert producer.send(order(number)).done
            fake.hold = True
            producer.send(order(3))
            producer.send(order(4), on_delivery=reported.append)
            producer.send_record(RECORD)

    with pytest.raises(DeliveryError, match="3 messages are still pending") as caught:
        block()
    failed, third, fourth, record = caught.value.failed
    assert (failed.event.id, failed.done) == ("1", True)
    assert [(d.event.id, d.done, d.error) for d in (third, fourth)] == [
        ("3", False, None),
        ("4", False, None),
    ]
    assert isinstance(record.record, Record)
    fake.hold = False
    fake.flush()
    assert (third.offset, fourth.offset, record.offset) == (1, 2, 3)
    producer.flush()  # the client's own flush calls no callback; the thread of the producer does, or this one
    assert reported == [fourth]


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_bound_is_seconds_from_zero(timeout: float) -> None:
    """Other values are refused when the producer is made."""
    with pytest.raises(ValueError, match="close_timeout must be 0 or more seconds"):
        EventProducer(FakeProducer(), close_timeout=timeout)


def test_a_message_that_the_client_refused_is_not_pending() -> None:
    """What produce() has raised an error for is not in failed."""
    fake = FakeProducer()
    producer = EventProducer(fake, topic="t")
    with pytest.raises(TypeError) as refused:
        producer.send(order(1), 3)  # type: ignore[arg-type]
    fake.hold = True
    kept = producer.send(order(2))
    with pytest.raises(DeliveryError) as caught:
        producer.flush(0)
    assert caught.value.failed == (kept,)
    del refused


class Forgetful:
    """A client that keeps no reference after a report."""

    def __init__(self, error: KafkaError | None = None) -> None:
        self.error = error
        self.reports: deque[Callable[..., None]] = deque()

    def produce(self, topic: str, *, on_delivery: Callable[..., None], **message: Any) -> None:
        self.reports.append(on_delivery)

    def poll(self, timeout: float = -1) -> int:
        while self.reports:
            self.reports.popleft()(self.error, None)
        return 0

    def flush(self, timeout: float = -1) -> int:
        return self.poll()


TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)


@contextmanager
def flat_memory(most_blocks: int = 5_000) -> Iterator[None]:
    """Fail if the block leaves memory allocated, with the garbage collector off."""
    gc.collect()
    gc.disable()
    before = sys.getallocatedblocks()
    try:
        yield
        assert sys.getallocatedblocks() - before < most_blocks
    finally:
        gc.enable()


@pytest.mark.parametrize("error", [None, TIMED_OUT], ids=["delivered", "failed"])
def test_memory_is_freed_after_futures_are_set(error: KafkaError | None) -> None:
    """A future with a callback that refers to it is freed with its event."""
    producer = EventProducer(Forgetful(error), topic="t")
    with flat_memory():
        for number in range(scaled(100_000)):
            future: Future[Any] = Future()
            producer.send(order(number), on_delivery=future.set_result)
            assert (future.result().error is None) is (error is None)


def test_memory_is_freed_after_failures_are_awaited() -> None:
    """Failed deliveries are freed if their results are awaited."""
    producer = EventProducer(Forgetful(TIMED_OUT), topic="t")
    with flat_memory():
        for number in range(scaled(100_000)):
            try:
                producer.send(order(number)).result()
            except DeliveryError as error:
                assert error.failed[0].event.id == str(number)  # noqa: PT017  # pytest.raises keeps frames


def test_memory_is_freed_after_flush_raises_failures() -> None:
    """Each flush raises an error for new failures, and the producer does not keep them."""
    producer = EventProducer(Forgetful(TIMED_OUT), topic="t")
    with flat_memory():
        for number in range(scaled(100_000)):
            producer.send(order(number))
            if number % 1_000 == 999:
                with suppress(DeliveryError):
                    producer.flush()


def test_a_cycle_through_a_delivery_is_collected() -> None:
    """A callback that refers to its delivery is freed with a client that does not report."""

    class Silent(Forgetful):
        def poll(self, timeout: float = -1) -> int:
            return 0

    def live() -> int:
        gc.collect()
        return sum(type(thing) is Event for thing in gc.get_objects())

    before = live()
    for number in range(100):
        kept: list[Any] = []
        kept.append(EventProducer(Silent(), topic="t").send(order(number), on_delivery=kept.append))
    del kept
    assert live() == before


def test_the_error_of_a_delivery_names_its_event() -> None:
    """The error of a delivery has the delivery and the client's message."""
    fake = FakeProducer()
    fake.fail_next("_MSG_TIMED_OUT")
    reported: list[Any] = []
    delivery = EventProducer(fake, topic="orders").send(order(7), on_delivery=reported.append)
    assert reported == [delivery]
    assert delivery.error is not None
    assert delivery.error.failed == (delivery,)
    assert "event '7' of '/shop' to orders" in str(delivery.error)
    assert "_MSG_TIMED_OUT" in str(delivery.error)


def test_a_callback_that_raises_is_called_once(caplog: pytest.LogCaptureFixture) -> None:
    """Its error is logged, is that of its delivery, and comes out of no call."""

    def fail(delivery: Any) -> None:
        raise ZeroDivisionError("no rate")

    producer = EventProducer(FakeProducer(), topic="t")
    delivery = producer.send(order(), on_delivery=fail)
    producer.close()
    assert isinstance(delivery.callback_error, ZeroDivisionError)
    with pytest.raises(DeliveryError, match=r"t\[0\]@0\) has arrived, .* has raised Zero.*no rate") as caught:
        delivery.result()
    assert caught.value.__cause__ is delivery.callback_error
    assert [record.getMessage() for record in caplog.records] == [
        "on_delivery of event '1' of '/shop' has failed: no rate"
    ]


@pytest.mark.parametrize("purge", ["abort", "purge"])
def test_purged_events_are_not_failures_at_close(purge: str) -> None:
    """Events that abort_transaction() or purge() removed have an error, and close does not raise it."""
    fake = FakeProducer(transactional=True)
    fake.init_transactions()
    fake.begin_transaction()
    fake.hold = True
    with EventProducer(fake, topic="t") as producer:
        delivery = producer.send(order())
        if purge == "abort":
            fake.abort_transaction()
        else:
            fake.purge()
    assert delivery.done
    assert delivery.error is not None
    assert delivery.aborted
    assert repr(delivery) == "Delivery(event '1' of '/shop': aborted)"
    assert "event '1' of '/shop' to t: aborted with its transaction, or purged: " in str(delivery.error)
    assert "_PURGE_QUEUE" in str(delivery.error)
    with pytest.raises(DeliveryError, match="_PURGE_QUEUE"):
        delivery.result()


class AIOProducerLike:
    """A class with the methods of confluent-kafka's asyncio producer, which does not accept headers."""

    async def produce(self) -> None: ...


class AiokafkaLike:
    """A class with the methods of aiokafka's producer."""

    async def send(self, topic: str, value: bytes) -> None: ...

    async def send_and_wait(self, topic: str, value: bytes) -> None: ...


class KafkaPythonLike:
    """A class with the methods of kafka-python's producer."""

    def send(self, topic: str, value: bytes) -> None: ...

    def flush(self, timeout: float | None = None) -> None: ...


@each(
    ("client", "expected"),
    [
        (FakeProducer, "got the class FakeProducer; create an instance of it first"),
        (AIOProducerLike(), "got AIOProducerLike, an asyncio client; use AsyncEventProducer, which takes"),
        (AiokafkaLike(), "got AiokafkaLike, an asyncio client"),
        (KafkaPythonLike(), "got KafkaPythonLike, which has no produce"),
        (FakeConsumer(), "got FakeConsumer, which has no produce"),
        (EventProducer(FakeProducer()), "got EventProducer, which has no produce"),
        ("localhost:9092", "got str, which has no produce"),
        (None, "got NoneType, which has no produce"),
    ],
)
def test_other_objects_are_refused(client: Any, expected: str) -> None:
    """The constructor raises the error, which names the client to use."""
    with pytest.raises(TypeError, match=f"producer must be .*{expected}"):
        EventProducer(client)


@each("ended", ["forgotten", "closed", "waited"])
def test_a_producer_that_is_forgotten_with_an_event_on_its_way_is_freed(ended: str) -> None:
    """Callbacks, which the garbage collector does not see in a client, do not refer to the producer."""
    client = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    producer = EventProducer(client, topic="t")
    delivery = producer.send(order())
    with suppress(DeliveryError):
        if ended == "closed":
            producer.close(0.01)
        elif ended == "waited":
            delivery.result(0.01)
    reference = weakref.ref(producer)
    del client, producer, delivery
    gc.collect()
    assert reference() is None


def test_a_delivery_keeps_its_producer_until_it_is_done() -> None:
    """A delivery can be awaited without a reference to the producer."""
    fake = FakeProducer()
    fake.hold = True
    delivery = EventProducer(fake, topic="t").send(order())
    fake.hold = False
    assert delivery.result(5).offset == 0


def test_a_callback_has_a_delivery_without_references() -> None:
    """The repr has the event and the state of its delivery."""
    fake = FakeProducer()
    fake.hold = True
    reported: list[Any] = []
    producer = EventProducer(fake, topic="t")
    producer.send(order(5), on_delivery=reported.append)
    fake.hold = False
    producer.flush()
    assert (reported[0].event.id, reported[0].offset, reported[0].done) == ("5", 0, True)
    assert reported[0].result() is reported[0]


class Quiet(FakeProducer):
    """A client with ``delivery.report.only.error``: it frees reports of success without calling them."""

    def produce(self, topic: str, value: Any = None, key: Any = None, **options: Any) -> None:
        report = options.pop("on_delivery")
        super().produce(
            topic, value, key, on_delivery=lambda error, message: error and report(error, message), **options
        )


class WithErrors(FakeProducer):
    """A client with an ``error_cb``: ``flush`` and ``len`` count the errors that wait for it, too."""

    def flush(self, timeout: float = -1) -> int:
        return super().flush(timeout) + 1

    def __len__(self) -> int:
        return super().__len__() + 1


def test_pending_messages_are_those_of_the_producer() -> None:
    """Neither an error that waits for error_cb nor a message of the client's other user is pending."""
    client = WithErrors()
    client.hold = True
    producer = EventProducer(client, topic="orders")
    client.produce("orders", b"17")
    producer.flush(0)
    delivery = producer.send(order())
    with pytest.raises(DeliveryError, match="1 message is still pending after 0 s") as caught:
        producer.flush(0)
    assert caught.value.failed == (delivery,)
    client.hold = False
    producer.flush(0)
    assert delivery.done


@pytest.mark.parametrize("kind", ["event", "record"])
def test_a_client_that_reports_failures_only_is_an_error(kind: str) -> None:
    """Its empty queue shows that a success has no report: result() and flush() raise what to change."""
    client = Quiet()
    producer = EventProducer(client, topic="t")

    def send() -> Any:
        return producer.send(order(1)) if kind == "event" else producer.send_record(Record(value=b"1"))

    client.hold = True
    first, second = send(), send()
    with pytest.raises(DeliveryError, match="still pending") as caught:
        producer.flush(0)
    assert caught.value.failed == (first, second)
    client.hold = False
    with pytest.raises(DeliveryError, match=r"create the Producer without delivery\.report\.only\.error"):
        first.result()
    with pytest.raises(DeliveryError, match=r"1 event was not delivered; .* without delivery\.report"):
        producer.flush()
    client.fail_next("_MSG_TIMED_OUT")
    with pytest.raises(DeliveryError, match="timed out"):
        send().result(5)
    producer.close()


def test_an_event_that_is_too_large_is_a_delivery_error() -> None:
    """The error has the event, the topic, the size and the limits; nothing is pending."""
    client = Producer({"bootstrap.servers": "127.0.0.1:1", "message.max.bytes": 2000, "log_level": 0})
    producer = EventProducer(client, topic="orders")
    event = Event(id="7", source="/shop", type="t", data=bytes(3000))
    expected = (
        r"event '7' of '/shop' to orders: it has 3,\d\d\d bytes, and the limits are message.max.bytes of"
    )
    with pytest.raises(DeliveryError, match=expected) as caught:
        producer.send(event)
    (failed,) = caught.value.failed
    assert (failed.event, failed.done, failed.offset) == (event, True, None)
    assert isinstance(caught.value.__cause__, KafkaException)
    with pytest.raises(DeliveryError, match=r"record to copies: it has 3,\d\d\d bytes"):
        producer.send_record(Record(value=bytes(3000)), "copies")
    producer.flush(0)
    assert not producer._deliveries.pending


@each(
    ("thing", "expected"),
    [
        ("x", "got a str; make one: Event"),
        ({"id": "1"}, r"got a dict; make one: Event\(\*\*attributes, data=…\)"),
        (None, "got a NoneType; make one"),
        (Event, "got the class Event; make one"),
        (Record(value=b"1"), "got a Record; use send_record"),
        (Decoded(event=order(), record=RECORD), "got a Decoded; pass its event"),
    ],
)
def test_other_things_are_not_sent(thing: Any, expected: str) -> None:
    """The error says what to pass, or which method to call."""
    fake = FakeProducer()
    with pytest.raises(TypeError, match=f"send takes an Event, {expected}"):
        EventProducer(fake, topic="t").send(thing)
    assert len(fake) == 0


def test_a_key_mapper_is_a_function() -> None:
    """Another object is refused when the producer is made, and by send."""
    expected = r"key_mapper must be a function of an event, got 'x'; use attribute_key\('x'\)"
    with pytest.raises(TypeError, match=expected):
        EventProducer(FakeProducer(), key_mapper="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=expected):
        EventProducer(FakeProducer(), topic="t").send(order(), key_mapper="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got 3; use partition_key"):
        EventProducer(FakeProducer(), key_mapper=3)  # type: ignore[arg-type]


SETTINGS = {"test.mock.num.brokers": 1, "log_level": 0}


def test_a_client_is_made_of_settings_and_closed() -> None:
    """Leaving the block delivers what was sent, and closes the client; the producer is of no use then."""
    with EventProducer(SETTINGS, topic="orders") as producer:
        assert type(producer.producer) is Producer
        delivery = producer.send(order())
    assert delivery.result(0).offset == 0
    with pytest.raises(RuntimeError, match="closed"):
        producer.producer.poll(0)
    producer.close()
    producer.flush()
    with pytest.raises(DeliveryError, match="closed"):
        producer.send(order())


def test_what_a_client_of_settings_has_not_delivered_ends_with_it() -> None:
    """After close_timeout its events are purged: their deliveries are done, and nothing waits for them."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    producer = EventProducer(settings, topic="orders", close_timeout=0.1)
    reported: list[Any] = []
    pending, other = producer.send(order()), producer.send(order(2), on_delivery=reported.append)

    def wait() -> None:
        with pytest.raises(DeliveryError, match="purged"):
            pending.result()

    waiting = threading.Thread(target=wait)
    waiting.start()
    with pytest.raises(DeliveryError, match=r"2 messages are still pending.*with another producer") as caught:
        producer.close()
    assert caught.value.failed == (pending, other)
    waiting.join(5)
    assert not waiting.is_alive()
    assert reported == [other]
    assert pending.aborted
    with pytest.raises(DeliveryError, match="purged"):
        pending.result()
    producer.close()


@each(
    ("settings", "expected"),
    [
        ({}, "have bootstrap.servers, got none"),
        ({"bootstrap.servers": "b", "on_delivery": print}, "on_delivery"),
        (
            {"bootstrap.servers": "b", "delivery.report.only.error": True},
            "have no delivery.report.only.error",
        ),
        ({"bootstrap.servers": "b", "delivery.report.only.error": "TRUE"}, "'TRUE'.*leave out this setting"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], expected: str) -> None:
    """The error is that of make_client, which tests/clients/test_settings.py has."""
    with pytest.raises(ValueError, match=f"settings of a Producer must .*{expected}"):
        EventProducer(settings)
