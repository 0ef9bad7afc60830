"""What users write by mistake is refused with what must be, what was passed, and what to do."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import pytest

import cloudevents_kafka
from cloudevents_kafka import (
    AsyncEventConsumer,
    BrokenEvent,
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    NotAnEvent,
    Record,
    Undecodable,
    decode,
    register_format,
    sniff,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeProducer
from tests.support.cases import each

NAMED: dict[str, Any] = {"id": "1", "source": "/s", "type": "t"}
EVENT = Event(**NAMED, partitionkey="k", data={"a": 1})
RECORD = to_record(EVENT, key="c-4")
JSON = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}'
SETTINGS = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}


def item() -> Any:
    found = decode(RECORD)
    assert isinstance(found, Decoded)
    return found


def consumer(**options: Any) -> EventConsumer[Any, Any]:
    return EventConsumer(FakeConsumer(FakeLog([])), **{"topics": ["in"], **options})


def producer() -> EventProducer[Any]:
    return EventProducer(FakeProducer(), topic="out")


def made(**wrong: Any) -> Any:
    return lambda: Event(**NAMED, **wrong)


CORE = "an attribute of the core"
MUST_BE: dict[str, tuple[Any, type[Exception], str]] = {
    "content_type": (made(content_type="a/b"), ValueError, f"write datacontenttype, {CORE}"),
    "contentType": (made(contentType="a/b"), ValueError, f"write datacontenttype, {CORE}"),
    "event_type": (made(event_type="x"), ValueError, f"write type, {CORE}"),
    "eventId": (made(eventId="x"), ValueError, f"write id, {CORE}"),
    "schema_url": (made(schema_url="x"), ValueError, f"write dataschema, {CORE}"),
    "my_ext": (made(my_ext="x"), ValueError, "write myext "),
    "data_base64": (made(data_base64="AA=="), ValueError, "pass data=bytes"),
    "dataBase64": (made(dataBase64="AA=="), ValueError, "pass data=bytes"),
    "an item as an event": (lambda: to_record(item()), TypeError, "got a Decoded; pass its event"),
    "an item for Event.of": (lambda: Event.of(item()), TypeError, "got a Decoded; pass its event"),
    "a record as an event": (lambda: Event.of(RECORD), TypeError, "got a Record; use from_record"),
    "a class as an event": (lambda: to_record(Event), TypeError, "got the class Event; make one: Event(**"),
    "no client": (lambda: EventProducer(None), TypeError, "and no flush; pass settings, such as {"),
    "64 bits": (
        made(key=2**40),
        ValueError,
        "got 1099511627776; pass key=str(…), because a text may have any length",
    ),
    "item.data": (lambda: item().data, AttributeError, "no attribute 'data'; it is item.event.data"),
    "item.type": (lambda: item().type, AttributeError, "no attribute 'type'; it is item.event.type"),
    "item.key": (lambda: item().key, AttributeError, "no attribute 'key'; it is item.record.key"),
    "an extension": (lambda: EVENT.partitionkey, AttributeError, "an extension with event['partitionkey']"),  # type: ignore[attr-defined]
    "subject": (
        lambda: setattr(EVENT, "subject", "x"),
        AttributeError,
        "an Event is read-only, so subject cannot be set; event.replace(subject=…)",
    ),
    "a datetime": (
        lambda: producer().send(EVENT, timestamp=datetime.now(UTC)),  # type: ignore[arg-type]
        TypeError,
        "timestamp must be an int, or None, got a datetime; pass milliseconds since the epoch",
    ),
    "a float": (
        lambda: producer().send_record(RECORD, timestamp=1.5),  # type: ignore[arg-type]
        TypeError,
        "timestamp must be an int, or None, got a float; pass milliseconds",
    ),
    "a time-out of a run": (
        lambda: consumer().run(print, idle_timeout="5"),  # type: ignore[arg-type]
        TypeError,
        "idle_timeout must be a number from 0, got a str; pass idle_timeout=5",
    ),
    "a time-out of items": (
        lambda: next(consumer().items(idle_timeout="5")),  # type: ignore[arg-type]
        TypeError,
        "idle_timeout must be a number of seconds, or None, got a str; pass idle_timeout=5.0",
    ),
    "a time-out of batches": (
        lambda: next(consumer().batches(idle_timeout="5")),  # type: ignore[arg-type]
        TypeError,
        "idle_timeout must be a number of seconds",
    ),
    "a batch of no records": (
        lambda: next(consumer().batches(0)),
        ValueError,
        "max_records must be from 1 to 1,000,000, got 0; pass max_records=100",
    ),
    "a batch of a text": (
        lambda: next(consumer().batches("5")),  # type: ignore[arg-type]
        TypeError,
        "max_records must be an int, got a str; pass max_records=100",
    ),
    "a batch of no records in asyncio": (
        lambda: asyncio.run(anext(AsyncEventConsumer(consumer().consumer).batches(0))),  # type: ignore[arg-type]
        ValueError,
        "max_records must be from 1 to 1,000,000, got 0; pass max_records=100",
    ),
    "fetches of a text in asyncio": (
        lambda: AsyncEventConsumer(consumer().consumer, max_records="5"),  # type: ignore[arg-type]
        TypeError,
        "max_records must be an int, got a str; pass max_records=100",
    ),
    "no topics": (lambda: consumer(topics=[]), ValueError, "one or more names, got []; pass ['orders']"),
    "a number as topics": (lambda: consumer(topics=5), TypeError, "list of names, got 5; pass ['orders']"),
    "bytes as topics": (
        lambda: consumer(topics=b"t"),
        TypeError,
        "list of names, got b't'; pass ['orders']",
    ),
    "numbers as topics": (
        lambda: consumer(topics=[1]),
        TypeError,
        "a list of names, got [1]; pass ['orders']",
    ),
    "an empty topic": (
        lambda: consumer(topics=[""]),
        TypeError,
        "a list of names, got ['']; pass ['orders']",
    ),
    "a Boolean as a time-out": (
        lambda: next(consumer().items(idle_timeout=True)),
        TypeError,
        "idle_timeout must be a number of seconds, or None, got a bool; pass idle_timeout=5.0",
    ),
    "an address": (
        lambda: EventProducer("host:9092"),
        TypeError,
        "and no flush; pass settings, such as {'bootstrap.servers': 'host:9092'}",
    ),
    "an address with a password": (
        lambda: EventConsumer("sasl://u:secret@host:9092"),
        TypeError,
        "pass settings, such as {'bootstrap.servers': 'localhost:9092'}",
    ),
    "to_record({…})": (
        lambda: to_record({"id": "1"}),
        TypeError,
        "got a dict; make one: Event(**attributes, data=…)",
    ),
    "Event.of({…})": (
        lambda: Event.of({"id": "1"}),
        TypeError,
        "got a dict; make one: Event(**attributes, data=…)",
    ),
    "register_format": (
        lambda: register_format("yaml", dict),  # type: ignore[arg-type]
        TypeError,
        "make must return an object with name, encode and decode, got the class dict, which has no encode",
    ),
}


@each(("call", "kind", "message"), MUST_BE.values(), ids=MUST_BE)
def test_what_must_be_is_said(call: Any, kind: type[Exception], message: str) -> None:
    """The error has the rule, what was passed and what to do, and the object stays as it was."""
    with pytest.raises(kind, match=re.escape(message)) as caught:
        call()
    assert "secret" not in str(caught.value)
    assert EVENT.subject is None
    assert hasattr(EVENT, "subject")
    assert not hasattr(EVENT, "partitionkey")


def refusal(record: Record, *, lenient: bool = False) -> Any:
    found = decode(record, lenient=lenient)
    assert isinstance(found, Undecodable)
    return found.error


@pytest.mark.parametrize("headers", [[], [("content-type", b"application/json")]])
def test_json_that_no_header_marks(headers: Any) -> None:
    """Strict reading names lenient=True for JSON that may be an event, and for nothing else."""
    error = refusal(Record(value=b"\n " + JSON, headers=headers))
    assert type(error) is NotAnEvent
    assert error.reason.endswith("; the value may be an event in JSON: lenient=True reads it")
    assert refusal(Record(value=b'{"id":"1"}', headers=headers)).reason.endswith("(K-11, Kafka binding 3)")


@pytest.mark.parametrize(("old", "new"), [(b'"1.0"', b'"0.3"'), (b'"1"', b"17")])
def test_the_reason_of_json_that_is_not_an_event(old: bytes, new: bytes) -> None:
    """Lenient reading says what is wrong with the value, and not only that no header marks it."""
    error = refusal(Record(value=JSON.replace(old, new, 1)), lenient=True)
    assert type(error) is NotAnEvent
    (problem,) = error.problems
    assert problem.attribute == ("specversion" if b"0.3" in new else "id")
    assert f"its value is not an event in JSON either: {problem}" in str(error)


@each("lenient", [False, True])
@each("form", ["json", "avro", "protobuf", "avro-compact"])
@each("frame", [b"\0\0\0\0\7", b"\1" + bytes(range(16))], ids=["a number", "a GUID"])
def test_an_event_that_a_registry_has_framed(form: str, frame: bytes, *, lenient: bool) -> None:
    """The error of an envelope in any format says so, and where the event begins in the value."""
    record = to_record(EVENT, mode="structured", format=form)
    value = frame + (record.value or b"")
    error = refusal(Record(value=value, headers=record.headers), lenient=lenient)
    assert type(error) is BrokenEvent
    assert "serializer of a schema registry seems to have framed the value" in str(error)
    (start,) = re.findall(r"read value\[(\d+):\]", str(error))
    read = decode(Record(value=value[int(start) :], headers=record.headers))
    assert isinstance(read, Decoded)
    assert (read.event.id, read.event.payload) == (EVENT.id, EVENT.payload)


def test_framed_json_that_no_header_marks() -> None:
    """The hint is the same without a content type."""
    assert "read value[5:]" in str(refusal(Record(value=b"\0\0\0\0\7" + JSON), lenient=True))
    assert "framed" not in str(
        refusal(Record(value=b"{", headers=to_record(EVENT, mode="structured").headers))
    )


@each("lenient", [False, True])
@each("form", ["avro", "protobuf", "avro-compact"])
def test_a_framed_value_that_no_header_marks(form: str, *, lenient: bool) -> None:
    """The value may be a framed event, unless a header is an attribute or the value is too short."""
    value = b"\0\0\0\0\7" + (to_record(EVENT, mode="structured", format=form).value or b"")
    error = refusal(Record(value=value, headers=[("content-type", b"application/avro")]), lenient=lenient)
    assert type(error) is NotAnEvent
    assert "a serializer of a schema registry may have framed the value: read value[5:] (" in error.reason
    assert "for Protobuf, also skip the message indexes" in error.reason
    assert "framed" not in str(refusal(Record(value=value, headers=[("ce_id", b"1")]), lenient=lenient))
    for other in (value[:5], b"\1" + value):
        assert "framed" not in str(refusal(Record(value=other), lenient=lenient))


TWO = [("content-type", b"application/json"), ("content-type", b"application/cloudevents+json")]


@each("others", [[], RECORD.headers[:4]], ids=["alone", "with attributes"])
@each("value", [JSON, b"{", None])
def test_two_content_types(others: Any, value: bytes | None) -> None:
    """Their order does not matter: the mode, the verdict and the message, which names both, are the same."""
    records = [Record(value=value, headers=[*headers, *others]) for headers in (TWO, TWO[::-1])]
    first, second = (refusal(record) for record in records)
    assert (type(first), first.problems) == (type(second), second.problems)
    assert type(first) is BrokenEvent
    assert "got 'application/cloudevents+json' and 'application/json'" in str(first)
    assert sniff(records[0]) == sniff(records[1])


def test_two_content_types_of_data() -> None:
    """The same holds for two types of data in binary mode."""
    data = [("content-type", b"text/plain"), ("content-type", b"application/json")]
    errors = [refusal(Record(headers=[*each, *RECORD.headers[:4]])) for each in (data, data[::-1])]
    assert errors[0].problems == errors[1].problems
    assert "got 'application/json' and 'text/plain'" in str(errors[0])


READS: dict[str, Any] = {
    "poll": lambda events: events.poll(0),
    "for": lambda events: next(iter(events)),
    "items": lambda events: next(events.items(idle_timeout=0)),
    "batches": lambda events: next(events.batches(idle_timeout=0)),
    "run": lambda events: events.run(print, idle_timeout=0),
}


@each("read", READS.values(), ids=READS)
def test_topics_that_were_forgotten(read: Any) -> None:
    """A client made from settings is refused at its first read, and reads when it has topics."""
    with EventConsumer(SETTINGS) as events:
        for _ in range(2):
            with pytest.raises(
                RuntimeError, match=r"must be subscribed before it reads, got no topics; pass "
            ):
                read(events)
        events.subscribe(["orders"])
        assert events.poll(0) is None


@pytest.mark.parametrize("begin", ["subscribe", "assign"])
def test_topics_by_the_client_itself(begin: str) -> None:
    """Topics and partitions that the client was passed count, too."""
    from confluent_kafka import Consumer, TopicPartition

    with EventConsumer(SETTINGS) as events:
        topics: Any = ["orders"] if begin == "subscribe" else [TopicPartition("orders", 0, 0)]
        getattr(events.consumer, begin)(topics)
        assert events.poll(0) is None
        assert isinstance(events.consumer, Consumer)


def test_forgotten_topics_of_asyncio() -> None:
    """A consumer for asyncio is refused, too."""

    async def read() -> None:
        async with AsyncEventConsumer(SETTINGS) as events:
            await events.poll(0.5)

    with pytest.raises(RuntimeError, match="must be subscribed before it reads, got no topics"):
        asyncio.run(read())


@each("read", READS.values(), ids=READS)
def test_reads_after_close(read: Any) -> None:
    """All reads of a closed consumer raise, as poll does."""
    events = consumer()
    events.close()
    with pytest.raises(RuntimeError, match="closed"):
        read(events)


@each("name", ["poll", "items", "batches", "run"])
def test_reads_of_asyncio_after_close(name: str) -> None:
    """So do those of a consumer for asyncio."""

    async def handle(_: Decoded) -> None: ...

    async def read() -> None:
        events = AsyncEventConsumer(consumer().consumer)
        await events.close()
        if name in {"items", "batches"}:
            await anext(getattr(events, name)(idle_timeout=0))
        else:
            await (events.poll(0) if name == "poll" else events.run(handle))

    with pytest.raises(RuntimeError, match="needs an open consumer, got a closed consumer; make a new"):
        asyncio.run(read())


def test_runs_after_stop() -> None:
    """A run or a processor of a consumer that was stopped raises, where it would handle nothing."""
    events = consumer()
    events.stop()
    sender = EventProducer(FakeProducer(transactional=True), topic="out")
    for run in (lambda: events.run(print), EventProcessor(events, sender, print).run):
        with pytest.raises(RuntimeError, match=r"run\(\) needs an open consumer, got a stopped consumer"):
            run()


def test_the_names_of_the_module() -> None:
    """``dir`` has each exported name, also those that are imported when they are used, and no others."""
    names = dir(cloudevents_kafka)
    assert set(cloudevents_kafka.__all__) <= set(names)
    assert {"AsyncDelivery", "AsyncEventConsumer", "AsyncEventProcessor", "AsyncEventProducer"} <= set(names)
    assert {"Any", "TYPE_CHECKING", "annotations"}.isdisjoint(names)
