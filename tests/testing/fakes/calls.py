"""Calls whose outcome is the same with confluent-kafka's clients and with the fakes, as data.

Each is a function of a `Cluster`, whose topic has one partition with three messages, written at the
times 1000, 1001 and 1002. `test_outcomes` makes all of them with both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition


class Cluster(Protocol):
    """Where calls are made, with the real clients or the fakes."""

    topic: str
    waits: bool  # whether a reader must wait for messages

    def producer(self) -> Any: ...
    def transactional(self) -> Any: ...
    def consumer(self) -> Any: ...


Call = Callable[[Cluster], object]

# The errors of a call, with the names of the errors in reports.
IN_PLACE_OF_A_REPORT = {
    KafkaError._UNKNOWN_PARTITION: "_UNKNOWN_PARTITION",
    KafkaError._UNKNOWN_TOPIC: "TOPIC_EXCEPTION",
}
OTHER = "another"  # a topic that nobody has written to


def place(cluster: Cluster, partition: int = 0, offset: int = -1001) -> TopicPartition:
    return TopicPartition(cluster.topic, partition, offset)


def sent(cluster: Cluster, *messages: dict[str, Any], producer: Any = None, topic: Any = None) -> list[Any]:
    """Produce messages, each after the delivery of the one before; return the names of their errors."""
    producer, codes = producer or cluster.producer(), []
    for message in messages:
        try:
            producer.produce(
                cluster.topic if topic is None else topic,
                **message,
                on_delivery=lambda error, _: codes.append(error and error.name()),
            )
        except KafkaException as error:
            # The client raises it in place of a report if it knows the topic's metadata by then.
            name = IN_PLACE_OF_A_REPORT.get(error.args[0].code())
            if name is None:
                raise
            codes.append(name)
        producer.flush(10)
    return codes


def steps(cluster: Cluster, *names: str) -> list[Any]:
    """Take the steps of a transactional producer; return the outcome of each."""
    producer = cluster.transactional()
    group = cluster.consumer().consumer_group_metadata()
    calls: dict[str, Callable[[], object]] = {
        "init": lambda: producer.init_transactions(10),
        "begin": producer.begin_transaction,
        "commit": lambda: producer.commit_transaction(10),
        "abort": lambda: producer.abort_transaction(10),
        "flush": lambda: producer.flush(10),
        "purge": lambda: (producer.purge(), producer.poll(0))[0],
        "produce": lambda: producer.produce(cluster.topic, b"v"),
        "partition 99": lambda: producer.produce(cluster.topic, b"v", partition=99),
        "3 MB": lambda: producer.produce(cluster.topic, bytes(3_000_000)),
        "my topic": lambda: producer.produce("my topic", b"v"),
        "offsets": lambda: producer.send_offsets_to_transaction([place(cluster, 0, 1)], group, 10),
        "offsets of 99": lambda: producer.send_offsets_to_transaction([place(cluster, 99, 1)], group, 1),
        "no offsets": lambda: producer.send_offsets_to_transaction([], group, 1),
        "text as offsets": lambda: producer.send_offsets_to_transaction("x", group, 10),
        "no group": lambda: producer.send_offsets_to_transaction([place(cluster, 0, 1)], None, 10),
    }
    return [outcome(calls[name]) for name in names]


def first(cluster: Cluster, consumer: Any) -> int | None:
    """Return the offset of the next message, or None if none arrives."""
    deadline = time.monotonic() + (10 if cluster.waits else 0)
    while (message := consumer.poll(0.2)) is None and time.monotonic() < deadline:
        pass
    return None if message is None else message.offset()


def reading(cluster: Cluster, offset: int = 0) -> Any:
    """Return a consumer of the topic that has read one message."""
    consumer = cluster.consumer()
    consumer.assign([place(cluster, 0, offset)])
    first(cluster, consumer)
    return consumer


def subscribed(cluster: Cluster, offset: int | None = None) -> list[Any]:
    """Return the assignments in the callback and after a message was read; assign from an offset, if any."""
    found: list[Any] = []

    def on_assign(consumer: Any, partitions: list[TopicPartition]) -> None:
        found.append((offsets(partitions), offsets(consumer.assignment())))
        for each in partitions if offset is not None else ():
            each.offset = offset
        if offset is not None:
            consumer.assign(partitions)
            found.append(offsets(consumer.assignment()))

    consumer = cluster.consumer()
    consumer.subscribe(
        [cluster.topic], on_assign=on_assign, on_revoke=lambda _, revoked: found.append(offsets(revoked))
    )
    read = [first(cluster, consumer), offsets(consumer.assignment())]
    consumer.close()
    return [*read, found]


def then(consumer: Any, *calls: Callable[[Any], object]) -> list[Any]:
    return [outcome(lambda call=call: call(consumer)) for call in calls]


def offsets(places: list[TopicPartition]) -> list[Any]:
    return [
        (each.topic[:1], each.partition, each.offset, each.error and each.error.name()) for each in places
    ]


def topic_of(metadata: Any, name: str) -> Any:
    topic = metadata.topics[name]
    parts = [
        (part.id, part.leader, part.replicas, part.isrs, part.error) for part in topic.partitions.values()
    ]
    return type(metadata).__name__, topic.topic, parts, topic.error and topic.error.name()


def outcome(call: Callable[[], object]) -> Any:
    """Return what a call returned or, as text, what it raised, with the code of Kafka."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  # any is compared
        kafka = error.args[0] if type(error).__name__ == "KafkaException" else None
        return f"raised {type(error).__name__}" if kafka is None else f"raised KafkaException {kafka.name()}"


