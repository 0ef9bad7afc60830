"""EventConsumer with a fake client, which tests/testing compares with a real one."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from cloudevents_kafka import (
    BrokenEvent,
    ConsumeError,
    DataError,
    Decoded,
    DecodeError,
    Event,
    EventConsumer,
    NotAnEvent,
    Record,
    Undecodable,
    key_to_attribute,
    to_record,
)
from cloudevents_kafka.clients.observing import Notice, Observer
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support.cases import each


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed", data={"number": number})


def topic_of(*items: Event | tuple[Any, ...], **options: Any) -> FakeConsumer:
    """Return a consumer of a topic with these events and (value, headers, key) records."""
    producer = FakeProducer()
    for item in items:
        if isinstance(item, Event):
            record = to_record(item, key="k")
            producer.produce("orders", value=record.value, key=record.key, headers=record.headers)
        else:
            value, headers, key = item
            producer.produce("orders", value=value, headers=headers, key=key)
    producer.flush()
    consumer = FakeConsumer(producer.log, **options)
    consumer.subscribe(["orders"])
    return consumer


class Reached(Observer):
    """An observer that makes the consumer ask for its positions."""

    def reached(self, notices: Sequence[Notice]) -> None: ...


NO_EVENT = (b"hello", None, None)
BROKEN = (b"", [("ce_specversion", b"1.0"), ("ce_id", b""), ("ce_source", b"/s"), ("ce_type", b"t")], b"\xff")


def test_items_are_decoded_or_undecodable_in_order() -> None:
    """A bad record is an item like others and does not stop the loop."""
    with EventConsumer(topic_of(order(1), NO_EVENT, BROKEN, order(2))) as events:
        items = list(events.items(idle_timeout=0.05))
    match items:
        case [Decoded(one), Undecodable(no_event), Undecodable(broken), Decoded(two)]:
            assert (one.id, two.id) == ("1", "2")
            assert isinstance(no_event, NotAnEvent)
            assert isinstance(broken, BrokenEvent)
            assert str(broken).startswith("orders[0]@2: ")
        case _:
            pytest.fail(f"not in order: {items}")


def test_an_item_has_its_record() -> None:
    """The item has the record with key and offset; the key does not become an attribute."""
    events = EventConsumer(topic_of(order(1)))
    item = events.poll()
    assert isinstance(item, Decoded)
    assert (item.record.key, item.record.topic, item.record.partition, item.record.offset) == (
        b"k",
        "orders",
        0,
        0,
    )
    assert item.record.timestamp is not None
    assert "partitionkey" not in item.event


def test_poll_returns_none_without_a_record() -> None:
    """An empty topic is not an error."""
    assert EventConsumer(topic_of()).poll(0.01) is None


def test_strict_raises_the_first_bad_record() -> None:
    """The raised error is that of Undecodable, with the record."""
    events = EventConsumer(topic_of(order(1), BROKEN), strict=True)
    assert isinstance(events.poll(), Decoded)
    with pytest.raises(BrokenEvent) as caught:
        events.poll()
    assert caught.value.record.key == b"\xff"


@pytest.mark.parametrize("eager", [False, True])
def test_lenient_accepts_known_deviations(*, eager: bool) -> None:
    """Lenient reading reports what it accepts."""
    headers = [("ce-specversion", b"1.0"), ("ce-id", b"1"), ("ce-source", b"/s"), ("ce-type", b"t")]
    item = EventConsumer(topic_of((b"", headers, None)), lenient=True, eager_data=eager).poll()
    assert isinstance(item, Decoded)
    assert [problem.attribute for problem in item.tolerated] == [
        "ce-specversion",
        "ce-id",
        "ce-source",
        "ce-type",
    ]


def test_a_reverse_key_mapper_changes_the_event() -> None:
    """The key is mapped if a mapper is passed, and the record does not change."""
    item = EventConsumer(topic_of(order(1)), reverse_key_mapper=key_to_attribute("partitionkey")).poll()
    assert isinstance(item, Decoded)
    assert item.event["partitionkey"] == "k"
    assert all(name != "ce_partitionkey" for name, _ in item.record.headers)


def test_a_data_reader_decodes_the_data() -> None:
    """The reader is called when data is used, with the mapped event and its record; it raises DataErrors."""
    calls: list[Any] = []

    def read(event: Event, record: Record) -> Any:
        calls.append((event["tenant"], record.topic, record.offset))
        return 1 / (event.payload or b"").count(b"1")

    reader = EventConsumer(
        topic_of(order(1), order(2), NO_EVENT),
        reverse_key_mapper=key_to_attribute("tenant"),
        data_reader=read,
    )
    one, two, no_event = list(reader.items(idle_timeout=0.05))
    assert calls == []
    assert isinstance(no_event, Undecodable)
    assert isinstance(one, Decoded)
    assert isinstance(two, Decoded)
    assert one.event.data == 1
    assert one.event.data == 1
    with pytest.raises(DataError, match="ZeroDivisionError"):
        _ = two.event.data
    assert calls == [("k", "orders", 0), ("k", "orders", 1)]


def test_batches_are_never_empty() -> None:
    """All records are yielded in order, in lists of at most max_records."""
    events = EventConsumer(topic_of(*map(order, range(7)), NO_EVENT))
    batches = list(events.batches(3, 0.05, idle_timeout=0.05))
    assert [len(batch) for batch in batches] == [3, 3, 2]
    assert [i.event.id for batch in batches for i in batch if isinstance(i, Decoded)] == [
        str(n) for n in range(7)
    ]


class _Gathers(FakeConsumer):
    """A client that returns all messages at once, with an error after the first two."""

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Any]:
        before = super().consume(2, timeout)
        if before:
            self.fail_next("TOPIC_AUTHORIZATION_FAILED")
        return before + super().consume(num_messages, timeout)


def _read_on(events: EventConsumer[Any]) -> list[str]:
    """Return the ids of all events, and the names of errors, in batches."""
    read: list[str] = []
    while True:
        try:
            for batch in events.batches(10, 0.05, idle_timeout=0.05):
                read += [item.event.id for item in batch if isinstance(item, Decoded)]
        except (ConsumeError, DecodeError, LookupError) as error:
            read.append(type(error).__name__)
        else:
            return read


def test_an_error_within_a_batch_loses_no_record() -> None:
    """Records before an error are yielded, then it is raised, then records after it are yielded."""
    consumer = _Gathers(topic_of(*map(order, range(5))).log)
    consumer.subscribe(["orders"])
    assert _read_on(EventConsumer(consumer)) == ["0", "1", "ConsumeError", "2", "3", "4"]


def test_the_group_reads_again_what_was_gathered_and_not_returned() -> None:
    """Also if the client commits by itself what it has returned."""
    offsets: dict[tuple[str, int], int] = {}
    client = topic_of(order(0), NO_EVENT, order(2), order(3), offsets=offsets)
    events = EventConsumer(client, strict=True)
    with pytest.raises(NotAnEvent):
        list(events.batches(10, 0.05))
    events.close()
    assert offsets == {("orders", 0): 2}


def test_a_client_without_a_group_is_closed_with_what_was_gathered() -> None:
    """A user's class need not know offsets."""
    good = to_record(order(1))
    messages = [FakeMessage("in", *each) for each in ((b"hello",), (good.value, b"k", good.headers))]
    closed = list[bool]()
    client = SimpleNamespace(poll=print, consume=lambda *_: messages, close=lambda: closed.append(True))
    events = EventConsumer(client, strict=True)
    with pytest.raises(NotAnEvent):
        list(events.batches())
    events.close()
    assert closed == [True]


