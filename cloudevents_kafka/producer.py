"""EventProducer: sends events through a user's Kafka producer.

If the queue of the client is full, it serves delivery reports until there is room, instead of
raising ``BufferError``. Each sent event has a `Delivery`. `flush` and `close` raise an error for
failed events that were not passed to a callback.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar
from weakref import ReferenceType, ref

import msgspec

from cloudevents_kafka._clients import LibrdkafkaErrorCode, Producer, check_client
from cloudevents_kafka.binding import ContentMode, KeyMapper, check_mode, encode
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import HeaderInput, RecordInput

_POLL_SECONDS: Final = 0.2  # the longest wait within the client, which delays Ctrl-C
# abort_transaction() or purge() has removed the message, which its caller expects.
_PURGED: Final = frozenset({LibrdkafkaErrorCode.PURGE_INFLIGHT, LibrdkafkaErrorCode.PURGE_QUEUE})


ProducerT = TypeVar("ProducerT", bound=Producer)


class Delivery(msgspec.Struct, eq=False, weakref=True):
    """The delivery of one event.

    ``done`` is whether the delivery report has arrived; then ``partition`` and ``offset`` are set if
    it succeeded. It keeps neither an exception nor a callback, whose references would delay freeing
    the event.
    """

    event: Event
    topic: str
    _producer: EventProducer[Any] | None
    done: bool = False
    partition: int | None = None
    offset: int | None = None
    _client_error: Any = None

    @property
    def error(self) -> DeliveryError | None:
        """A new `DeliveryError` if the delivery has failed, else None."""
        return None if self._client_error is None else self._failure()

    def _failure(self) -> DeliveryError:
        event = f"event {self.event.id!r} of {self.event.source!r} to {self.topic}"
        return DeliveryError(f"{event}: {self._client_error}", [self])

    def result(self, timeout: float | None = None) -> Delivery:
        """Wait up to ``timeout`` seconds for the report; return the delivery or raise `DeliveryError`."""
        if self._producer is not None:  # None only if the producer was freed before the report
            self._producer._wait(self, timeout)
            self._producer._failed.pop(self, None)  # flush does not raise it again
        if self._client_error is not None:
            raise self._failure()  # without a variable, which would be a cycle with the traceback
        return self

    def _report(self, error: Any, message: Any) -> None:
        self.done = True
        self._client_error = error
        if error is None and message is not None:
            self.partition = message.partition()
            self.offset = message.offset()

    def __repr__(self) -> str:
        state = f"{self.topic}[{self.partition}]@{self.offset}" if self.done else "pending"
        if self._client_error is not None:
            state = "failed"
        return f"Delivery({self.event.id!r} of {self.event.source!r}: {state})"


def _is_purged(error: Any) -> bool:
    """Return whether an error of any client has the code of a purged message."""
    code = getattr(error, "code", None)
    return callable(code) and code() in _PURGED


OnDelivery = Callable[[Delivery], None]
"""Called with each delivery, successful or failed, by `send`, `flush` or the client's ``poll``."""


class _DeliveryReport(msgspec.Struct, eq=False):
    """The callback for the client, which updates the delivery and the producer if they still exist.

    The references of a client are invisible to the garbage collector, so the callback must not refer
    to the producer, which refers to the client.
    """

    event: Event
    topic: str
    producer: ReferenceType[EventProducer[Any]]
    delivery: ReferenceType[Delivery]
    on_delivery: OnDelivery | None

    def __call__(self, error: Any, message: Any) -> None:
        """Handle a delivery report; the client calls it in poll, flush or produce."""
        delivery = self.delivery()
        if delivery is None and error is None and self.on_delivery is None:
            return  # nobody can ask for it
        producer = self.producer()
        delivery = delivery or Delivery(self.event, self.topic, producer)
        delivery._report(error, message)
        if self.on_delivery is not None:
            on_delivery, self.on_delivery = self.on_delivery, None
            on_delivery(delivery)
        elif error is not None and producer is not None and not _is_purged(error):
            producer._failed[delivery] = None