PRODUCED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "timestamp": {"timestamp": 5},
    "timestamp True": {"timestamp": True},
    "timestamp as a float": {"timestamp": 1.5},
    "timestamp as a whole float": {"timestamp": 1.0},
    "timestamp as text": {"timestamp": "5"},
    "timestamp None": {"timestamp": None},
    "timestamp too large": {"timestamp": 2**63},
    "timestamp negative": {"timestamp": -5},
    "partition 0": {"partition": 0},
    "partition -1": {"partition": -1},
    "partition 1": {"partition": 1},
    "partition 99": {"partition": 99},
    "partition -2": {"partition": -2},
    "partition -1001": {"partition": -1001},
    "partition as a float": {"partition": 0.0},
    "partition as text": {"partition": "0"},
    "partition None": {"partition": None},
    "partition too large": {"partition": 2**31},
    "value of 3 MB": {"value": bytes(3_000_000)},
    "value of the largest size": {"value": bytes(999_964)},
    "value of one byte more": {"value": bytes(999_965)},
    "key and value of the largest size": {"value": bytes(900_000), "key": bytes(99_964)},
    "key and value of one byte more": {"value": bytes(900_000), "key": bytes(99_965)},
    "header of the largest size": {"headers": {"a": bytes(999_959)}},
    "header of one byte more": {"headers": {"a": bytes(999_960)}},
    "headers of the largest size": {
        "value": bytes(999_749),
        "headers": [("é" * 50, b"1" * 100), ("b", None), ("", "")],
    },
    "headers of one byte more": {
        "value": bytes(999_756),
        "headers": [("é" * 50, b"1" * 100), ("b", None), ("", "")],
    },
    "value as a number": {"value": 1.5},
    "value as a dict": {"value": {}},
    "value as a bytearray": {"value": bytearray(b"v")},
    "value with a surrogate": {"value": "\ud800"},
    "key as a number": {"key": 5},
    "key as a list": {"key": []},
    "key as a bytearray": {"key": bytearray(b"k")},
    "key with a surrogate": {"key": "\ud800"},
    "header name as a number": {"headers": [(5, b"1")]},
    "header name in bytes": {"headers": {b"a": b"1"}},
    "header value as a float": {"headers": {"a": 1.5}},
    "header value as a bytearray": {"headers": {"a": bytearray(b"1")}},
    "header value with a surrogate": {"headers": {"a": "\ud800"}},
    "header as a list": {"headers": [["a", b"1"]]},
    "header of three": {"headers": [("a", b"1", 1)]},
    "headers as a number": {"headers": 5},
    "headers as a tuple": {"headers": (("a", b"1"),)},
    "headers as a generator": {"headers": (pair for pair in [("a", b"1")])},
    "unknown option": {"nonsense": 1},
}

TOPICS: dict[str, Any] = {
    "spaces": "my topic",
    "empty": "",
    "a dot": ".",
    "two dots": "..",
    "a slash": "a/b",
    "a letter that is not ASCII": "ü",
    "250 characters": "x" * 250,
    "512 characters": "x" * 512,
    "513 characters": "x" * 513,
    "a null character": "a\0b",
    "a surrogate": "\ud800",
    "bytes": b"x",
    "None": None,
    "a number": 5,
}

