"""`Deliveries`: the pending and failed deliveries of a producer, and the callers that wait for deliveries.

This module does no input or output. `Deliveries` queues messages with a function of the Kafka client. A
`Shell` provides this function. The `Shell` also waits for deliveries: in threads (`_polling`), or on an event
loop (`aio`). The Kafka client calls a report function for each delivery.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Protocol, Self, TypeVar
from weakref import ReferenceType, WeakValueDictionary, ref

import msgspec

from cloudevents_kafka.binding import from_record
from cloudevents_kafka.clients._callbacks import Callbacks
from cloudevents_kafka.clients._protocols import (
    PURGED,
    TOO_LARGE,
    PolledMessage,
    code_of,
    find_fatal,
    size_limits,
)
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives import forks
from cloudevents_kafka.primitives.callbacks import check_result
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Headers, Record

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from cloudevents_kafka.clients._sends import Sends
    from cloudevents_kafka.clients.observing.calls import Observers, Sending

    SentT_co = TypeVarWithDefault("SentT_co", bound=Event[Any] | Record, covariant=True, default=Event[Any])
else:
    SentT_co = TypeVar("SentT_co", covariant=True)

_log: Final = logging.getLogger("cloudevents_kafka.deliveries")
DeliveryT = TypeVar("DeliveryT", bound="Delivery[Any]")
Produce = Callable[..., Any]
"""A function that queues a message, or raises BufferError if the client's queue is full.

The arguments of the function are topic, value, key, headers and on_delivery.
"""
Report = Callable[..., None]
"""A function that is called with the number of a message, and with the error and message of its report."""
Outgoing = tuple[str, tuple[Event[Any] | Record, bytes | None, bytes | None, Headers]]
"""The arguments of a message: the topic, the event or record, and the message's key, value and headers."""


class Shell(Protocol):
    """The part of a producer that waits until deliveries are done, or until the client's queue has space."""

    deliveries: Deliveries[Any]

    def wait(self, delivery: Delivery[Any], timeout: float | None, /) -> None:
        """Wait until a delivery is done; raise an error if it is not done after ``timeout`` seconds."""

    def make_room(self, error: BufferError, /) -> None:
        """Wait until the client's full queue may have space; raise an error if waiting is not possible."""


