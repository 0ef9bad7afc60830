"""EventProducer: sends events through a user's Kafka producer.

If the queue of the client is full, it serves delivery reports until there is room, instead of
raising ``BufferError``. Each sent event has a `Delivery`, each sent record a `RecordDelivery`.
`flush` and `close` raise an error for failed deliveries that were not passed to a callback.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Generic, Self, TypeVar
from weakref import ReferenceType, ref

import msgspec

from cloudevents_kafka.binding import ContentMode, KeyMapper, check_mode, encode, from_record
from cloudevents_kafka.clients._protocols import Producer, check_client, is_purged
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import HeaderInput, Record, RecordInput, with_bytes_headers

_POLL_SECONDS: Final = 0.2  # the longest wait within the client, which delays Ctrl-C
ProducerT = TypeVar("ProducerT", bound=Producer)


class Delivery(msgspec.Struct, eq=False, weakref=True):
    """The delivery of one event.

    ``done`` is whether the delivery report has arrived; then ``partition`` and ``offset`` are set if
    it succeeded. A client with ``delivery.report.only.error`` reports only failures: a delivery is
    ``done`` then when `result` has seen that none came, without ``partition`` and ``offset``.
    It keeps neither an exception nor a callback, whose references would delay freeing the event.

    Examples:
        >>> from cloudevents_kafka import Event, EventProducer
        >>> event = Event(id="1", source="/shop", type="order.placed")
        >>> EventProducer(producer, topic="orders").send(event).result()
        Delivery(event '1' of '/shop': orders[0]@0)
    """

    _sent: Any
    topic: str
    _producer: EventProducer[Any] | None
    done: bool = False
    partition: int | None = None
    offset: int | None = None
    _client_error: Any = None
    _report_reference: ReferenceType[_DeliveryReport] | None = None

    @property
    def event(self) -> Event:
        """The sent event."""
        event: Event = self._sent
        return event

    @property
    def aborted(self) -> bool:
        """Whether ``abort_transaction`` or ``purge`` of the client removed it, so that no broker has it."""
        return is_purged(self._client_error)

    @property
    def error(self) -> DeliveryError | None:
        """A new `DeliveryError` if the delivery has failed or was aborted, else None."""
        return None if self._client_error is None else self._failure()

    def _failure(self) -> DeliveryError:
        aborted = "aborted with its transaction, or purged: " if self.aborted else ""
        return DeliveryError(f"{self._name()} to {self.topic}: {aborted}{self._client_error}", [self])

    def _name(self) -> str:
        return f"event {self._sent.id!r} of {self._sent.source!r}"

    def result(self, timeout: float | None = None) -> Self:
        """Wait up to ``timeout`` seconds for the report; return the delivery or raise `DeliveryError`."""
        if self._producer is not None:  # None only if the producer was freed before the report
            self._producer._wait(self, timeout)
            self._producer._failed.pop(self, None)  # flush does not raise it again
        if self._client_error is not None:
            raise self._failure()  # without a variable, which would be a cycle with the traceback
        return self

    def _look_for_report(self) -> None:
        """Note a success that the client does not report: it has freed the report, and not called it."""
        reference = self._report_reference
        if reference is not None and reference() is None and not self.done:
            self._report(None, None)

    def _report(self, error: Any, message: Any) -> None:
        self.done = True
        self._client_error = error
        if error is None and message is not None:
            self.partition = message.partition()
            self.offset = message.offset()

    def __repr__(self) -> str:
        state = f"{self.topic}[{self.partition}]@{self.offset}" if self.done else "pending"
        if self._client_error is not None:
            state = "aborted" if self.aborted else "failed"
        return f"{type(self).__name__}({self._name()}: {state})"


class RecordDelivery(Delivery):
    """The delivery of one record, which `EventProducer.send_record` has sent.

    Examples:
        >>> from cloudevents_kafka import EventProducer, Record
        >>> EventProducer(producer).send_record(Record(value=b"17"), "orders").result().record.value
        b'17'
    """

    @property
    def record(self) -> Record:
        """The sent record."""
        record: Record = self._sent
        return record

    @property
    def event(self) -> Event:
        """The event of the record. Raises `DecodeError` if it has none."""
        return from_record(self.record)

    def _name(self) -> str:
        return f"record {self._sent.where}".rstrip()


def _set_options(partition: int | None, timestamp: int | None) -> dict[str, int]:
    """Return the options of the client that are set: it does not accept None for those that are not."""
    options = (("partition", partition), ("timestamp", timestamp))
    return {name: value for name, value in options if value is not None}


OnDelivery = Callable[[Delivery], None]
"""Called with each delivery, successful or failed, by `send`, `flush` or the client's ``poll``."""


