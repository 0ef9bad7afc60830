"""`Deliveries`: the deliveries of a producer that are on their way or have failed, and who waits for them.

It does no input or output: a shell passes the function of the client that queues a message. The client
calls the reports, and the shell waits: by polling in threads, in `producer`, or on an event loop, in `aio`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar
from weakref import ReferenceType, ref

import msgspec

from cloudevents_kafka.binding import from_record
from cloudevents_kafka.clients._protocols import PURGED, TOO_LARGE, Message, code_of, size_limits
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Headers, Record

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from cloudevents_kafka.clients.observing.calls import Observers

    SentT_co = TypeVarWithDefault("SentT_co", bound=Event[Any] | Record, covariant=True, default=Event[Any])
else:
    SentT_co = TypeVar("SentT_co", covariant=True)

DeliveryT = TypeVar("DeliveryT", bound="Delivery[Any]")
Produce = Callable[..., Any]
"""Queue a message: topic, value, key, headers, on_delivery; raise BufferError if the client is full."""
Outgoing = tuple[str, tuple[Event[Any] | Record, bytes | None, bytes | None, Headers]]
"""A topic, and what is sent there, with its key, value and headers."""


class Shell(Protocol):
    """The part of a producer that waits, in threads or on an event loop: for deliveries, and for room."""

    deliveries: Deliveries[Any]

    def wait(self, delivery: Delivery[Any], timeout: float | None, /) -> None:
        """Return when a delivery is done; raise an error if it is not within ``timeout`` seconds."""

    def make_room(self, error: BufferError, /) -> None:
        """Return when a client that was full may have room; raise an error if that is not waited for."""


class Delivery(msgspec.Struct, Generic[SentT_co], eq=False, weakref=True):
    """The delivery of one event, or of one record that `EventProducer.send_record` has sent.

    ``done`` is whether the delivery report has arrived; then ``partition`` and ``offset`` are set if
    it succeeded. A client with ``delivery.report.only.error`` reports only failures: a delivery is ``done``
    once `result` has found that no failure was reported, and has no ``partition`` and ``offset`` then. It
    keeps neither an exception nor a callback, whose references would delay freeing the event.

    Examples:
        >>> from cloudevents_kafka import Event, EventProducer, Record
        >>> event = Event(id="1", source="/shop", type="order.placed")
        >>> EventProducer(producer, topic="orders").send(event).result()
        Delivery(event '1' of '/shop': orders[0]@0)
        >>> EventProducer(producer).send_record(Record(value=b"17"), "orders").result().record.value
        b'17'
    """

    _sent: Any
    topic: str
    _shell: Shell | None
    done: bool = False
    partition: int | None = None
    offset: int | None = None
    _client_error: Any = None
    _report_reference: ReferenceType[Report] | None = None
    _waiters: tuple[Any, ...] = ()  # futures, or objects with their methods

    @property
    def event(self) -> Event:
        """The sent event, or that of the sent record. Raises `DecodeError` if the record has none."""
        sent: Event | Record = self._sent
        return from_record(sent) if isinstance(sent, Record) else sent

    @property
    def record(self: Delivery[Record]) -> Record:
        """The sent record; an event that was sent has none."""
        if not isinstance(self._sent, Record):
            problem = f"record must be that of a sent record, got {self!r}; use event"
            raise AttributeError(problem, name="record")  # noqa: TRY004  # hasattr() is false
        return self._sent

    @property
    def aborted(self) -> bool:
        """Whether ``abort_transaction`` or ``purge`` of the client removed it, so that no broker has it."""
        return code_of(self._client_error) in PURGED

    @property
    def error(self) -> DeliveryError | None:
        """A new `DeliveryError` if the delivery has failed or was aborted, else None."""
        return None if self._client_error is None else self._failure()

    def _failure(self) -> DeliveryError:
        aborted = "aborted with its transaction, or purged: " if self.aborted else ""
        return DeliveryError(f"{self._name()} to {self.topic}: {aborted}{self._client_error}", [self])

    def _name(self) -> str:
        sent: Event | Record = self._sent
        if isinstance(sent, Record):
            return f"record {sent.where}".rstrip()
        return f"event {sent.id!r} of {sent.source!r}"

    def result(self, timeout: float | None = None) -> Self:
        """Wait up to ``timeout`` seconds for the report; return the delivery or raise `DeliveryError`."""
        if self._shell is not None:  # None only if the producer was freed before the report
            self._shell.wait(self, timeout)
            self._shell.deliveries.failed.pop(self, None)  # flush does not raise it again
        if self._client_error is not None:
            raise self._failure()  # without a variable, which would be a cycle with the traceback
        return self

    def __repr__(self) -> str:
        state = f"{self.topic}[{self.partition}]@{self.offset}" if self.done else "pending"
        if self._client_error is not None:
            state = "aborted" if self.aborted else "failed"
        return f"{type(self).__name__}({self._name()}: {state})"

    def _look_for_report(self) -> None:
        """Mark the delivery as done if the client has freed the report without a call: it succeeded."""
        reference = self._report_reference
        if reference is not None and reference() is None and not self.done:
            self._report(None, None)

    def _report(self, error: object, message: Message | None) -> None:
        self.done = True
        self._client_error = error
        if error is None and message is not None:
            self.partition = message.partition()
            self.offset = message.offset()
        if self._waiters and self._shell is not None:
            if self._shell.deliveries.wakes_at_once:
                self._wake()
            else:
                self._shell.deliveries.awaited.append(self)

    def _is_awaited(self) -> bool:
        return any(not waiter.done() for waiter in self._waiters)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, ()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


OnDelivery = Callable[[Delivery[Any]], None]
"""Called with each delivery, successful or failed, by `send`, `flush` or the client's ``poll``."""