TRANSACTIONS: tuple[tuple[str, ...], ...] = (
    ("begin",),
    ("produce",),
    ("commit",),
    ("abort",),
    ("offsets",),
    ("flush",),
    ("init", "init"),
    ("init", "produce", "commit", "abort", "offsets"),
    ("init", "begin", "begin", "init"),
    ("init", "begin", "commit", "commit", "abort", "produce"),
    ("init", "begin", "produce", "commit", "begin", "produce", "abort", "abort"),
    ("init", "begin", "produce", "flush", "partition 99", "commit"),
    ("init", "begin", "partition 99", "produce", "flush", "commit", "produce", "commit", "abort", "begin"),
    ("init", "begin", "3 MB", "produce", "commit"),
    ("init", "begin", "my topic", "flush", "produce", "commit", "abort", "begin", "my topic", "commit"),
    ("init", "begin", "produce", "purge", "commit", "abort", "begin", "commit"),
    ("init", "begin", "offsets", "no offsets", "commit"),
    ("init", "begin", "offsets of 99", "commit", "abort", "begin"),
    ("init", "begin", "text as offsets", "no group", "abort"),
)

PRODUCERS: dict[str, Call] = {
    "the topic is missing": lambda c: c.producer().produce(),
    "poll": lambda c: c.producer().poll(0),
    "poll as text": lambda c: c.producer().poll("1"),
    "poll None": lambda c: c.producer().poll(None),
    "flush None": lambda c: c.producer().flush(None),
    "purge": lambda c: c.producer().purge(),
    "close twice": lambda c: then(
        c.producer(), lambda p: p.close(), lambda p: p.close(), lambda p: p.flush()
    ),
    "closed": lambda c: then(
        c.producer(), lambda p: p.close(), lambda p: p.list_topics(), lambda p: p.poll(0)
    ),
    "begin without an id": lambda c: c.producer().begin_transaction(),
    "init without an id": lambda c: c.producer().init_transactions(5),
    "commit without an id": lambda c: c.producer().commit_transaction(5),
    "abort without an id": lambda c: c.producer().abort_transaction(5),
    "list_topics": lambda c: topic_of(c.producer().list_topics(c.topic, 10), c.topic),
    "list_topics of all": lambda c: topic_of(c.producer().list_topics(timeout=10), c.topic),
    "list_topics of a wrong name": lambda c: topic_of(c.producer().list_topics("my topic", 10), "my topic"),
    "list_topics of a number": lambda c: c.producer().list_topics(5, 10),
    "list_topics for a text": lambda c: c.producer().list_topics(c.topic, "10"),
    "partition 99 of a listed topic": lambda c: then(
        c.producer(),
        lambda p: len(p.list_topics(c.topic, 10).topics),
        lambda p: p.produce(c.topic, partition=99),
    ),
}

