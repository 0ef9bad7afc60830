"""EventProducer: sends events through the Kafka producer that a user already has.

It builds no client and changes none. Where the client's queue is full it waits, and
serves delivery reports meanwhile, instead of raising ``BufferError``. Every event
sent gives a `Delivery` that knows its event; what fails and was not reported to a
callback of the user's, `flush` and `close` raise.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar, get_args

import msgspec

from cloudevents_kafka.convert import ContentMode, check_names, no_mode, to_record
from cloudevents_kafka.errors import DeliveryError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.keys import KeyMapper
from cloudevents_kafka.record import HeaderInput, Record

_TURN: Final = 0.2  # seconds between looks at signals, so that Ctrl-C is never late


class Producer(Protocol):
    """What `EventProducer` needs of a client: the shape of ``confluent_kafka.Producer``."""

    @property
    def produce(self) -> Callable[..., Any]:
        """Queue a message: topic, value, key, headers, on_delivery; BufferError where the queue is full."""

    def poll(self, timeout: float = ...) -> int:
        """Serve delivery reports, waiting for at most ``timeout`` seconds."""

    def flush(self, timeout: float = ...) -> int:
        """Wait for what is queued; gives how many are left after ``timeout`` seconds."""


ProducerT = TypeVar("ProducerT", bound=Producer)


class Delivery(msgspec.Struct, gc=False, eq=False):
    """One event on its way, and what became of it.

    ``event`` is what was sent; ``partition`` and ``offset`` are known once it is
    ``done``; ``error`` is None unless it failed.

    Many are on their way at once, so they are light, and hidden from the garbage
    collector, which would walk them all again and again. They are the very callback
    that the client is given.
    """

    event: Event
    topic: str
    _producer: EventProducer[Any]
    _notify: OnDelivery | None
    done: bool = False
    partition: int | None = None
    offset: int | None = None
    error: DeliveryError | None = None

    def result(self, timeout: float | None = None) -> Delivery:
        """Wait until the broker has answered, at most ``timeout`` seconds; raises `DeliveryError`."""
        self._producer._wait(self, timeout)
        if self.error is not None:
            self._producer._forget(self)
            raise self.error
        return self

    def __call__(self, error: Any, message: Any) -> None:
        """Take the client's delivery report, from within its poll, flush or produce."""
        self.done = True
        if error is not None:
            what = f"event {self.event.id!r} of {self.event.source!r} to {self.topic}"
            self.error = DeliveryError(f"{what}: {error}", [self])
        elif message is not None:
            self.partition = message.partition()
            self.offset = message.offset()
        if self._notify is not None:
            self._notify(self)
        elif error is not None:
            self._producer._failed[self] = None

    def __repr__(self) -> str:
        if not self.done:
            state = "on its way"
        else:
            state = "failed" if self.error else f"{self.topic}[{self.partition}]@{self.offset}"
        return f"Delivery({self.event.id!r} of {self.event.source!r}: {state})"


OnDelivery = Callable[[Delivery], None]
"""Told of every delivery, good or failed, from within `send`, `flush` or ``poll``."""


class EventProducer(Generic[ProducerT]):
    """Sends CloudEvents through ``producer``, which stays the user's and reachable.

    ``mode``, ``format`` and ``key_mapper`` hold for every event unless a call says
    otherwise: see `to_record`. Transactions are begun and ended on the wrapped
    producer. `TypeError` for an asyncio client: it cannot carry headers.
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
        if inspect.iscoroutinefunction(getattr(producer, "produce", None)):
            raise TypeError(
                f"{type(producer).__name__} is an asyncio client, which takes no headers; use Producer"
            )
        if mode not in get_args(ContentMode):
            raise no_mode(mode)
        if format is not None and mode == "binary":
            raise EncodeError(
                f"binary mode has no event format, but format={format!r} was given; use mode='structured'"
            )
        self.producer = producer
        self._topic = topic
        self._mode: ContentMode = mode
        self._format = format
        self._key_mapper = key_mapper
        self._failed: dict[Delivery, None] = {}  # in their order; one is found at once, however many
        self._closed = False

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
        like: Record | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Send an event, or an SDK's event; gives its `Delivery` at once.

        Arguments are those of `to_record`; ``timestamp`` is in milliseconds since the
        epoch, the client's own if None. Waits where the client's queue is full.
        Raises `EncodeError` or `InvalidEvent` before anything is sent, and what the
        client raises, such as ``KafkaException`` for a fenced transactional producer.
        """
        if self._closed:
            raise DeliveryError("this EventProducer was closed; nothing was sent")
        topic = topic or self._topic
        if topic is None:
            raise EncodeError("no topic: give one to send() or to EventProducer()")
        if type(event) is not Event:
            event = Event.of(event)
        if mode is None and like is None:
            mode = self._mode
            format = self._format if format is None and mode == "structured" else format
        record = to_record(
            event,
            mode=mode,
            format=format,
            key=key,
            key_mapper=key_mapper or self._key_mapper,
            headers=headers,
            topic=topic,
            like=like,
        )
        if like is not None:
            check_names(record.headers)  # of foreign headers, which are kept as they came
        delivery = Delivery(event, topic, self, on_delivery)
        # Bound only where given: to pass on ** of an empty dict took a tenth of all this.
        produce: Callable[..., Any] = self.producer.produce
        if partition is not None or timestamp is not None:
            given = {"partition": partition, "timestamp": timestamp}
            produce = partial(produce, **{name: value for name, value in given.items() if value is not None})
        while True:
            try:
                produce(
                    topic, value=record.value, key=record.key, headers=record.headers, on_delivery=delivery
                )
            except BufferError:
                self.producer.poll(_TURN)  # the queue is full: let the client work
            else:
                self.producer.poll(0)
                return delivery

    def flush(self, timeout: float | None = None) -> None:
        """Wait until every event sent is delivered or has failed, at most ``timeout`` seconds.

        Raises `DeliveryError` for those that failed since the last flush and had no
        ``on_delivery`` of their own, and where some are still on their way.
        """
        left = self._drain(timeout)
        failed, self._failed = list(self._failed), {}
        if left:
            raise DeliveryError(
                f"{left} messages are still on their way after {timeout} s; flush again", failed
            )
        if failed:
            raise DeliveryError(
                f"{len(failed)} events were not delivered; the first: {failed[0].error}", failed
            )

    def close(self, timeout: float | None = None) -> None:
        """Flush, and send no more; the wrapped producer stays open. Raises as `flush` does."""
        self._closed = True
        self.flush(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; what was sent is delivered, even where the block failed."""
        try:
            self.close()
        except DeliveryError as undelivered:
            if error is None:
                raise
            error.add_note(f"besides, {undelivered}")  # the block's own error goes first

    def _drain(self, timeout: float | None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            turn = _TURN if deadline is None else min(_TURN, max(deadline - time.monotonic(), 0))
            left = self.producer.flush(turn)
            if not left or (deadline is not None and time.monotonic() >= deadline):
                return left

    def _wait(self, delivery: Delivery, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not delivery.done:
            turn = _TURN if deadline is None else min(_TURN, deadline - time.monotonic())
            if turn < 0:
                raise DeliveryError(
                    f"no answer for event {delivery.event.id!r} after {timeout} s", [delivery]
                )
            self.producer.poll(turn)

    def _forget(self, delivery: Delivery) -> None:
        """Somebody has seen this failure: flush need not report it again."""
        self._failed.pop(delivery, None)