class _DeliveryReport(msgspec.Struct, eq=False, weakref=True):
    """The callback for the client, which updates the delivery and the producer if they still exist.

    The garbage collector does not see a client's references: the report must not refer to the producer.
    """

    sent: Any
    topic: str
    producer: ReferenceType[EventProducer[Any]]
    delivery: ReferenceType[Delivery]
    on_delivery: OnDelivery | None
    kind: type[Delivery] = Delivery
    done: bool = False

    def __call__(self, error: Any, message: Any) -> None:
        """Handle a delivery report; the client calls it in poll, flush or produce."""
        self.done = True
        if error is None and self.on_delivery is None and self.delivery() is None:
            return  # nobody can ask for it
        producer = self.producer()
        delivery = self.find_delivery(producer)
        if self.on_delivery is None and error is not None and producer is not None and not is_purged(error):
            producer._failed[delivery] = None  # before another thread sees that it is done, and removes it
        delivery._report(error, message)
        if self.on_delivery is not None:
            on_delivery, self.on_delivery = self.on_delivery, None
            on_delivery(delivery)

    def find_delivery(self, producer: EventProducer[Any] | None) -> Delivery:
        """Return the delivery, or a new one if the user has not kept it."""
        delivery = self.delivery()
        if delivery is None:
            kind = producer._delivery if producer is not None and self.kind is Delivery else self.kind
            delivery = kind(self.sent, self.topic, producer)
            delivery._report_reference = ref(self)
            self.delivery = ref(delivery)
        return delivery