CONSUMERS: dict[str, Call] = {
    "subscribe": lambda c: c.consumer().subscribe([c.topic]),
    "subscribe to text": lambda c: c.consumer().subscribe(c.topic),
    "subscribe to a tuple": lambda c: c.consumer().subscribe((c.topic,)),
    "subscribe to None": lambda c: c.consumer().subscribe(None),
    "subscribe to nothing": lambda c: c.consumer().subscribe([]),
    "subscribe to an empty name": lambda c: c.consumer().subscribe([""]),
    "subscribe to a wrong name": lambda c: c.consumer().subscribe(["my topic"]),
    "subscribe to a wrong pattern": lambda c: c.consumer().subscribe(["^("]),
    "subscribe to a pattern": lambda c: c.consumer().subscribe([f"^{c.topic}"]),
    "on_assign as a number": lambda c: c.consumer().subscribe([c.topic], on_assign=5),
    "on_revoke as a number": lambda c: c.consumer().subscribe([c.topic], on_revoke=5),
    "on_lost as a number": lambda c: c.consumer().subscribe([c.topic], on_lost=5),
    "unsubscribe": lambda c: c.consumer().unsubscribe(),
    "assign": lambda c: first(c, reading(c)),
    "assign text": lambda c: c.consumer().assign(c.topic),
    "assign names": lambda c: c.consumer().assign([c.topic]),
    "assign a tuple": lambda c: c.consumer().assign((place(c),)),
    "assign None": lambda c: c.consumer().assign(None),
    "assign nothing": lambda c: c.consumer().assign([]),
    "assign a partition twice": lambda c: c.consumer().assign([place(c), place(c)]),
    "assign from -5": lambda c: c.consumer().assign([place(c, 0, -5)]),
    "assign from the last": lambda c: c.consumer().assign([place(c, 0, -2001)]),
    "assign partition 99": lambda c: c.consumer().assign([place(c, 99)]),
    "assign from beyond the end": lambda c: first(c, reading(c, 100)),
    "unassign": lambda c: c.consumer().unassign(),
    "incremental_assign": lambda c: then(
        c.consumer(),
        lambda k: k.incremental_assign([place(c, 0, 1)]),
        lambda k: first(c, k),
        lambda k: len(k.assignment()),
    ),
    "incremental_assign twice": lambda c: then(
        c.consumer(), lambda k: k.incremental_assign([place(c)]), lambda k: k.incremental_assign([place(c)])
    ),
    "incremental_assign a partition twice": lambda c: c.consumer().incremental_assign([place(c), place(c)]),
    "incremental_assign from -5": lambda c: c.consumer().incremental_assign([place(c, 0, -5)]),
    "incremental_assign text": lambda c: c.consumer().incremental_assign(c.topic),
    "incremental_assign nothing": lambda c: c.consumer().incremental_assign([]),
    "incremental_unassign": lambda c: then(
        reading(c),
        lambda k: k.incremental_unassign([place(c)]),
        lambda k: k.assignment(),
        lambda k: k.close(),
    ),
    "incremental_unassign another": lambda c: reading(c).incremental_unassign([place(c, 99)]),
    "incremental_unassign of none": lambda c: c.consumer().incremental_unassign([place(c)]),
    "incremental_unassign nothing": lambda c: c.consumer().incremental_unassign([]),
    "incremental_unassign text": lambda c: c.consumer().incremental_unassign(c.topic),
    "poll": lambda c: c.consumer().poll(0),
    "poll as text": lambda c: c.consumer().poll("1"),
    "poll None": lambda c: c.consumer().poll(None),
    "consume": lambda c: c.consumer().consume(0, 0),
    "consume -1": lambda c: c.consumer().consume(-1, 0),
    "consume too many": lambda c: c.consumer().consume(1_000_001, 0),
    "consume as a float": lambda c: c.consumer().consume(1.5, 0),
    "consume as text": lambda c: c.consumer().consume("1", 0),
    "consume None": lambda c: c.consumer().consume(None),
    "consume for a text": lambda c: c.consumer().consume(1, "1"),
    "seek": lambda c: then(reading(c), lambda k: k.seek(place(c, 0, 2)), lambda k: first(c, k)),
    **{
        f"seek to {offset}": lambda c, offset=offset: then(
            reading(c), lambda k: k.seek(place(c, 0, offset)), lambda k: first(c, k)
        )
        for offset in (-2, 99)
    },
    "seek to -1000": lambda c: reading(c).seek(place(c, 0, -1000)),  # then the client reads nothing more
    "seek without partitions to -1000": lambda c: c.consumer().seek(place(c, 0, -1000)),
    **{
        f"assignment from {offset}": lambda c, offset=offset: then(
            reading(c, offset),
            lambda k: offsets(k.assignment()),
            lambda k: k.seek(place(c, 0, 0)),
            lambda k: offsets(k.assignment()),
        )
        for offset in (0, 2, -2, -1000, -1001)
    },
    "assignment of a subscription": subscribed,
    "assignment of a callback": lambda c: subscribed(c, 1),
    "seek without partitions": lambda c: c.consumer().seek(place(c, 0, 1)),
    "seek another partition": lambda c: reading(c).seek(place(c, 99, 1)),
    "seek text": lambda c: c.consumer().seek(c.topic),
    "seek None": lambda c: c.consumer().seek(None),
    "pause": lambda c: then(reading(c), lambda k: k.pause([place(c)]), lambda k: k.poll(0.1)),
    "pause text": lambda c: c.consumer().pause(c.topic),
    "pause a tuple": lambda c: c.consumer().pause((place(c),)),
    "pause another partition": lambda c: reading(c).pause([place(c, 99)]),
    "resume": lambda c: reading(c).resume([place(c)]),
    "resume text": lambda c: c.consumer().resume(c.topic),
    "commit nothing": lambda c: c.consumer().commit(asynchronous=False),
    "commit text": lambda c: c.consumer().commit(c.topic),
    "commit text as offsets": lambda c: c.consumer().commit(offsets=c.topic),
    "commit names as offsets": lambda c: c.consumer().commit(offsets=[c.topic]),
    "commit no offsets": lambda c: c.consumer().commit(offsets=[], asynchronous=False),
    "commit -5": lambda c: c.consumer().commit(offsets=[place(c, 0, -5)], asynchronous=False),
    "commit without an offset": lambda c: c.consumer().commit(offsets=[place(c)], asynchronous=False),
    "commit partition 99": lambda c: c.consumer().commit(offsets=[place(c, 99, 1)], asynchronous=False),
    "commit a message and offsets": lambda c: c.consumer().commit(message=5, offsets=[]),
    "commit offsets": lambda c: offsets(c.consumer().commit(offsets=[place(c, 0, 1)], asynchronous=False)),
    "commit offsets later": lambda c: then(
        c.consumer(), lambda k: k.commit(offsets=[place(c, 0, 1)]), lambda k: k.close()
    ),
    "store nothing": lambda c: c.consumer().store_offsets(),
    "store text": lambda c: c.consumer().store_offsets(offsets=c.topic),
    "store offsets": lambda c: c.consumer().store_offsets(offsets=[place(c, 0, 1)]),
    "committed": lambda c: offsets(c.consumer().committed([place(c), place(c, 99)], 10)),
    "committed of nothing": lambda c: c.consumer().committed([], 10),
    "committed of text": lambda c: c.consumer().committed(c.topic, 10),
    "committed of names": lambda c: c.consumer().committed([c.topic], 10),
    "position": lambda c: offsets(reading(c).position([place(c), place(c, 99)])),
    "position of text": lambda c: c.consumer().position(c.topic),
    "position of None": lambda c: c.consumer().position(None),
    "watermarks": lambda c: c.consumer().get_watermark_offsets(place(c), 10),
    "watermarks of partition 99": lambda c: c.consumer().get_watermark_offsets(place(c, 99), 10),
    "watermarks of partition -1": lambda c: c.consumer().get_watermark_offsets(place(c, -1), 10),
    "watermarks of text": lambda c: c.consumer().get_watermark_offsets(c.topic, 10),
    "watermarks for a text": lambda c: c.consumer().get_watermark_offsets(place(c), "10"),
    "memberid": lambda c: c.consumer().memberid(),
    "memberid with assign": lambda c: reading(c).memberid(),
    "memberid of a group": lambda c: then(
        c.consumer(),
        lambda k: k.subscribe([c.topic]),
        lambda k: first(c, k),
        lambda k: type(k.memberid()).__name__,
    ),
    **{
        f"offsets_for_times at {at}": lambda c, at=at: offsets(
            c.consumer().offsets_for_times([place(c, 0, at)], 10)
        )
        for at in (0, 1000, 1001, 1002, 1003, -1, -2, -3, -4, -1001)
    },
    "offsets_for_times of partition 99": lambda c: c.consumer().offsets_for_times([place(c, 99, 1)], 10),
    "offsets_for_times of both": lambda c: offsets(
        c.consumer().offsets_for_times([place(c, 0, 1001), place(c, 99, 1)], 10)
    )[0],
    "offsets_for_times of nothing": lambda c: c.consumer().offsets_for_times([], 10),
    "offsets_for_times of text": lambda c: c.consumer().offsets_for_times(c.topic, 10),
    "offsets_for_times of None": lambda c: c.consumer().offsets_for_times(None, 10),
    "list_topics": lambda c: topic_of(c.consumer().list_topics(c.topic, 10), c.topic),
    "list_topics of another": lambda c: topic_of(c.consumer().list_topics(OTHER, 10), OTHER),
    "list_topics of a wrong name": lambda c: topic_of(c.consumer().list_topics("my topic", 10), "my topic"),
    "list_topics of a number": lambda c: c.consumer().list_topics(5, 10),
    "list_topics for a text": lambda c: c.consumer().list_topics(timeout="10"),
    **{
        f"closed: {name}": lambda c, call=call: then(c.consumer(), lambda k: k.close(), call)
        for name, call in {
            "close": lambda k: k.close(),
            "poll": lambda k: k.poll(0),
            "memberid": lambda k: k.memberid(),
            "list_topics": lambda k: k.list_topics(),
            "offsets_for_times": lambda k: k.offsets_for_times([]),
            "incremental_assign": lambda k: k.incremental_assign([]),
            "incremental_unassign": lambda k: k.incremental_unassign([]),
            "consumer_group_metadata": lambda k: k.consumer_group_metadata(),
        }.items()
    },
}

CALLS: dict[str, Call] = {
    **{f"produce: {name}": lambda c, message=message: sent(c, message) for name, message in PRODUCED.items()},
    **{
        f"produce again: {name}": lambda c, message=message: sent(c, {}, message)
        for name, message in PRODUCED.items()
        if name.startswith("partition")
    },
    **{f"topic: {name}": lambda c, topic=topic: sent(c, {}, topic=topic) for name, topic in TOPICS.items()},
    **{
        f"topic again: {name}": lambda c, topic=topic: sent(c, {}, {}, topic=topic)
        for name, topic in TOPICS.items()
    },
    **{f"transaction: {', '.join(names)}": lambda c, names=names: steps(c, *names) for names in TRANSACTIONS},
    **{f"producer: {name}": call for name, call in PRODUCERS.items()},
    **{f"consumer: {name}": call for name, call in CONSUMERS.items()},
}
