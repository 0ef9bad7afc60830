"""`OpenTelemetryObserver`: makes spans for sent and handled records, for batches, and for commits.

The rules of `OpenTelemetryObserver`:

1. The headers of a sent record contain the trace context of the record's "send" span exactly once, even if
   other instrumentation of the client adds a trace context of its own. No ``tracestate`` of an earlier trace
   context is kept. The trace context in the event's attributes, which shows where the event originated, is
   not changed.
2. A span about received records has one link for each record: to the "send" span of the producer (the hop).
   If the event originated in another span (the origin), the span has a second link, to the origin.
3. The parent of a new span is the current span. If no span is current, and the new span is about exactly one
   record, its parent is the hop of this record.
4. Headers that have the same name are passed to trace propagators only if they have at most `MAX_HEADER`
   bytes in total, because propagators log the headers that they refuse.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients.observing import _conventions as names
from cloudevents_kafka.clients.observing._protocol import Notice, Observer
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import HeaderInput, Headers, Record

__all__ = ["OpenTelemetryObserver"]

MAX_HEADER: Final = 8192
"""The largest total size, in bytes, of headers with the same name: W3C's limit for ``baggage``."""
_Sources = Sequence[tuple[Record, Event[Any] | None]]


class OpenTelemetryObserver(Observer):
    """Makes spans according to OpenTelemetry's messaging conventions 1.44.0. Needs the extra ``tracing``.

    ``tracer_provider`` makes the spans; by default, it is the global tracer provider. The global propagator
    of OpenTelemetry reads and writes the trace headers. ``attributes``, such as
    ``{"messaging.consumer.group.name": "mail"}``, are added to each span. If ``commits`` is False, no spans
    are made for commits. One observer may be passed to any number of clients.

    Examples:
        >>> from cloudevents_kafka import EventConsumer, EventProducer
        >>> from cloudevents_kafka.clients.observing.opentelemetry import OpenTelemetryObserver
        >>> observers = [OpenTelemetryObserver()]
        >>> invoices = EventProducer(producer, topic="invoices", observers=observers)
        >>> with EventConsumer(consumer, observers=observers) as events:
        ...     counts = events.run(lambda item: invoices.send(item.event), idle_timeout=0.1)
        >>> counts.handled
        2
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        attributes: Mapping[str, str | int | float | bool] | None = None,
        commits: bool = True,
    ) -> None:
        self._tracer = trace.get_tracer("cloudevents_kafka", None, tracer_provider, names.SCHEMA_URL)
        self._attributes = dict(attributes or {})
        self._commits = commits
        self._sending: dict[int, Span] = {}  # by the id of a record, which exists until its report

    def sending(self, record: Record) -> HeaderInput:
        """Begin the span of a message, and return the headers that contain its trace context."""
        span, context = self._start(names.SEND, record.topic, [(record, None)])
        self._sending[id(record)] = span
        headers: dict[str, str] = {}
        propagate.inject(headers, trace.set_span_in_context(span, context))
        return headers

    def delivered(self, notice: Notice) -> None:
        """End the span of a message; set the span's error if the delivery has failed."""
        span = self._sending.pop(id(notice.record), None)
        if span is not None:
            place = {names.PARTITION: _text(notice.partition), names.OFFSET: notice.offset}
            span.set_attributes(_known(place) | _of_event(notice.event))
            _end(span, notice.error_name)

    failed = delivered

    @contextmanager
    def handling(self, *items: Decoded | Undecodable) -> Iterator[Span]:
        """Return a context manager that makes a span while a record, or all records of a batch, are handled.

        If you do not use `run`, call this method in your own loop.

        Examples:
            >>> from cloudevents_kafka import EventConsumer
            >>> from cloudevents_kafka.clients.observing.opentelemetry import OpenTelemetryObserver
            >>> observer = OpenTelemetryObserver()
            >>> for batch in EventConsumer(consumer).batches(idle_timeout=0.1):
            ...     with observer.handling(*batch):
            ...         print(len(batch))
            2
        """
        found = [(item.record, item.event if isinstance(item, Decoded) else None) for item in items]
        span, context = self._start(names.PROCESS, _one([record.topic for record, _ in found]), found)
        token = contexts.attach(trace.set_span_in_context(span, context))
        error_name = ""
        try:
            yield span
        except BaseException as error:
            error_name = type(error).__name__
            span.record_exception(error)
            raise
        finally:
            contexts.detach(token)
            _end(span, error_name)

    def received(self, notices: Sequence[Notice]) -> None:
        """Make the span of a batch; a batch of one record has only the span of the record's handler."""
        if len(notices) > 1:
            found = [(each.record, each.event) for each in notices if each.record is not None]
            topic = _one([each.topic for each in notices])
            _end(self._start(names.POLL, topic, found, notices[0].seconds)[0])

    def skipped(self, notice: Notice) -> None:
        """Make the span of a record that is not an event; a run does not pass this record to the handler."""
        if notice.verdict is not None and notice.record is not None:
            span, _ = self._start(names.PROCESS, notice.topic, [(notice.record, None)])
            span.set_attributes(_known({names.CLAUSE: notice.clause}))
            _end(span, notice.verdict)

    dead_lettered = skipped

    def committed(self, notices: Sequence[Notice]) -> None:
        """Make the span of a commit of offsets."""
        if self._commits:
            topic = _one([each.topic for each in notices])
            span, _ = self._start(names.COMMIT, topic, [], notices[0].seconds)
            if len(notices) == 1:
                place = {names.PARTITION: _text(notices[0].partition), names.OFFSET: notices[0].offset}
                span.set_attributes(_known(place))
            _end(span)

    def _start(
        self, operation: names.Operation, topic: str | None, found: _Sources, seconds: float | None = None
    ) -> tuple[Span, Context]:
        """Return a new span that began ``seconds`` ago, and the context of its parent."""
        context = contexts.get_current()
        links: list[Link] = []
        for record, event in found:
            own, hop = _context_of(record)
            context = own if len(found) == 1 else context
            links += _links(hop, event)
        partitions = [_text(record.partition) for record, _ in found]
        attributes = {
            names.SYSTEM: "kafka",
            names.OPERATION: operation.name,
            names.TYPE: operation.type,
            names.TOPIC: topic,
            names.PARTITION: None if topic is None else _one(partitions),
            names.COUNT: len(found) if len(found) > 1 else None,
            **(_of_record(found[0][0]) | _of_event(found[0][1]) if len(found) == 1 else {}),
        }
        name = operation.name if topic is None else f"{operation.name} {topic}"
        began = time.time_ns() - int((seconds or 0) * 1e9)
        attributes = self._attributes | _known(attributes)
        return self._tracer.start_span(name, context, operation.kind, attributes, links, began), context