def test_strict_batches_lose_no_record() -> None:
    """A strict error does not lose the records of its batch."""
    events = EventConsumer(
        topic_of(order(0), order(1), NO_EVENT, order(3), BROKEN, NO_EVENT, order(6)), strict=True
    )
    assert _read_on(events) == ["0", "1", "NotAnEvent", "3", "BrokenEvent", "NotAnEvent", "6"]


def test_a_mapper_that_fails_loses_no_record() -> None:
    """An error of a user's function loses no other record, and Ctrl-C loses none at all."""
    raised: list[type[BaseException]] = [LookupError, KeyboardInterrupt]

    def mapped(event: Event, record: Record) -> Event:
        if event.id == "2" and raised:
            raise raised.pop()
        return event

    events = EventConsumer(topic_of(*map(order, range(4))), reverse_key_mapper=mapped)
    with pytest.raises(KeyboardInterrupt):
        _read_on(events)
    raised.append(LookupError)  # for the record itself, then for its second reading
    assert _read_on(events) == ["0", "1", "LookupError", "3"]


def test_what_a_batch_left_is_read_one_by_one_too() -> None:
    """After an error of `batches`, any other iteration continues with the rest."""
    events = EventConsumer(topic_of(order(0), NO_EVENT, order(2), order(3)), strict=True)
    with pytest.raises(NotAnEvent):
        list(events.batches(10, 0.05))
    polled = events.poll(0.01)
    assert isinstance(polled, Decoded)
    assert polled.event.id == "2"
    assert [item.record.offset for item in events.items(idle_timeout=0.05)] == [3]


