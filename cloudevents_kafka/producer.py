"""EventProducer: sends events through the Kafka producer that a user already has.

It builds no client and changes none. Where the client's queue is full it waits, and
serves delivery reports meanwhile, instead of raising ``BufferError``. Every event
sent gives a `Delivery` that knows its event; what fails and was not reported to a
callback of the user's, `flush` and `close` raise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar
from weakref import ReferenceType, ref

import msgspec

from cloudevents_kafka._clients import LibrdkafkaErrorCode, Producer, check_producer
from cloudevents_kafka.binding import ContentMode, KeyMapper, check_mode, to_record
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import HeaderInput, Record

_TURN: Final = 0.2  # seconds between looks at signals, so that Ctrl-C is never late
# abort_transaction() or purge() took the message back, so its user knows of it.
_PURGED: Final = frozenset({LibrdkafkaErrorCode.PURGE_INFLIGHT, LibrdkafkaErrorCode.PURGE_QUEUE})


ProducerT = TypeVar("ProducerT", bound=Producer)


class Delivery(msgspec.Struct, eq=False, weakref=True):
    """One event on its way, and what became of it.

    ``event`` is what was sent; ``partition`` and ``offset`` are known once it is
    ``done``; ``error`` is None unless it failed.

    No error of it is kept, and no callback, so that an event that was delivered, or has
    failed, is freed as soon as its user forgets it.
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
        """What went wrong, as a new `DeliveryError`; None if nothing did, or is not known yet."""
        return None if self._client_error is None else self._failure()

    def _failure(self) -> DeliveryError:
        what = f"event {self.event.id!r} of {self.event.source!r} to {self.topic}"
        return DeliveryError(f"{what}: {self._client_error}", [self])

    def result(self, timeout: float | None = None) -> Delivery:
        """Wait until the broker has answered, at most ``timeout`` seconds; raises `DeliveryError`."""
        if self._producer is not None:  # only of one that was made for a callback may it have gone
            self._producer._wait(self, timeout)
            self._producer._forget(self)
        if self._client_error is not None:
            raise self._failure()  # in no variable here: with its traceback that would be a cycle
        return self

    def _report(self, error: Any, message: Any) -> None:
        self.done = True
        self._client_error = error
        if error is None and message is not None:
            self.partition = message.partition()
            self.offset = message.offset()

    def __repr__(self) -> str:
        if not self.done:
            state = "on its way"
        else:
            state = (
                "failed"
                if self._client_error is not None
                else f"{self.topic}[{self.partition}]@{self.offset}"
            )
        return f"Delivery({self.event.id!r} of {self.event.source!r}: {state})"


def _was_taken_back(error: Any) -> bool:
    """Return whether an error of a client, of whatever kind, is that of a purge."""
    code = getattr(error, "code", None)
    return callable(code) and code() in _PURGED


OnDelivery = Callable[[Delivery], None]
"""Called with every delivery, good or failed, from within `send`, `flush` or ``poll``."""


class _Report(msgspec.Struct, eq=False):
    """The callback that the client is given: finds the delivery and the producer, if they are still there.

    A client keeps it out of sight of the garbage collector, so it must not keep the producer,
    which keeps the client.
    """

    event: Event
    topic: str
    producer: ReferenceType[EventProducer[Any]]
    delivery: ReferenceType[Delivery]
    on_delivery: OnDelivery | None

    def __call__(self, error: Any, message: Any) -> None:
        """Take the client's delivery report, from within its poll, flush or produce."""
        producer = self.producer()
        delivery = self.delivery() or Delivery(self.event, self.topic, producer)
        delivery._report(error, message)
        notify, self.on_delivery = self.on_delivery, None
        if notify is not None:
            notify(delivery)
        elif error is not None and producer is not None and not _was_taken_back(error):
            producer._failed[delivery] = None


class EventProducer(Generic[ProducerT]):
    """Sends CloudEvents through ``producer``, which stays the user's and reachable.

    ``mode``, ``format`` and ``key_mapper`` hold for every event unless a call says
    otherwise: see `to_record`. Transactions are begun and ended on the wrapped
    producer; what an abort takes back has an ``error``, and is no failure for `flush`.

    Failed events without an ``on_delivery`` are kept until `flush` or ``result`` raises
    them: a service that never asks for either passes ``on_delivery``.

    Raises `TypeError` for what is not such a client: settings, a class, an asyncio client.
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
        check_producer(producer)
        check_mode(mode, format)
        self.producer = producer
        self._topic = topic
        self._mode: ContentMode = mode
        self._format = format
        self._key_mapper = key_mapper
        self._failed: dict[Delivery, None] = {}  # in their order; one is found at once, however many
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
        like: Record | Any | None = None,
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
        delivery = Delivery(event, topic, self)
        report = _Report(event, topic, self._reference, ref(delivery), on_delivery)
        # Bound only where given: to pass on ** of an empty dict took a tenth of all this.
        produce: Callable[..., Any] = self.producer.produce
        if partition is not None or timestamp is not None:
            given = {"partition": partition, "timestamp": timestamp}
            produce = partial(produce, **{name: value for name, value in given.items() if value is not None})
        while True:
            try:
                produce(topic, value=record.value, key=record.key, headers=record.headers, on_delivery=report)
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
            messages = pluralize(left, "message is", "messages are")
            raise DeliveryError(f"{messages} still on the way after {timeout} s; flush again", failed)
        if failed:
            events = pluralize(len(failed), "event was", "events were")
            raise DeliveryError(f"{events} not delivered; the first: {failed[0].error}", failed)

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


class DeliveryError(CloudEventsKafkaError):
    """Events that a broker did not take, or of which nobody knows; ``failed`` are they."""

    def __init__(self, reason: str, failed: Sequence[Delivery] = ()) -> None:
        super().__init__(reason)
        self.failed = tuple(failed)