class EventProducer(Generic[ProducerT]):
    """A sender of CloudEvents through ``producer``, which remains an attribute.

    ``mode``, ``format`` and ``key_mapper`` are the defaults of `send`: see `to_record`. Begin and
    end transactions on the wrapped producer; the deliveries of aborted events are ``aborted`` and
    have an ``error``, and `flush` does not raise it.

    ``close_timeout`` is the longest time, in seconds, that `close` and leaving the block wait for
    deliveries; by default they wait until the client reports each, after its ``message.timeout.ms``
    (five minutes) at the latest. Set it below the time that a container has to end.

    Failed events without an ``on_delivery`` are kept until `flush` or ``result`` raises an error for
    them: a service that calls neither should pass ``on_delivery``.

    Raises `TypeError` if ``producer`` is not one: settings, a class, an asyncio client.

    Examples:
        >>> from confluent_kafka import Producer
        >>> from cloudevents_kafka import Event, EventProducer
        >>> with EventProducer(Producer({"bootstrap.servers": "localhost:9092"}), topic="orders") as events:
        ...     delivery = events.send(Event(id="1", source="/shop", type="order.placed"), key="customer-4")
    """

    _delivery: ClassVar[type[Delivery]] = Delivery  # of `send`
    _record_delivery: ClassVar[type[RecordDelivery]] = RecordDelivery

    def __init__(
        self,
        producer: ProducerT,
        *,
        topic: str | None = None,
        mode: ContentMode = "binary",
        format: str | None = None,
        key_mapper: KeyMapper | None = None,
        close_timeout: float | None = None,
    ) -> None:
        check_client(producer, Producer)
        check_mode(mode, format)
        if close_timeout is not None and not close_timeout >= 0:
            raise ValueError(f"close_timeout must be seconds from 0, or None, got {close_timeout!r}")
        self.producer = producer
        self._topic = topic
        self._mode: ContentMode = mode
        self._format = format
        self._key_mapper = key_mapper
        self._close_timeout = close_timeout
        self._failed: dict[Delivery, None] = {}  # an ordered set, never replaced: threads add to it
        # The reports that the client still has to call, in order, with their deliveries. It frees each one
        # after the call, or without it (``delivery.report.only.error``), which removes its reference here.
        self._reports: dict[ReferenceType[_DeliveryReport], ReferenceType[Delivery]] = {}
        self._forget: Callable[[ReferenceType[_DeliveryReport]], object] = self._reports.pop
        self._closed = False
        self._reference = ref(self)

    def send(
        self,
        event: Any,
        topic: str | None = None,
        *,
        key: bytes | str | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: HeaderInput = None,
        mode: ContentMode | None = None,
        format: str | None = None,
        key_mapper: KeyMapper | None = None,
        like: RecordInput | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Queue an event, or an SDK's event, and return its `Delivery` without waiting for it.

        Arguments are those of `to_record`; ``timestamp`` is in milliseconds since the epoch, by
        default the client's time. Waits while the client's queue is full. Raises `EncodeError` or
        `InvalidEvent` if the event cannot be written, and what the client raises, such as
        ``KafkaException`` for a fenced transactional producer.
        """
        if self._closed:
            raise DeliveryError("the EventProducer is closed; the event was not sent")
        topic = topic or self._topic
        if topic is None:
            raise EncodeError("topic must be set, in send() or EventProducer()")
        if mode is None and like is None:
            mode = self._mode
            format = self._format if format is None and mode == "structured" else format
        key_mapper = key_mapper or self._key_mapper
        event, key, value, headers = encode(event, mode, format, key, key_mapper, headers, like)
        delivery = self._delivery(event, topic, self)
        report = _DeliveryReport(event, topic, self._reference, ref(delivery), on_delivery)
        # Without ** for the options that are not set: an empty one takes a tenth of the time of send().
        produce: Callable[..., Any] = self.producer.produce
        if partition is not None or timestamp is not None:
            produce = partial(produce, **_set_options(partition, timestamp))
        try:
            produce(topic, value=value, key=key, headers=headers, on_delivery=report)
        except BufferError:
            self._produce(partial(produce, topic, value=value, key=key, headers=headers, on_delivery=report))
        delivery._report_reference = reference = ref(report, self._forget)
        self._reports[reference] = report.delivery
        self.producer.poll(0)
        return delivery

    def send_record(
        self,
        record: RecordInput,
        topic: str | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> RecordDelivery:
        """Queue any record, an event or not, with its key, value and headers, and return its delivery.

        The record may be a client's: see `Record.of`. ``topic`` is by default that of the
        `EventProducer`, then that of the record. As in `send`, ``partition`` and ``timestamp`` are
        those of the record only if they are passed, and a full queue is waited for. Raises
        `EncodeError` if there is no topic, and what the client raises.
        """
        if self._closed:
            raise DeliveryError("the EventProducer is closed; the record was not sent")
        record = with_bytes_headers(Record.of(record))
        topic = topic or self._topic or record.topic
        if topic is None:
            raise EncodeError("topic must be set, in send_record(), EventProducer() or the record")
        delivery = self._record_delivery(record, topic, self)
        kind = self._record_delivery
        report = _DeliveryReport(record, topic, self._reference, ref(delivery), on_delivery, kind)
        headers = list(record.headers)  # a new one, as instrumentation adds to it
        produce = partial(self.producer.produce, topic, value=record.value, key=record.key, headers=headers)
        self._produce(partial(produce, on_delivery=report, **_set_options(partition, timestamp)))
        delivery._report_reference = reference = ref(report, self._forget)
        self._reports[reference] = report.delivery
        self.producer.poll(0)
        return delivery

    def _produce(self, produce: Callable[[], Any]) -> None:
        while True:
            try:
                produce()
            except BufferError:
                self.producer.poll(_POLL_SECONDS)  # the queue is full: serve delivery reports
            else:
                return

    def flush(self, timeout: float | None = None) -> None:
        """Wait up to ``timeout`` seconds until everything that was sent is delivered or has failed.

        Raises `DeliveryError` if deliveries are still pending, or if some without an ``on_delivery``
        have failed since the last flush. Its ``failed`` has both; the pending ones are not ``done``,
        and may still arrive. If several threads flush, each failure is raised in one of them.
        """
        pending = self._drain(timeout)
        failed = [each for each in list(self._failed) if self._failed.pop(each, False) is None]
        if pending:
            failed += self._pending()
            messages = pluralize(pending, "message is", "messages are")
            raise DeliveryError(f"{messages} still pending after {timeout} s; flush again", failed)
        if failed:
            events = pluralize(len(failed), "event was", "events were")
            raise DeliveryError(f"{events} not delivered; the first: {failed[0].error}", failed)

    def close(self, timeout: float | None = None) -> None:
        """Flush, for ``close_timeout`` by default, and raise as `flush` does; later calls of `send` fail.

        The wrapped producer stays open, and may deliver what is still pending: purge it to prevent that.
        """
        self._closed = True
        self.flush(self._close_timeout if timeout is None else timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close; sent events are delivered also if the block has raised an error."""
        try:
            self.close()
        except DeliveryError as undelivered:
            if error is None:
                raise
            error.add_note(f"also: {undelivered}")  # the error of the block takes precedence

    def _pending(self) -> list[Delivery]:
        """Return the deliveries whose reports have not arrived, in the order of sending."""
        reports = [report for reference in list(self._reports) if (report := reference()) is not None]
        return [report.find_delivery(self) for report in reports if not report.done]

    def _drain(self, timeout: float | None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = _POLL_SECONDS if deadline is None else deadline - time.monotonic()
            pending = self.producer.flush(min(_POLL_SECONDS, max(wait, 0)))
            if not pending or (deadline is not None and time.monotonic() >= deadline):
                return pending

    def _wait(self, delivery: Delivery, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        delivery._look_for_report()
        while not delivery.done:
            wait = _POLL_SECONDS if deadline is None else min(_POLL_SECONDS, deadline - time.monotonic())
            if wait < 0:
                reason = f"no delivery report for {delivery._name()} after {timeout} s"
                raise DeliveryError(reason, [delivery])
            self.producer.poll(wait)
            delivery._look_for_report()


class DeliveryError(CloudEventsKafkaError):
    """Events or records were not delivered, or not within the time to wait; ``failed`` are their deliveries.

    A delivery in ``failed`` that is not ``done`` was still on its way.

    Examples:
        >>> from cloudevents_kafka import DeliveryError, Event, EventProducer
        >>> producer.fail_next("_MSG_TIMED_OUT")
        >>> try:
        ...     EventProducer(producer).send(Event(id="1", source="/", type="t"), "orders").result()
        ... except DeliveryError as error:
        ...     print(error.failed)
        (Delivery(event '1' of '/': failed),)
    """

    def __init__(self, reason: str, failed: Sequence[Delivery] = ()) -> None:
        super().__init__(reason)
        self.failed = tuple(failed)