class Delivery(msgspec.Struct, Generic[SentT_co], eq=False, weakref=True):
    """The delivery of one event, or of one record that `EventProducer.send_record` has sent.

    ``done`` says whether the delivery report of the client has arrived. If the event or record was delivered,
    ``partition`` and ``offset`` are set. ``callback_error`` is the error that the function ``on_delivery``
    has raised for this delivery. The error is also logged. A failed delivery does not store an exception,
    because the exception would keep the event in memory for longer.

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
    callback_error: Exception | None = None
    _client_error: Any = None
    _is_called_back: bool = False  # whether it has an on_delivery
    _is_sent: bool = False  # whether the client has accepted the message
    _waiters: tuple[Any, ...] = ()  # futures, or objects with their methods

    @property
    def event(self) -> Event:
        """The sent event, or the event in the sent record.

        Raises `DecodeError` if the sent record contains no event.
        """
        sent: Event | Record = self._sent
        return from_record(sent) if isinstance(sent, Record) else sent

    @property
    def record(self: Delivery[Record]) -> Record:
        """The sent record. Raises `AttributeError` if an event was sent instead of a record."""
        if not isinstance(self._sent, Record):
            problem = f"record must be read from the delivery of a record, got {self!r}; use event"
            raise AttributeError(problem, name="record")  # noqa: TRY004  # hasattr() is false
        return self._sent

    @property
    def aborted(self) -> bool:
        """Whether ``abort_transaction`` or ``purge`` removed the message, so that no broker stores it."""
        return code_of(self._client_error) in PURGED

    @property
    def error(self) -> DeliveryError | None:
        """A new `DeliveryError` if the delivery has failed or was aborted, or None for any other delivery."""
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
        """Wait up to ``timeout`` seconds for the delivery report; return the delivery.

        Raises `DeliveryError` if the delivery has failed or is not done in time.

        If the event was delivered, but ``on_delivery`` has raised an error, this method raises a
        `DeliveryError` whose cause is the error of ``on_delivery``.
        """
        if self._shell is not None:  # None only if the producer was freed before the report
            self._shell.wait(self, timeout)
            self._shell.deliveries.failed.pop(self, None)  # so that flush does not raise the failure again
        if self._client_error is not None:
            raise self._failure()  # not in a variable: with the traceback, it would be a cycle
        if self.callback_error is not None:
            raise DeliveryError(
                f"{self!r} has arrived, and must not be sent again, but its on_delivery has raised "
                f"{self.callback_error!r}; correct the callback",
            ) from self.callback_error
        return self

    def __repr__(self) -> str:
        state = f"{self.topic}[{self.partition}]@{self.offset}" if self.done else "pending"
        if self._client_error is not None:
            state = "aborted" if self.aborted else "failed"
        return f"{type(self).__name__}({self._name()}: {state})"

    def _is_awaited(self) -> bool:
        return any(not waiter.done() for waiter in self._waiters)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, ()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


OnDelivery = Callable[[Delivery[Any]], None]
"""A function that is called with each delivery, successful or failed, after its delivery report."""


_OnItsWay = tuple[Delivery[Any], OnDelivery | None, "Sending | None", "Sends | None"]
"""A delivery that is not reported yet, and the functions that are called with its report."""


class Ended:
    """The fatal error of a client, or None; the client then purges its queue and sends nothing more.

    A client raises this error only once, in a call of one of its producers, so they have one `Ended`.
    """

    def __init__(self) -> None:
        self.error: Any = None

    @classmethod
    def of(cls, client: object) -> Ended:
        """Return the `Ended` that all producers of a client have in common."""
        return _ended.setdefault(id(client), cls())  # a producer refers to its client, so the id stays


_ended: Final[WeakValueDictionary[int, Ended]] = WeakValueDictionary()


class Deliveries(Generic[DeliveryT]):
    """The deliveries that are not reported yet, or have failed, or are done but still have waiters.

    ``kind`` is the class of the delivery objects.
    """

    def __init__(self, kind: type[DeliveryT]) -> None:
        self.pending: dict[int, _OnItsWay] = {}
        """The messages that are not reported yet, in order; a key is the number of a message."""
        self.failed: dict[Delivery[Any], None] = {}  # an ordered set, never replaced, as threads add to it
        self.awaited: deque[Delivery[Any]] = deque()  # done; the thread of the reports adds them
        self.callbacks = Callbacks()
        self.kind = kind
        self.count: Callable[[], Sends | None] | None = None
        """A function that counts each sent message, if handlers of a run send with this producer."""
        self.observers: Observers | None = None
        self.closed = False  # nothing more is sent
        self.ended = Ended()
        self._noting: set[int] = set()  # the numbers of the reports that are just being processed
        self.wakes_at_once = False  # whether the thread of a report wakes the waiters
        self._numbers = count()
        self._forks = forks.number
        # A report must not refer to the shell: the garbage collector does not see a client's references.
        self._report: Report = partial(_report, ref(self))

    def send(
        self, shell: Shell, produce: Produce, outgoing: Outgoing, on_delivery: OnDelivery | None = None
    ) -> DeliveryT:
        """Queue a message with the client's ``produce``, and return its delivery.

        While the queue of the client is full, this method waits.

        If ``produce`` or the `Shell` raises an error, or if the producer is closed, the message is not
        queued.
        """
        topic, (sent, key, value, headers) = outgoing
        if self.closed or self._forks != forks.number:
            self._refuse(sent)
        sending = None
        if self.observers is not None and self.observers.see("sending", "delivered", "failed"):
            record = Record(topic=topic, key=key, value=value, headers=headers)
            sending = self.observers.send(sent, record)
            headers = sending.headers
        sends = None if self.count is None else self.count()
        delivery, number = self.kind(sent, topic, shell), next(self._numbers)
        delivery._is_called_back = on_delivery is not None
        self.pending[number] = delivery, on_delivery, sending, sends
        report = MethodType(self._report, number)  # a partial takes three times as long
        try:
            while True:
                try:
                    produce(topic, value=value, key=key, headers=headers, on_delivery=report)
                except BufferError as error:
                    shell.make_room(error)
                else:
                    delivery._is_sent = True
                    return delivery
        except BaseException as error:
            self.pending.pop(number, None)
            self.note_error(error)
            reason = error.args[0] if error.args else None
            if sends is not None:
                sends.report(None)  # the handler gets the error
            if sending is not None:
                sending.report(error if code_of(reason) is None else reason)
            if code_of(reason) != TOO_LARGE:
                raise
            delivery.done, delivery._client_error = True, reason
            size = Record(key=key, value=value, headers=headers).wire_size()
            raise DeliveryError(f"{delivery._name()} to {topic}: {size_limits(size)}", [delivery]) from error

    def note_error(self, error: BaseException) -> None:
        """Remember a fatal error of the client."""
        fatal = find_fatal(error)
        if fatal is not None:
            first = "" if self.ended.error is None else f": {self.ended.error}"
            self.ended.error = self.ended.error if first else fatal
            error.add_note(f"the client has ended with a fatal error{first}; make a new producer")

    def _refuse(self, sent: Event[Any] | Record) -> NoReturn:
        self.check_process()
        what = "record" if isinstance(sent, Record) else "event"
        raise DeliveryError(f"the EventProducer is closed; the {what} was not sent")

    @property
    def is_of_parent(self) -> bool:
        """Whether this process is a child that was forked after the producer was made."""
        return self._forks != forks.number

    def check_process(self) -> None:
        """Raise `RuntimeError` in a child process that was forked after the producer was made."""
        if self.is_of_parent:
            raise RuntimeError(OTHER_PROCESS)

    def is_busy(self) -> bool:
        """Return whether a sent message waits for its report, or a function must still be called."""
        # The order matters: a report moves from the first of these to the last.
        return bool(self.pending or self._noting) or self.callbacks.is_busy()

    def find_lost(self, client: Any) -> int:
        """Report the messages that a client has dropped without a report as lost; return their number.

        A client drops messages without a report in two cases: it reports only failures, or it was closed
        before all messages were reported.
        """
        if not self.pending or not _why_lost(client):
            return 0
        sent = [number for number, found in list(self.pending.items()) if found[0]._is_sent]
        reason = _why_lost(client)  # again: now the client has none of these messages
        if reason is None:
            return 0
        for number in sent:
            self._report(number, DeliveryLost(reason), None)
        return len(sent)

    def wake(self, most: int) -> None:
        """Wake the waiters of finished deliveries; ``most`` is the largest number of deliveries."""
        for _ in range(min(len(self.awaited), most)):
            self.awaited.popleft()._wake()

    def is_awaited(self) -> bool:
        """Return whether a thread or task waits for a delivery that the client has not reported yet."""
        return any(found[0]._is_awaited() for found in list(self.pending.values()))

    def raise_pending(self, timeout: float | None) -> None:
        """Raise `DeliveryError` if messages of this producer are still pending after ``timeout`` seconds.

        The number of messages in the client is not used, because it includes queued errors and messages of
        other users.
        """
        found = list(self.pending.items())  # before `_noting`, to which a report moves a message
        if pending := len({number for number, _ in found} | self._noting):
            failed = list(dict.fromkeys([*self._take_failed(), *(each[0] for _, each in found)]))
            messages = pluralize(pending, "message is", "messages are")
            advice = _AFTER_CLOSE if self.closed else "flush again"
            raise DeliveryError(f"{messages} still pending after {timeout} s; {advice}", failed)

    def raise_failures(self) -> None:
        """Raise `DeliveryError` if messages have failed since the last call of this method."""
        if failed := self._take_failed():
            events = pluralize(len(failed), "event was", "events were")
            raise DeliveryError(f"{events} not delivered; the first: {failed[0].error}", failed)

    def _take_failed(self) -> list[Delivery[Any]]:
        return [each for each in list(self.failed) if self.failed.pop(each, False) is None]


# A client that the user passed stays open, and aborts no delivery.
_AFTER_CLOSE: Final = "send the events of the aborted deliveries in .failed with another producer"
OTHER_PROCESS: Final = (
    "a producer must be used in the process that has made it, got a child that was forked later: the threads "
    "of the client do not run in the child, so nothing would be sent; make a producer in the child"
)


class DeliveryLost(Exception):
    """The reason for the failure of a delivery that the client will never report."""


def is_closed(client: Any) -> bool:
    """Return whether a Kafka client was closed; for a client without ``__len__``, return False."""
    try:
        len(client)
    except RuntimeError:
        return True
    except TypeError:
        return False
    return False


def _why_lost(client: Any) -> str | None:
    """Return why a client will not report its messages, or None if it may still report them."""
    try:
        left = len(client)
    except RuntimeError:
        return "the client was closed before it has reported the delivery; close the EventProducer first"
    except TypeError:  # a user's class without ``__len__``, or an asyncio client
        return None
    if left:
        return None
    return (
        "the client has sent or dropped the message without a report; "
        "create the Producer without delivery.report.only.error, and without a dr_cb"
    )


def _report(  # noqa: C901  # for each message; more calls would take a twentieth of the time of send()
    reference: ReferenceType[Deliveries[Any]], number: int, error: Any, message: PolledMessage | None
) -> None:
    """Process the report of a message, and queue the functions of the user that the report calls.

    It does nothing else, because it is called within a client call.
    """
    deliveries = reference()
    if deliveries is None:
        return
    deliveries._noting.add(number)
    found = deliveries.pending.pop(number, None)
    if found is not None:
        delivery, on_delivery, sending, sends = found
        if error is not None:
            fatal = deliveries.ended.error
            if fatal is not None and code_of(error) in PURGED:  # by the client, not by the user
                error = fatal
            delivery._client_error = error
            if on_delivery is None and sends is None and code_of(error) not in PURGED:
                deliveries.failed[delivery] = None  # before another thread sees it as done and removes it
        elif message is not None:
            delivery.partition, delivery.offset = message.partition(), message.offset()
        delivery.done = True
        due = deliveries.callbacks.due
        if sending is not None:
            due.append(partial(sending.report, error, (delivery.partition, delivery.offset)))
        if on_delivery is not None:
            due.append(partial(_call, on_delivery, delivery))
        if sends is not None:
            due.append(partial(sends.report, delivery.error))
        if delivery._waiters:
            if deliveries.wakes_at_once:
                delivery._wake()
            else:
                deliveries.awaited.append(delivery)
    deliveries._noting.discard(number)


def _call(on_delivery: Callable[[Delivery[Any]], object], delivery: Delivery[Any]) -> None:
    try:
        check_result("on_delivery", on_delivery(delivery))
    except Exception as error:  # noqa: BLE001  # a function of the user may raise any error
        _log.error("on_delivery of %s has failed: %s", delivery._name(), error, exc_info=error)
        delivery.callback_error = error.with_traceback(None)  # a traceback refers to the delivery


class DeliveryError(CloudEventsKafkaError):
    """Events or records were not delivered, or not in time; ``failed`` lists their deliveries.

    If a delivery in ``failed`` is not ``done``, its report has not arrived yet.

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