class Report(msgspec.Struct, eq=False, weakref=True):
    """The callback for the client, which updates the delivery and its shell if they still exist.

    The garbage collector does not see a client's references: the report must not refer to the shell.
    """

    sent: Any
    topic: str
    shell: ReferenceType[Shell]
    delivery: ReferenceType[Delivery[Any]]
    on_delivery: OnDelivery | None
    done: bool = False

    def __call__(self, error: object, message: Message | None) -> None:
        """Handle a delivery report; the client calls it in poll, flush or produce."""
        self.done = True
        if error is None and self.on_delivery is None and self.delivery() is None:
            return  # nobody can ask for it
        shell = self.shell()
        delivery = self.find_delivery(shell)
        if (
            self.on_delivery is None
            and error is not None
            and shell is not None
            and code_of(error) not in PURGED
        ):
            # Before another thread sees that it is done, and removes it.
            shell.deliveries.failed[delivery] = None
        delivery._report(error, message)
        if self.on_delivery is not None:
            on_delivery, self.on_delivery = self.on_delivery, None
            on_delivery(delivery)

    def find_delivery(self, shell: Shell | None) -> Delivery[Any]:
        """Return the delivery, or a new one if the user has not kept it."""
        delivery = self.delivery()
        if delivery is None:
            kind: type[Delivery[Any]] = Delivery if shell is None else shell.deliveries.kind
            delivery = kind(self.sent, self.topic, shell)
            delivery._report_reference = ref(self)
            self.delivery = ref(delivery)
        return delivery


