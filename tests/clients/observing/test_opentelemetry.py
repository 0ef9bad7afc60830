"""Spans of `OpenTelemetryObserver`, as OpenTelemetry's exporter in memory gets them."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as contexts
from opentelemetry.instrumentation.confluent_kafka import ConfluentKafkaInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.semconv import schemas
from opentelemetry.semconv._incubating.attributes import cloudevents_attributes, messaging_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind, StatusCode

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    DeadLetters,
    Decoded,
    DeliveryError,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    Record,
    from_record,
    to_record,
)
from cloudevents_kafka.clients.observing import _conventions as conventions
from cloudevents_kafka.clients.observing.opentelemetry import OpenTelemetryObserver
from cloudevents_kafka.extensions import Trace, hop_trace, origin_trace, start_trace
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer, LocalBroker

HOP = Trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1")
ORIGIN = Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
EVENT = Event(id="1", source="/shop", type="order.placed", subject="4", data={"total": "9.50"})


class Spans:
    """A provider, its spans in memory, and an observer."""

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.observer = OpenTelemetryObserver(self.provider, **options)
        self.tracer = self.provider.get_tracer("test")

    @property
    def all(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def of(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name.partition(" ")[0] == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = [span for span in self.all if span.name == name]
        return span


@pytest.fixture
def spans() -> Spans:
    return Spans()


def links(span: ReadableSpan) -> list[tuple[str, Any]]:
    return [(f"{link.context.span_id:016x}", dict(link.attributes or {})) for link in span.links]


def span_id(span: ReadableSpan) -> str:
    return f"{span.get_span_context().span_id:016x}"


def parent(span: ReadableSpan) -> str | None:
    return None if span.parent is None else f"{span.parent.span_id:016x}"


def message(event: Event = EVENT, hop: Trace | None = HOP, topic: str = "in", **place: Any) -> FakeMessage:
    headers = {} if hop is None else hop.carrier()
    record = to_record(event, headers=headers, key=place.pop("key", None))
    return FakeMessage(topic, record.value, record.key, record.headers, **place)


def reader(*messages: FakeMessage) -> FakeConsumer:
    client = FakeConsumer(FakeLog(messages), auto_commit=False)
    client.subscribe(["in"])
    return client


def headers_of(client: FakeProducer) -> list[list[tuple[str, bytes | None]]]:
    return [message.headers() or [] for message in client.log]


def traceparents(headers: Any) -> list[bytes]:
    return [value for name, value in headers if name == "traceparent"]


# The table of names


def test_names_are_those_of_the_conventions() -> None:
    """Each name of the table is one of OpenTelemetry's own package, and the version is one that it knows."""
    official = {
        value
        for module in (messaging_attributes, cloudevents_attributes, error_attributes)
        for name, value in vars(module).items()
        if isinstance(value, str) and name.isupper()
    }
    ours = {value for name, value in vars(conventions).items() if name.isupper() and isinstance(value, str)}
    ours |= set(conventions.EVENT.values())
    own = {conventions.SCHEMA_URL, conventions.TRACE, conventions.CLAUSE}
    assert ours - own <= official
    types = {each.value for each in messaging_attributes.MessagingOperationTypeValues}
    operations = (conventions.SEND, conventions.POLL, conventions.PROCESS, conventions.COMMIT)
    assert {each.type for each in operations} <= types
    assert conventions.SCHEMA_URL in {each.value for each in schemas.Schemas}


# Sending


def test_a_send_is_a_span_until_the_report(spans: Spans) -> None:
    """The span of a message has its place, its sizes and its event, and its context is in the headers."""
    client = FakeProducer()
    with EventProducer(client, topic="in", observers=[spans.observer]) as producer:
        producer.send(EVENT, key="customer-4")
    span = spans.one("send in")
    assert span.kind == SpanKind.PRODUCER
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "in",
        "messaging.destination.partition.id": "0",
        "messaging.kafka.offset": 0,
        "messaging.kafka.message.key": "customer-4",
        "messaging.message.body.size": 16,
        "cloudevents.event_id": "1",
        "cloudevents.event_source": "/shop",
        "cloudevents.event_spec_version": "1.0",
        "cloudevents.event_type": "order.placed",
        "cloudevents.event_subject": "4",
    }
    assert (span.status.status_code, span.parent, span.links) == (StatusCode.UNSET, None, ())
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.schema_url == conventions.SCHEMA_URL
    hop = hop_trace(Record(headers=headers_of(client)[0]))
    assert hop is not None
    assert hop.parent_id == span_id(span)