def failed_batch() -> EventConsumer[FakeConsumer]:
    """Return a consumer that gathered 3, 4 and 5 when it raised the error of record 2."""
    items = [order(0), order(1), NO_EVENT, order(3), order(4), order(5)]
    events = EventConsumer(topic_of(*items, auto_commit=False), strict=True)
    with pytest.raises(NotAnEvent):
        list(events.batches(10, 0.05))
    return events


def offsets_of(events: EventConsumer[Any]) -> list[int | None]:
    return [item.record.offset for item in events.items(idle_timeout=0.01)]


@each("way", ["items", "batches", "poll"])
@each("by_client", [False, True])
def test_a_seek_drops_what_was_gathered(way: str, *, by_client: bool) -> None:
    """After a seek, through the wrapper or on the client, the records sought come next, and once."""
    events = failed_batch()
    start = TopicPartition("orders", 0, 3)
    events.consumer.seek(start) if by_client else events.seek(start)
    if way == "items":
        assert offsets_of(events) == [3, 4, 5]
    elif way == "batches":
        assert [[item.record.offset for item in batch] for batch in events.batches(idle_timeout=0)] == [
            [3, 4, 5]
        ]
    else:
        polled = (events.poll(0), events.poll(0), events.poll(0), events.poll(0))
        assert [item and item.record.offset for item in polled] == [3, 4, 5, None]


@pytest.mark.parametrize("kind", ["item", "record"])
def test_seeking_an_item_reads_it_again(kind: str) -> None:
    """`seek` takes an item or a record, which is the next one that is read."""
    events = EventConsumer(topic_of(*map(order, range(4))))
    item = list(events.items(idle_timeout=0.01))[2]
    events.seek(item if kind == "item" else item.record)
    assert offsets_of(events) == [2, 3]


def test_gathered_records_of_other_partitions_stay() -> None:
    """A seek in one partition loses no record of another."""
    producer = FakeProducer(FakeLog(partitions=2))
    for number in range(6):
        record = to_record(order(number))
        producer.produce("orders", record.value, headers=record.headers, partition=number % 2)
    producer.produce("orders", b"not an event", partition=0)
    producer.flush()
    client = FakeConsumer(producer.log)
    client.subscribe(["orders"])
    events = EventConsumer(client, strict=True)
    with pytest.raises(NotAnEvent):
        list(events.batches(10, 0.05))
    events.seek(TopicPartition("orders", 0, 2))
    first = events.poll(0)
    assert first is not None
    assert (first.record.partition, first.record.offset) == (1, 0)
    with pytest.raises(NotAnEvent):
        list(events.items(idle_timeout=0.01))


def test_discard_drops_what_was_gathered() -> None:
    """Without arguments all gathered records are dropped, else those of the partitions."""
    events = failed_batch()
    events.discard([TopicPartition("orders", 1)])
    assert len(offsets_of(events)) == 3
    events = failed_batch()
    events.discard()
    assert offsets_of(events) == []


@pytest.mark.parametrize("lost", [False, True])
def test_revocation_drops_what_was_gathered(*, lost: bool) -> None:
    """Records of a revoked partition are not returned, also if it is assigned again."""
    events = failed_batch()
    events.consumer.commit(offsets=[TopicPartition("orders", 0, 1)])
    events.consumer.rebalance(lost=lost)
    with pytest.raises(NotAnEvent) as caught:
        list(events.items(idle_timeout=0.01))
    assert caught.value.record.offset == 2
    events = failed_batch()
    events.consumer.unassign()
    assert events.poll(0) is not None  # the subscription assigns the partition again, from its start