class EventProducer(Generic[ProducerT]):
    """A sender of CloudEvents through ``producer``, which remains an attribute.

    ``mode``, ``format`` and ``key_mapper`` are the defaults of `send`: see `to_record`. Begin and
    end transactions on the wrapped producer; the deliveries of aborted events have an ``error``,
    and `flush` does not raise it.

    Failed events without an ``on_delivery`` are kept until `flush` or ``result`` raises an error for
    them: a service that calls neither should pass ``on_delivery``.

    Raises `TypeError` if ``producer`` is not one: settings, a class, an asyncio client.
    """

    def __init__(
        self,
        producer: ProducerT,
        *,
        topic: str | None = None,
        mode: ContentMode = "binary",
        format: str | None = None,
        key_mapper: KeyMapper | None = None,
    ) -> None:
        check_client(producer, Producer)
        check_mode(mode, format)
        self.producer = producer
        self._topic = topic
        self._mode: ContentMode = mode
        self._format = format
        self._key_mapper = key_mapper
        self._failed: dict[Delivery, None] = {}  # an ordered set
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
        event, key, value, headers = encode(
            event, mode, format, key, key_mapper or self._key_mapper, headers, like
        )
        delivery = Delivery(event, topic, self)
        report = _DeliveryReport(event, topic, self._reference, ref(delivery), on_delivery)
        # Without ** for the options that are not set: an empty one takes a tenth of the time of send().
        produce: Callable[..., Any] = self.producer.produce
        if partition is not None or timestamp is not None:
            options = (("partition", partition), ("timestamp", timestamp))
            produce = partial(produce, **{name: value for name, value in options if value is not None})
        while True:
            try:
                produce(topic, value=value, key=key, headers=headers, on_delivery=report)
            except BufferError:
                self.producer.poll(_POLL_SECONDS)  # the queue is full: serve delivery reports
            else:
                self.producer.poll(0)
                return delivery

    def flush(self, timeout: float | None = None) -> None:
        """Wait up to ``timeout`` seconds until every sent event is delivered or has failed.

        Raises `DeliveryError` if events are still pending, or if events without an ``on_delivery``
        have failed since the last flush.
        """
        pending = self._drain(timeout)
        failed, self._failed = list(self._failed), {}
        if pending:
            messages = pluralize(pending, "message is", "messages are")
            raise DeliveryError(f"{messages} still pending after {timeout} s; flush again", failed)
        if failed:
            events = pluralize(len(failed), "event was", "events were")
            raise DeliveryError(f"{events} not delivered; the first: {failed[0].error}", failed)

    def close(self, timeout: float | None = None) -> None:
        """Flush, and raise as `flush` does; later calls of `send` fail. The wrapped producer stays open."""
        self._closed = True
        self.flush(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; sent events are delivered also if the block has raised an error."""
        try:
            self.close()
        except DeliveryError as undelivered:
            if error is None:
                raise
            error.add_note(f"also: {undelivered}")  # the error of the block takes precedence

    def _drain(self, timeout: float | None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = _POLL_SECONDS if deadline is None else deadline - time.monotonic()
            pending = self.producer.flush(min(_POLL_SECONDS, max(wait, 0)))
            if not pending or (deadline is not None and time.monotonic() >= deadline):
                return pending

    def _wait(self, delivery: Delivery, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not delivery.done:
            wait = _POLL_SECONDS if deadline is None else min(_POLL_SECONDS, deadline - time.monotonic())
            if wait < 0:
                raise DeliveryError(
                    f"no delivery report for event {delivery.event.id!r} after {timeout} s", [delivery]
                )
            self.producer.poll(wait)


class DeliveryError(CloudEventsKafkaError):
    """Events were not delivered, or their reports have not arrived; ``failed`` are their deliveries."""

    def __init__(self, reason: str, failed: Sequence[Delivery] = ()) -> None:
        super().__init__(reason)
        self.failed = tuple(failed)