def test_a_send_belongs_to_the_current_span(spans: Spans) -> None:
    """The parent of a send is the current span, whose baggage is in the headers, too."""
    client = FakeProducer()
    with spans.tracer.start_as_current_span("work") as work:
        token = contexts.attach(baggage.set_baggage("tenant", "7"))
        with EventProducer(client, topic="in", observers=[spans.observer]) as producer:
            producer.send(EVENT)
        contexts.detach(token)
    assert parent(spans.one("send in")) == f"{work.get_span_context().span_id:016x}"
    assert ("baggage", b"tenant=7") in headers_of(client)[0]


def test_a_failed_delivery_is_an_error(spans: Spans) -> None:
    """The span of a message that was not delivered has the client's name of its error."""
    client = FakeProducer()
    client.fail_next("_MSG_TIMED_OUT")
    producer = EventProducer(client, topic="in", observers=[spans.observer])
    with pytest.raises(DeliveryError):
        producer.send(EVENT).result()
    span = spans.one("send in")
    assert span.status.status_code == StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "_MSG_TIMED_OUT"


def test_each_hop_is_in_the_headers_once_and_the_origin_in_the_event(spans: Spans) -> None:
    """A relay writes its own hop in place of the last one, and its span links to that."""
    event, headers = start_trace(EVENT, ORIGIN)
    client = FakeProducer()
    with EventProducer(client, topic="in", observers=[spans.observer]) as producer:
        producer.send(event, headers=headers)
        producer.send_record(message(event, HOP))
        producer.send(event, like=Record.of(message(event, HOP)))
    assert [len(traceparents(each)) for each in headers_of(client)] == [1, 1, 1]
    for sent, span, before in zip(client.log, spans.of("send"), (ORIGIN, HOP, HOP), strict=True):
        record = Record.of(sent)
        hop = hop_trace(record)
        assert hop is not None
        assert hop.parent_id == span_id(span) != before.parent_id
        assert hop.trace_id == before.trace_id  # nothing was current: the trace goes on
        assert links(span) == [(before.parent_id, {"cloudevents_kafka.trace": "hop"})]
        assert origin_trace(from_record(record)) == ORIGIN
    assert hop_trace(Record.of([*client.log][1])).tracestate == "vendor=1"  # type: ignore[union-attr]


def test_ambiguous_headers_are_no_hop(spans: Spans) -> None:
    """Several ``traceparent`` headers, and bytes that are not one, count as none; the new record has one."""
    client = FakeProducer()
    with EventProducer(client, topic="in", observers=[spans.observer]) as producer:
        producer.send(EVENT, headers=[("traceparent", HOP.traceparent), ("traceparent", ORIGIN.traceparent)])
        producer.send(EVENT, headers=[("traceparent", b"\xff\xfe"), ("tracestate", None)])
    assert [(span.parent, span.links) for span in spans.of("send")] == [(None, ())] * 2
    assert [len(traceparents(each)) for each in headers_of(client)] == [1, 1]


@pytest.mark.parametrize(
    "before",
    [
        HOP.carrier().items(),  # of another trace than the current span
        [*HOP.carrier().items(), ("traceparent", HOP.traceparent)],
        [("traceparent", "bad"), ("tracestate", "vendor=1")],
        [("tracestate", "vendor=1")],
    ],
)
def test_a_new_trace_has_no_tracestate_of_another_trace(spans: Spans, before: Any) -> None:
    """A tracestate belongs to the traceparent next to it, so a new traceparent replaces both."""
    client = FakeProducer()
    with (
        spans.tracer.start_as_current_span("relay"),
        EventProducer(client, topic="in", observers=[spans.observer]) as producer,
    ):
        producer.send(EVENT, headers=before)
    [headers] = headers_of(client)
    assert len(traceparents(headers)) == 1
    assert "tracestate" not in dict(headers)