def committed(events: EventConsumer[FakeConsumer]) -> list[int]:
    return sorted(events.consumer.offsets.values())


def test_commit_of_an_item_commits_what_is_done() -> None:
    """The offset after the item is committed, not the position of the client, which is further."""
    events = EventConsumer(topic_of(*map(order, range(5))))
    (batch,) = events.batches(10, 0.05, idle_timeout=0.01)
    events.commit(batch[1])
    assert committed(events) == [2]
    events.commit(batch[2].record, asynchronous=True)
    assert committed(events) == [3]
    events.commit([])
    assert committed(events) == [3]
    events.commit(batch)
    assert committed(events) == [5]


def test_commit_of_a_batch_commits_each_partition() -> None:
    """The last record of each partition counts."""
    producer = FakeProducer(FakeLog(partitions=2))
    for number in range(5):
        producer.produce("orders", b"", partition=number % 2)
    producer.flush()
    client = FakeConsumer(producer.log, auto_commit=False)
    client.subscribe(["orders"])
    events = EventConsumer(client)
    (batch,) = events.batches(10, 0.05, idle_timeout=0.01)
    events.commit(batch)
    assert client.offsets == {("orders", 0): 3, ("orders", 1): 2}


def test_commit_takes_records_in_any_order() -> None:
    """The highest offset of each partition is committed: with another, records would be handled again."""
    client = topic_of(*map(order, range(10)), auto_commit=False)
    events = EventConsumer(client)
    (items,) = events.batches(10, 0.05, idle_timeout=0.01)
    events.commit([items[9], items[1]])
    assert client.offsets == {("orders", 0): 10}
    events.commit(item.record for item in (items[3], items[5], items[4]))
    assert client.offsets == {("orders", 0): 6}


READ = "pass the item that was read"
OTHERS = [
    (TopicPartition("orders", 0, 3), "TopicPartition"),
    (None, "None"),
    (Event(id="1", source="/s", type="t"), "Event"),
    (3, "3"),
    ("orders", "'orders'"),
    ([None], "None"),
]


@each(("done", "got"), OTHERS)
def test_only_what_was_read_is_committed(done: Any, got: str) -> None:
    """Anything else has no place, and the error says what to pass."""
    events = EventConsumer(topic_of(order(1)))
    with pytest.raises(TypeError, match=rf"commit\(\) must get items, or their records, got {got}; {READ}"):
        events.commit(done)
    assert events.consumer.offsets == {}


@each(("to", "got"), [(3, "3"), *OTHERS[1:3], (FakeMessage("orders"), "FakeMessage")])
def test_seek_takes_what_has_a_place(to: Any, got: str) -> None:
    """A number has no partition, and an event no offset."""
    events = EventConsumer(topic_of(order(1)))
    with pytest.raises(TypeError, match=rf"seek\(\) must get an item, .*, got {got}; {READ}, or Topic"):
        events.seek(to)


def test_a_commit_that_fails_for_a_partition_is_an_error() -> None:
    """The client returns errors of partitions, which a program would not notice."""

    class Refuses(FakeConsumer):
        def commit(self, *args: Any, **kwargs: Any) -> Any:
            error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            return [SimpleNamespace(topic="orders", partition=0, error=error)]

    events = EventConsumer(Refuses(topic_of(order(1)).log))
    with pytest.raises(ConsumeError, match=r"^orders\[0\]: .*TOPIC_AUTHORIZATION_FAILED"):
        events.commit(Record(topic="orders", partition=0, offset=0))


@each("kind", [ValueError, RuntimeError, AttributeError, KeyboardInterrupt])
@each("has_read", [True, False])
def test_an_error_of_on_revoke_leaves_no_client_open(kind: type[BaseException], *, has_read: bool) -> None:
    """`close` raises it when the client is closed: one that is open keeps its partitions."""
    events, error = EventConsumer(topic_of(order(1), order(2))), kind("of the user")

    def fail(*_: object) -> None:
        raise error

    events.subscribe(["orders"], on_revoke=fail)
    assert events.poll() is not None
    if has_read:
        events.consumer.consume(9, 0)
    with pytest.raises(kind, match="of the user") as caught:
        events.close()
    assert caught.value is error
    with pytest.raises(RuntimeError, match="closed"):
        events.consumer.assignment()


