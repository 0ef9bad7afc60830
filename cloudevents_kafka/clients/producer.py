"""`EventProducer`: sends events through a Kafka client that is passed, or that is made from settings.

If the client's queue is full, `EventProducer.send` does not raise ``BufferError``. It processes delivery
reports until the queue has space for another message. For each event or record that is sent, a `Delivery`
object is returned. If a delivery fails and no ``on_delivery`` callback was passed, `flush` and `close` raise
an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypedDict, cast

import msgspec

from cloudevents_kafka.binding import (
    ContentMode,
    KeyMapper,
    check_header_names,
    check_key_mapper,
    check_mode,
    encode,
)
from cloudevents_kafka.clients._deliveries import Delivery, DeliveryError, OnDelivery, Outgoing, Produce
from cloudevents_kafka.clients._polling import Polling
from cloudevents_kafka.clients._protocols import Producer, ProducerT, add_observers, check_client
from cloudevents_kafka.clients._sends import count_send
from cloudevents_kafka.clients._settings import closed_on_error, make_client
from cloudevents_kafka.errors import EncodeError
from cloudevents_kafka.event import Event, SdkEvent, check_event
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.record import HeaderInput, Record, RecordInput, with_bytes_headers

if TYPE_CHECKING:
    from cloudevents_kafka.clients.observing import Observer

__all__ = ["Delivery", "DeliveryError", "EventProducer", "OnDelivery"]


class WriteOptions(TypedDict, total=False):
    """The options that `EventProducer.send` and `to_record` have in common."""

    key: bytes | str | None
    headers: HeaderInput
    mode: ContentMode | None
    format: str | None
    key_mapper: KeyMapper | None
    like: RecordInput | None


class Writer(msgspec.Struct):
    """The options of a producer; they are the defaults for the arguments of each call.

    Raises `ValueError` for an unknown mode or format and for a ``close_timeout`` below 0, and `TypeError` for
    a key mapper that is not a function.
    """

    topic: str | None
    mode: ContentMode
    format: str | None
    key_mapper: KeyMapper | None
    close_timeout: float | None

    def __post_init__(self) -> None:
        """Check the values."""
        check_mode(self.mode, self.format)
        check_key_mapper(self.key_mapper)
        if self.close_timeout is not None and not self.close_timeout >= 0:
            raise ValueError(f"close_timeout must be 0 or more seconds, or None, got {self.close_timeout!r}")

    def encode(  # noqa: PLR0917  # by position, as names would take a twentieth of the time of send()
        self,
        event: Any,
        topic: str | None,
        key: bytes | str | None = None,
        headers: HeaderInput = None,
        mode: ContentMode | None = None,
        format: str | None = None,
        key_mapper: KeyMapper | None = None,
        like: RecordInput | None = None,
    ) -> Outgoing:
        """Return the topic, and the event with its key, value and headers.

        Raises `EncodeError`, `InvalidEvent` or `TypeError` if the event cannot be written.
        """
        topic = topic or self.topic
        if topic is None:
            raise EncodeError("topic must be set, in send() or EventProducer()")
        if mode is None and like is None:
            mode = self.mode
            format = self.format if format is None and mode == "structured" else format
        key_mapper = key_mapper or self.key_mapper
        try:
            return topic, encode(event, mode, format, key, key_mapper, headers, like)
        except TypeError:
            check_event(event, "send")
            check_key_mapper(key_mapper)
            raise

    def copy(self, record: RecordInput, topic: str | None) -> Outgoing:
        """Return the topic, and the unchanged record with its key, value and headers.

        Raises `EncodeError` if neither an argument nor the producer has a topic.
        """
        record = with_bytes_headers(Record.of(record))
        topic = topic or self.topic or record.topic
        if topic is None:
            raise EncodeError("topic must be set, in send_record(), EventProducer() or the record")
        check_header_names(record.headers)
        headers = list(record.headers)  # a new list, because instrumentation adds headers to the list
        return topic, (record, record.key, record.value, headers)


_MILLISECONDS: Final = "pass milliseconds since the epoch: round(time.timestamp() * 1000) of a datetime"


def with_options(produce: Produce, partition: int | None, timestamp: int | None) -> Produce:
    """Return a function that calls ``produce`` without options whose value is None: the client refuses None.

    Raises `TypeError` if the value of an option is not an integer.
    """
    _check_integer("partition", partition, "pass the number of a partition")
    _check_integer("timestamp", timestamp, _MILLISECONDS)
    named = (("partition", partition), ("timestamp", timestamp))
    options = {name: value for name, value in named if value is not None}
    return partial(produce, **options) if options else produce


def _check_integer(name: str, value: object, advice: str) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        got = with_article(type(value).__name__)
        raise TypeError(f"{name} must be an int, or None, got {got}; {advice}")


class EventProducer(Generic[ProducerT]):
    """Sends CloudEvents through ``producer``: a Kafka client, or librdkafka settings for a new client.

    The attribute ``producer`` is the Kafka client. If the client was made from settings, `close` also closes
    the client, and purges messages that were not delivered. A client that the user passed stays open.

    ``mode``, ``format`` and ``key_mapper`` are defaults for the arguments of `send`; `to_record` explains
    them. To use transactions, begin and end each transaction with the Kafka client. If a transaction is
    aborted, the deliveries of its events have ``aborted`` True and an ``error``. `flush` does not raise the
    error of an aborted delivery.

    ``close_timeout`` is how long, in seconds, `close` and the end of a ``with`` block may wait for
    deliveries. By default, `close` waits until each message is delivered or has failed; this takes at most
    the client's ``message.timeout.ms`` (five minutes). In a container, pass a ``close_timeout`` that is
    shorter than the time after which the container is killed.

    If an event was sent without ``on_delivery`` and its delivery fails, the event stays in memory until
    `flush` or `Delivery.result` raises its error. A service that calls neither `flush` nor `Delivery.result`
    should therefore pass ``on_delivery``.

    ``observers`` are called with each record that the producer sends, and may add headers to the record: see
    `Observer`.

    Raises `ValueError` for wrong settings and options. Raises `TypeError` for an unsuitable object, such as a
    class or an asyncio client.

    Examples:
        >>> from cloudevents_kafka import Event, EventProducer
        >>> with EventProducer({"bootstrap.servers": "localhost:9092"}, topic="orders") as events:
        ...     delivery = events.send(Event(id="1", source="/shop", type="order.placed"), key="customer-4")
    """

    def __init__(
        self,
        producer: ProducerT | Mapping[str, Any],
        *,
        topic: str | None = None,
        mode: ContentMode = "binary",
        format: str | None = None,
        key_mapper: KeyMapper | None = None,
        close_timeout: float | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._writer = Writer(topic, mode, format, key_mapper, close_timeout)
        client = make_client(producer, "Producer") if isinstance(producer, Mapping) else producer
        with closed_on_error(None if client is producer else client):
            check_client(client, Producer)
            self.producer = cast("ProducerT", client)
            self._polling = Polling(client, is_owned=client is not producer)
            self._deliveries = self._polling.deliveries
            self.observe(observers)

    def send(
        self,
        event: Event[Any] | SdkEvent,
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
    ) -> Delivery[Event]:
        """Queue an event, or an SDK's event, and return its `Delivery` without waiting for the broker.

        Most arguments of `send` are arguments of `to_record`. ``timestamp`` is in milliseconds since the
        epoch. By default, it is the current time of the client; confluent-kafka also uses the current time if
        ``timestamp`` is 0. `send` waits while the client's queue is full. Raises `EncodeError` or
        `InvalidEvent` if the event cannot be written. Raises `DeliveryError` if the event is too large, and
        errors of the client, such as ``KafkaException`` for a fenced transactional producer.
        """
        outgoing = self._writer.encode(event, topic, key, headers, mode, format, key_mapper, like)
        produce: Produce = self.producer.produce
        if partition is not None or timestamp is not None:
            produce = with_options(produce, partition, timestamp)
        delivery = self._deliveries.send(self._polling, produce, outgoing, on_delivery)
        self._polling.sent()
        return delivery

    def send_record(
        self,
        record: RecordInput,
        topic: str | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery[Record]:
        """Queue any record, even if it is not an event, and return its delivery without waiting.

        The record's key, value and headers are sent unchanged. The record may be a message of a Kafka client:
        see `Record.of`. The default of ``topic`` is the topic of the `EventProducer`, or the topic of the
        record if the `EventProducer` has no topic. The partition and the timestamp of the record are not
        used; pass ``partition`` and ``timestamp`` instead. `send_record` waits while the client's queue is
        full. Raises `EncodeError` if no topic is known, `DeliveryError` if the record is too large, and
        errors of the client.
        """
        outgoing = self._writer.copy(record, topic)
        produce = with_options(self.producer.produce, partition, timestamp)
        delivery = self._deliveries.send(self._polling, produce, outgoing, on_delivery)
        self._polling.sent()
        return delivery

    def observe(self, observers: Sequence[Observer]) -> None:
        """Add observers, which are called for all events that are sent from now on."""
        self._deliveries.observers = add_observers(self._deliveries.observers, observers)

    def count_sends(self) -> None:
        """Let a run wait for deliveries of the events that its handlers send; see `EventConsumer.run`."""
        self._deliveries.count = count_send

    def flush(self, timeout: float | None = None) -> None:
        """Wait up to ``timeout`` seconds until each sent message is delivered or has failed.

        Raises `DeliveryError` if deliveries are still pending, or if deliveries without an ``on_delivery``
        callback have failed since the last flush. The error's attribute ``failed`` lists the failed and the
        pending deliveries; a pending delivery is not ``done``, and its message may still arrive. If several
        threads call `flush`, each failed delivery is reported to only one of these threads.
        """
        if not self._polling.drain(timeout):
            self._deliveries.raise_pending(timeout)
        self._deliveries.raise_failures()

    def close(self, timeout: float | None = None) -> None:
        """Flush for at most ``timeout`` seconds, by default ``close_timeout``; later calls of `send` fail.

        Raises the same errors as `flush`. A client that the user passed stays open, and may still deliver
        pending messages; purge the client to prevent this.
        """
        self._deliveries.closed = True
        if self._deliveries.is_of_parent:
            return  # the parent process delivers the messages that it has sent
        try:
            self.flush(self._writer.close_timeout if timeout is None else timeout)
        finally:
            self._polling.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the producer; sent events are delivered even if the block has raised an error."""
        try:
            self.close()
        except DeliveryError as undelivered:
            if error is None:
                raise
            error.add_note(f"also: {undelivered}")  # the error of the block takes precedence