@pytest.mark.parametrize("name", ["baggage", "tracestate", "ce_tracestate"])
@pytest.mark.parametrize("times", [1, 3])
def test_long_headers_are_neither_read_nor_logged(
    spans: Spans, caplog: pytest.LogCaptureFixture, name: str, times: int
) -> None:
    """A propagator logs what it refuses, so it gets no header that is longer than its own bound."""
    long = [(name, b"x" * (800_000 // times))] * (1 if name.startswith("ce_") else times)
    sent = message(EVENT, HOP)
    headers: Any = [*(header for header in sent.headers() or [] if header[0] != name), *long]
    if name.startswith("ce_"):
        headers.append(("ce_traceparent", ORIGIN.traceparent.encode()))
    client = reader(*[FakeMessage("in", sent.value(), None, headers) for _ in range(3)])
    seen = []
    EventConsumer(client, lenient=True, observers=[spans.observer]).run(
        lambda item: seen.append(item.event.id), idle_timeout=0
    )
    assert seen == ["1"] * 3
    assert sum(len(record.getMessage()) for record in caplog.records) < 10_000
    assert {parent(span) for span in spans.of("process")} == {HOP.parent_id}


def test_baggage_within_the_bound_is_read(spans: Spans) -> None:
    """The handler has the baggage of its record."""
    sent = message(EVENT, HOP)
    headers: Any = [*(sent.headers() or []), ("baggage", b"tenant=shop")]
    seen = []
    EventConsumer(reader(FakeMessage("in", sent.value(), None, headers)), observers=[spans.observer]).run(
        lambda item: seen.append(baggage.get_baggage("tenant")), idle_timeout=0
    )
    assert seen == ["shop"]


def test_without_a_provider_headers_stay_as_they_are() -> None:
    """With OpenTelemetry's API alone nothing is recorded, and a record keeps the headers that it has."""
    client = FakeProducer()
    with EventProducer(client, topic="in", observers=[OpenTelemetryObserver()]) as producer:
        producer.send(EVENT)
        producer.send(EVENT, headers=HOP.carrier())
    assert [traceparents(each) for each in headers_of(client)] == [[], [HOP.traceparent.encode()]]


def test_a_trace_that_is_not_sampled_is_passed_on() -> None:
    """The headers say that a trace is not recorded."""
    client, observer = FakeProducer(), OpenTelemetryObserver(TracerProvider(sampler=ALWAYS_OFF))
    with EventProducer(client, topic="in", observers=[observer]) as producer:
        producer.send(EVENT)
    [value] = traceparents(headers_of(client)[0])
    assert value.endswith((b"-00", b"-02"))


def test_no_span_is_left_behind(spans: Spans) -> None:
    """After reports and refusals the observer has no span any more."""
    client = FakeProducer(max_bytes=10_000)
    with EventProducer(client, topic="in", observers=[spans.observer]) as producer:
        for number in range(50):
            producer.send(EVENT, key=str(number), on_delivery=lambda _: None)
        with pytest.raises(DeliveryError):
            producer.send(Event(id="1", source="/s", type="t", data="x" * 20_000))
    assert spans.observer._sending == {}
    assert len(spans.of("send")) == 51


# Handling


def handle_in_threads(client: Any, handler: Any, observers: Any, **options: Any) -> None:
    EventConsumer(client, observers=observers).run(handler, idle_timeout=0, backoff=0, **options)


def handle_in_tasks(client: Any, handler: Any, observers: Any, **options: Any) -> None:
    async def handle(item: Decoded) -> None:
        before = trace.get_current_span()
        await asyncio.sleep(0.001)
        assert trace.get_current_span() is before
        handler(item)

    async def main() -> None:
        events = AsyncEventConsumer(client, observers=observers)
        await events.run(handle, idle_timeout=0, backoff=0, **options)

    asyncio.run(main())


def process_in_thread(client: Any, handler: Any, observers: Any, **options: Any) -> None:
    producer = EventProducer(FakeProducer(transactional=True), topic="out")
    options.pop("concurrency", None)
    EventProcessor(EventConsumer(client), producer, handler, observers=observers, **options).run(
        idle_timeout=0
    )


def process_in_tasks(client: Any, handler: Any, observers: Any, **options: Any) -> None:
    async def handle(item: Decoded) -> None:
        await asyncio.sleep(0)
        handler(item)

    async def main() -> None:
        producer = AsyncEventProducer(FakeProducer(transactional=True), topic="out")
        options.pop("concurrency", None)
        processor = AsyncEventProcessor(
            AsyncEventConsumer(client), producer, handle, observers=observers, **options
        )
        await processor.run(idle_timeout=0)

    asyncio.run(main())


LOOPS = pytest.mark.parametrize(
    "loop", [handle_in_threads, handle_in_tasks, process_in_thread, process_in_tasks]
)


@LOOPS
def test_the_span_of_a_record_is_current_in_its_handler(spans: Spans, loop: Any) -> None:
    """It continues the trace of the hop, links to it and to the origin, and has what the handler makes."""
    event, _ = start_trace(EVENT, ORIGIN)
    within = []

    def handle(item: Decoded) -> None:
        within.append(trace.get_current_span().get_span_context().span_id)
        with spans.tracer.start_as_current_span("inner"):
            pass

    loop(reader(message(event, key="k")), handle, [spans.observer])
    span = spans.one("process in")
    assert within == [span.get_span_context().span_id]
    assert parent(spans.one("inner")) == span_id(span)
    assert span.kind == SpanKind.CONSUMER
    assert parent(span) == HOP.parent_id
    assert links(span) == [
        (HOP.parent_id, {"cloudevents_kafka.trace": "hop"}),
        (ORIGIN.parent_id, {"cloudevents_kafka.trace": "origin"}),
    ]
    attributes = dict(span.attributes or {})
    assert attributes["messaging.operation.type"] == "process"
    assert attributes["messaging.kafka.message.key"] == "k"
    assert (attributes["messaging.kafka.offset"], attributes["cloudevents.event_id"]) == (0, "1")
    assert trace.get_current_span() is trace.INVALID_SPAN


@LOOPS
def test_records_that_are_handled_together_have_their_own_contexts(spans: Spans, loop: Any) -> None:
    """Each handler sends within the span of its own record, with several at the same time."""
    hops = [Trace.begin() for _ in range(12)]
    client = FakeProducer()
    producer = EventProducer(client, topic="out", observers=[spans.observer])
    messages = [message(hop=hop, key=f"k{number}") for number, hop in enumerate(hops)]
    loop(
        reader(*messages),
        lambda item: producer.send(item.event, key=item.record.key),
        [spans.observer],
        concurrency=4,
    )
    producer.close()
    processed = {(span.attributes or {})["messaging.kafka.message.key"]: span for span in spans.of("process")}
    assert len(processed) == 12
    for span in spans.of("send"):
        key = (span.attributes or {})["messaging.kafka.message.key"]
        assert parent(span) == span_id(processed[key])
    for number, hop in enumerate(hops):
        assert parent(processed[f"k{number}"]) == hop.parent_id
    assert {value[3:35].decode() for each in headers_of(client) for value in traceparents(each)} == {
        hop.trace_id for hop in hops
    }


@LOOPS
def test_a_failed_try_is_an_error(spans: Spans, loop: Any) -> None:
    """Each try has a span; one that failed has the class of its error, and the exception."""
    fails = [ValueError("once")]

    def handle(item: Decoded) -> None:
        if fails:
            raise fails.pop()

    loop(reader(message()), handle, [spans.observer], tries=2, on_failure="skip")
    first, second = spans.of("process")
    assert (first.status.status_code, second.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert (first.attributes or {})["error.type"] == "ValueError"
    assert [each.name for each in first.events] == ["exception"]


@pytest.mark.parametrize("loop", [handle_in_threads, handle_in_tasks])
def test_a_dead_letter_goes_on_with_the_trace(spans: Spans, loop: Any) -> None:
    """A record that is not an event has a span with its verdict; its letter is of the same trace."""
    broken = FakeMessage("in", b"17", None, [("traceparent", HOP.traceparent.encode())])
    client = FakeProducer()
    letters = DeadLetters(EventProducer(client, observers=[spans.observer]), topic="dead")
    loop(reader(broken), lambda item: None, [spans.observer], on_failure=letters)
    span, letter = spans.one("process in"), spans.one("send dead")
    attributes = dict(span.attributes or {})
    assert attributes["error.type"] == "not-an-event"
    assert attributes["cloudevents_kafka.clause"] == "K-11"
    assert span.status.status_code == StatusCode.ERROR
    assert parent(span) == parent(letter) == HOP.parent_id
    assert [value[36:52].decode() for value in traceparents(headers_of(client)[0])] == [span_id(letter)]


def test_a_run_within_a_span_belongs_to_it(spans: Spans) -> None:
    """In asyncio a run that is awaited within a span keeps it as the parent; the hop is a link only."""

    async def main() -> None:
        async def handle(item: Decoded) -> None:
            pass

        with spans.tracer.start_as_current_span("service"):
            await AsyncEventConsumer(reader(message()), observers=[spans.observer]).run(
                handle, idle_timeout=0
            )

    asyncio.run(main())
    span = spans.one("process in")
    assert parent(span) == span_id(spans.one("service"))
    assert [link[0] for link in links(span)] == [HOP.parent_id]


# Batches, polls and commits


def test_a_batch_links_to_all_its_hops(spans: Spans) -> None:
    """The span of a batch that is read, and that of the work on it, have a link for each record."""
    hops = [Trace.begin() for _ in range(3)]
    client = reader(*[message(hop=hop) for hop in hops], message(hop=None))
    for batch in EventConsumer(client, observers=[spans.observer]).batches(idle_timeout=0):
        with spans.observer.handling(*batch):
            pass
    for name, kind in (("poll in", SpanKind.CLIENT), ("process in", SpanKind.CONSUMER)):
        span = spans.one(name)
        assert span.kind == kind
        assert span.parent is None
        assert [link[0] for link in links(span)] == [hop.parent_id for hop in hops]
        attributes = dict(span.attributes or {})
        assert attributes["messaging.batch.message_count"] == 4
        assert attributes["messaging.destination.partition.id"] == "0"
        assert "messaging.kafka.offset" not in attributes
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time


def test_a_batch_of_several_topics_has_none(spans: Spans) -> None:
    """A span has a topic and a partition only if all records have them."""
    items = [
        EventConsumer(reader(message())).read_item(Record.of(message(topic=topic, partition=0, offset=0)))
        for topic in ("a", "b")
    ]
    with spans.observer.handling(*items):
        pass
    span = spans.one("process")
    assert not {conventions.TOPIC, conventions.PARTITION} & (span.attributes or {}).keys()


def test_a_loop_of_ones_own_takes_the_same_spans(spans: Spans) -> None:
    """`handling` is a context manager for loops without a run; a record that comes alone has no poll."""
    for item in EventConsumer(reader(message()), observers=[spans.observer]).items(idle_timeout=0):
        with spans.observer.handling(item) as span:
            assert trace.get_current_span() is span
    assert [span.name for span in spans.all] == ["process in"]
    with pytest.raises(KeyError), spans.observer.handling(item):
        raise KeyError
    assert spans.all[1].status.status_code == StatusCode.ERROR


@pytest.mark.parametrize("commits", [True, False])
def test_a_commit_is_a_span(*, commits: bool) -> None:
    """A commit has a span with its place, unless there are to be none; all have the observer's attributes."""
    group = {"messaging.consumer.group.name": "mail"}
    spans = Spans(attributes=group, commits=commits)
    events = EventConsumer(reader(message()), observers=[spans.observer])
    events.commit(next(events.items()))
    assert len(spans.of("commit")) == commits
    for span in spans.of("commit"):
        attributes = dict(span.attributes or {})
        assert span.kind == SpanKind.CLIENT
        assert attributes["messaging.operation.type"] == "settle"
        assert attributes.items() >= {**group, "messaging.kafka.offset": 1}.items()


def test_a_tombstone_and_a_key_of_bytes(spans: Spans) -> None:
    """A record without a value is marked; a key that is not a text is left out."""
    with EventProducer(FakeProducer(), topic="in", observers=[spans.observer]) as producer:
        producer.send_record(Record(key=b"\xff"))
    attributes = dict(spans.one("send in").attributes or {})
    assert attributes["messaging.kafka.message.tombstone"] is True
    assert "messaging.kafka.message.key" not in attributes


# Next to OpenTelemetry's own instrumentation


@pytest.fixture
def instrumented(spans: Spans) -> Iterator[None]:
    ConfluentKafkaInstrumentor().instrument(tracer_provider=spans.provider)
    try:
        yield
    finally:
        ConfluentKafkaInstrumentor().uninstrument()


@pytest.mark.broker
@pytest.mark.usefixtures("instrumented")
def test_with_the_instrumentation_a_record_has_one_traceparent(
    spans: Spans, kafka_broker: LocalBroker
) -> None:
    """With both on, the one ``traceparent`` of a record is that of our span; the other span is there, too."""
    topic = kafka_broker.create_topic(f"traces-{uuid.uuid4()}")
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers, "log_level": 0}
    for producer in (
        EventProducer(settings, topic=topic, observers=[spans.observer]),
        EventProducer(confluent_kafka.Producer(settings), topic=topic, observers=[spans.observer]),
    ):
        assert "opentelemetry" in type(producer.producer).__module__
        with producer, spans.tracer.start_as_current_span("work"):
            producer.send(EVENT)
            producer.send_record(message(hop=HOP))

    async def send() -> None:
        async with AsyncEventProducer(settings, topic=topic, observers=[spans.observer]) as producer:
            await producer.send(EVENT)

    asyncio.run(send())
    reading = {**settings, "group.id": str(uuid.uuid4()), "auto.offset.reset": "earliest"}
    found: list[Any] = []
    with EventConsumer(reading, topics=[topic], observers=[spans.observer]) as events:

        def handle(item: Decoded) -> None:
            found.append(item)
            if len(found) == 5:
                events.stop()

        events.run(handle)
    assert [len(traceparents(item.record.headers)) for item in found] == [1] * 5
    ours = {span_id(span) for span in spans.of("send")}
    assert {hop_trace(item.record).parent_id for item in found} == ours  # type: ignore[union-attr]
    assert len([span for span in spans.all if span.name == f"{topic} send"]) == 5
    assert {parent(span) for span in spans.of("process")} == ours


@pytest.mark.usefixtures("instrumented")
def test_a_client_that_was_instrumented_by_hand(spans: Spans) -> None:
    """``instrument_producer`` wraps a client, and a record has one ``traceparent``, too."""
    client = FakeProducer()
    wrapped = ConfluentKafkaInstrumentor().instrument_producer(client, spans.provider)  # type: ignore[arg-type]
    with EventProducer(wrapped, topic="in", observers=[spans.observer]) as producer:
        producer.send(EVENT)
    [value] = traceparents(headers_of(client)[0])
    assert value[36:52].decode() == span_id(spans.one("send in"))


def test_sends_of_many_tasks_keep_their_parents(spans: Spans) -> None:
    """Spans of tasks do not mix, although a thread serves the reports."""

    async def work(name: str, producer: AsyncEventProducer[Any]) -> None:
        with spans.tracer.start_as_current_span(name) as span:
            for _ in range(5):
                await producer.send(EVENT, key=name)
                assert trace.get_current_span() is span

    async def main() -> None:
        async with AsyncEventProducer(FakeProducer(), topic="in", observers=[spans.observer]) as producer:
            await asyncio.gather(*(work(f"t{number}", producer) for number in range(8)))

    asyncio.run(main())
    works = {span.name: span_id(span) for span in spans.all if span.name.startswith("t")}
    for span in spans.of("send"):
        assert parent(span) == works[(span.attributes or {})["messaging.kafka.message.key"]]  # type: ignore[index]
    assert len(spans.of("send")) == 40


def test_sends_of_many_threads_keep_their_parents(spans: Spans) -> None:
    """Spans of threads do not mix."""
    client = FakeProducer()
    producer = EventProducer(client, topic="in", observers=[spans.observer])

    def work(name: str) -> None:
        with spans.tracer.start_as_current_span(name):
            for _ in range(20):
                producer.send(EVENT, key=name)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.close()
    works = {span.name: span_id(span) for span in spans.all if span.name.startswith("t")}
    for span in spans.of("send"):
        assert parent(span) == works[(span.attributes or {})["messaging.kafka.message.key"]]  # type: ignore[index]
    assert len(spans.of("send")) == 80