def _end(span: Span, error_name: str = "") -> None:
    if error_name:
        span.set_attribute(names.ERROR, error_name)
        span.set_status(Status(StatusCode.ERROR, error_name))
    span.end()


def _context_of(record: Record) -> tuple[Context, SpanContext]:
    """Return the context for handling a record, and the context of the span that sent the record."""
    current = trace.get_current_span()
    context = propagate.extract(record.headers, contexts.get_current(), _HEADERS)
    hop = trace.get_current_span(context)
    if current.get_span_context().is_valid:
        context = trace.set_span_in_context(current, context)
    return context, trace.INVALID_SPAN_CONTEXT if hop is current else hop.get_span_context()


def _links(hop: SpanContext, event: Event[Any] | None) -> Iterator[Link]:
    """Yield a link to the span that sent a record, and a second link if the event originated elsewhere."""
    if hop.is_valid:
        yield Link(hop, {names.TRACE: "hop"})
    if event is None:
        return
    origin: Headers = [(name, (event.text(name) or "").encode()) for name in ("traceparent", "tracestate")]
    began = trace.get_current_span(_W3C.extract(origin, Context(), _HEADERS)).get_span_context()
    if began.is_valid and (began.trace_id, began.span_id) != (hop.trace_id, hop.span_id):
        yield Link(began, {names.TRACE: "origin"})


def _of_record(record: Record) -> dict[str, Any]:
    try:
        key = None if record.key is None else record.key.decode()
    except UnicodeDecodeError:
        key = None  # the conventions leave out a key that is not a text
    is_tombstone = True if record.value is None else None
    size = len(record.value or b"")
    return {names.OFFSET: record.offset, names.KEY: key, names.TOMBSTONE: is_tombstone, names.SIZE: size}


def _of_event(event: Event[Any] | None) -> dict[str, Any]:
    return (
        {}
        if event is None
        else _known({name: event.text(attribute) for attribute, name in names.EVENT.items()})
    )


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _one(values: Sequence[str | None]) -> str | None:
    """Return the value if all values are equal, or None if the values differ."""
    return values[0] if values and len(set(values)) == 1 else None


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


class _HeaderGetter(Getter[Headers]):
    """Reads headers up to `MAX_HEADER` bytes; ignores a repeated ``traceparent``, as `hop_trace` does."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        found = [value or b"" for name, value in carrier if name == key]
        if not found or (len(found) > 1 and key == "traceparent") or sum(map(len, found)) > MAX_HEADER:
            return None
        return [value.decode("utf-8", "replace") for value in found]

    def keys(self, carrier: Headers) -> list[str]:
        return [name for name, _ in carrier]


_HEADERS: Final = _HeaderGetter()
_W3C: Final = TraceContextTextMapPropagator()