def test_items_leave_unread_what_the_loop_has_not_seen() -> None:
    """The position of the client is after the current record, so a commit loses no record."""
    consumer = topic_of(*map(order, range(10)))
    for item in EventConsumer(consumer):
        if item.record.offset == 3:
            consumer.commit(asynchronous=False)
            break
    (committed,) = consumer.committed(consumer.assignment())
    assert committed.offset == 4


def test_stop_ends_iteration_after_the_record_at_hand() -> None:
    """stop() may be called in the loop, a thread or a signal handler."""
    events = EventConsumer(topic_of(*map(order, range(10))))
    items = []
    for item in events:
        items.append(item)
        if len(items) == 2:
            events.stop()
    assert len(items) == 2
    assert list(events.batches()) == []


def test_transient_errors_are_not_records() -> None:
    """The end of a partition and transient errors are ignored."""
    consumer = topic_of(order(1))
    consumer.fail_next("_PARTITION_EOF")
    events = EventConsumer(consumer)
    assert events.poll(0.01) is None
    assert isinstance(events.poll(0.01), Decoded)


def test_an_error_that_is_not_transient_is_raised() -> None:
    """The error has the client's message, and reading can continue."""
    consumer = topic_of(order(1))
    consumer.fail_next("TOPIC_AUTHORIZATION_FAILED")
    events = EventConsumer(consumer)
    with pytest.raises(ConsumeError, match="the consumer failed") as caught:
        events.poll(0.01)
    assert caught.value.error is not None
    assert isinstance(events.poll(0.01), Decoded)


@each(
    ("reads", "call", "number"),
    [
        *[("items", "poll", 0), ("batches", "consume", 0)],
        *[(reads, call, 1) for reads in ("items", "batches") for call in ("assignment", "position")],
    ],
)
def test_a_loop_ends_if_the_consumer_is_closed_just_before_a_call_of_the_client(
    reads: str, call: str, number: int
) -> None:
    """Another thread may close the client after the loop has found the consumer open."""

    def close_and_call(*arguments: Any) -> Any:
        delattr(client, call)
        events.close()
        return getattr(client, call)(*arguments)

    client = topic_of(order(1))
    events = EventConsumer(client, observers=[Reached()])
    setattr(client, call, close_and_call)
    assert len(list(getattr(events, reads)())) == number
    with pytest.raises(RuntimeError, match="closed"):
        events.poll()


def test_close_closes_the_client() -> None:
    """Leaving the block closes the client, which leaves its group."""
    consumer = topic_of(order(1))
    EventConsumer(consumer).close()
    with pytest.raises(RuntimeError):
        consumer.poll(0)


class AsyncLike:
    """A class with the methods of an asyncio client, as in confluent-kafka and aiokafka."""

    async def getone(self) -> Any: ...


class KafkaPythonLike:
    """A class with the methods of kafka-python's consumer."""

    def poll(self, timeout_ms: int = 0) -> dict[Any, Any]:
        return {}

    def close(self) -> None: ...


@each(
    ("client", "expected"),
    [
        (FakeConsumer, "got the class FakeConsumer; create an instance of it first"),
        (AsyncLike(), "got AsyncLike, an asyncio client; use AsyncEventConsumer, which takes"),
        (KafkaPythonLike(), "got KafkaPythonLike, which has no consume"),
        (FakeProducer(), "got FakeProducer, which has no consume"),
        (None, "got NoneType, which has no poll and no consume and no close"),
    ],
)
def test_other_objects_are_refused(client: Any, expected: str) -> None:
    """The constructor raises the error, which names the client to use."""
    with pytest.raises(TypeError, match=f"consumer must be .*{expected}"):
        EventConsumer(client)


def test_an_item_that_its_data_refers_to_is_collected() -> None:
    """An item is freed although the data that a user's reader returned refers to it."""

    class Order:
        item: Any = None

    def live() -> int:
        gc.collect()
        return sum(type(thing) is Order for thing in gc.get_objects())

    with EventConsumer(topic_of(order(1)), data_reader=lambda event, record: Order()) as events:
        for item in events.items(idle_timeout=0.05):
            assert isinstance(item, Decoded)
            item.event.data.item = item
    assert live() == 1
    del item
    assert live() == 0