class Deliveries(Generic[DeliveryT]):
    """The deliveries that are on their way, that have failed, and that are done and still awaited.

    ``kind`` is the class of the deliveries, and ``shell`` what waits for them.
    """

    def __init__(self, kind: type[DeliveryT], shell: Shell, *, looks_for_reports: bool = False) -> None:
        # The reports that the client still has to call, in order, with their deliveries. It frees each one
        # after the call, or without it (``delivery.report.only.error``), which removes its reference here.
        self.reports: dict[ReferenceType[Report], ReferenceType[Delivery[Any]]] = {}
        self.failed: dict[Delivery[Any], None] = {}  # an ordered set, never replaced: threads add to it
        self.awaited: deque[Delivery[Any]] = deque()  # done; added by the thread of the reports
        self.kind = kind
        self.count: Callable[[OnDelivery | None], OnDelivery | None] | None = None
        """Return the callback for a message that is being sent; set if handlers send by this producer."""
        self.observers: Observers | None = None
        self.closed = False  # nothing more is sent
        self.wakes_at_once = False  # by the thread of the report
        self._shell = ref(shell)
        # Without a reference to this object, which would be a cycle.
        self._forget: Callable[[ReferenceType[Report]], object] = (
            partial(_forget, self.reports) if looks_for_reports else self.reports.pop
        )

    def send(
        self, shell: Shell, produce: Produce, outgoing: Outgoing, on_delivery: OnDelivery | None = None
    ) -> DeliveryT:
        """Queue a message by a client's ``produce``, and return its delivery; wait while the client is full.

        If ``produce`` or the shell raises an error, or it is closed, the message is not on its way.
        """
        topic, (sent, key, value, headers) = outgoing
        if self.closed:
            what = "record" if isinstance(sent, Record) else "event"
            raise DeliveryError(f"the EventProducer is closed; the {what} was not sent")
        if self.count is not None:
            on_delivery = self.count(on_delivery)
        delivery = self.kind(sent, topic, shell)
        of_delivery: ReferenceType[Delivery[Any]] = ref(delivery)
        report = Report(sent, topic, self._shell, of_delivery, on_delivery)
        delivery._report_reference = reference = ref(report, self._forget)
        self.reports[reference] = of_delivery
        called: Any = report
        if self.observers is not None and self.observers.see("sending", "delivered", "failed"):
            record = Record(topic=topic, key=key, value=value, headers=headers)
            called = self.observers.send(sent, record, report)
            headers = called.headers
        try:
            while True:
                try:
                    produce(topic, value=value, key=key, headers=headers, on_delivery=called)
                except BufferError as error:
                    shell.make_room(error)
                else:
                    return delivery
        except BaseException as error:
            self.reports.pop(reference, None)
            delivery._report_reference = None
            del reference  # before the report is freed, which is of no interest now
            reason = error.args[0] if error.args else None
            if called is not report:
                called.report(error if code_of(reason) is None else reason)
            if code_of(reason) != TOO_LARGE:
                raise
            delivery.done, delivery._client_error = True, reason
            size = Record(key=key, value=value, headers=headers).wire_size()
            raise DeliveryError(f"{delivery._name()} to {topic}: {size_limits(size)}", [delivery]) from error

    def wake(self, most: int) -> None:
        """Wake the waiters of up to ``most`` deliveries that are done."""
        for _ in range(min(len(self.awaited), most)):
            self.awaited.popleft()._wake()

    def is_awaited(self) -> bool:
        """Return whether somebody waits for a delivery that is on its way."""
        deliveries = [reference() for reference in list(self.reports.values())]
        return any(delivery is not None and delivery._is_awaited() for delivery in deliveries)

    def raise_failures(self, pending: int, timeout: float | None) -> None:
        """Raise `DeliveryError` if messages are pending, or have failed since the last call."""
        failed = [each for each in list(self.failed) if self.failed.pop(each, False) is None]
        if pending:
            failed += self._pending()
            messages = pluralize(pending, "message is", "messages are")
            raise DeliveryError(f"{messages} still pending after {timeout} s; flush again", failed)
        if failed:
            events = pluralize(len(failed), "event was", "events were")
            raise DeliveryError(f"{events} not delivered; the first: {failed[0].error}", failed)

    def _pending(self) -> list[Delivery[Any]]:
        """Return the deliveries whose reports have not arrived, in the order of sending."""
        reports = [report for reference in list(self.reports) if (report := reference()) is not None]
        return [report.find_delivery(report.shell()) for report in reports if not report.done]


def when_freed(delivery: Delivery[Any]) -> object:
    """Return what to keep so that a delivery is done when the client frees its report without a call."""
    reference = delivery._report_reference
    report = None if reference is None else reference()
    delivery._look_for_report()
    return None if report is None else ref(report, lambda _: delivery._look_for_report())


def _forget(
    reports: dict[ReferenceType[Report], ReferenceType[Delivery[Any]]], reference: ReferenceType[Report]
) -> None:
    """Forget a report that the client has freed, and note a success that it does not report."""
    delivery = reports.pop(reference)()
    if delivery is not None and not delivery.done:
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

    def __init__(self, reason: str, failed: Sequence[Delivery[Any]] = ()) -> None:
        super().__init__(reason)
        self.failed = tuple(failed)
