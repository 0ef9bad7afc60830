"""`AsyncEventProducer`: sends events through a Kafka producer, for asyncio.

Events are converted to records as by an `EventProducer`; an `AsyncSender` passes the records to the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, cast

from cloudevents_kafka.binding import ContentMode, KeyMapper
from cloudevents_kafka.clients._deliveries import DeliveryError
from cloudevents_kafka.clients._protocols import AnyProducerT, Producer, add_observers, is_awaited
from cloudevents_kafka.clients._sends import count_send
from cloudevents_kafka.clients._settings import closed_on_error, make_client
from cloudevents_kafka.clients.aio._aiokafka_sender import AiokafkaSender
from cloudevents_kafka.clients.aio._loop import Turn
from cloudevents_kafka.clients.aio._sender import AsyncDelivery, AsyncSender, PolledSender
from cloudevents_kafka.clients.producer import WriteOptions, Writer, with_options
from cloudevents_kafka.event import Event, SdkEvent
from cloudevents_kafka.record import Record, RecordInput

if TYPE_CHECKING:
    from cloudevents_kafka.clients.observing import Observer

__all__ = ["AsyncDelivery", "AsyncEventProducer"]


class SendOptions(WriteOptions, total=False):
    """The options of `AsyncEventProducer.send` and of `EventProducer.send`."""

    partition: int | None
    timestamp: int | None


class AsyncEventProducer(Generic[AnyProducerT]):
    """Sends CloudEvents through ``producer``: a Kafka client, or librdkafka settings for a new client.

    The attribute ``producer`` is the Kafka client. The client may be a ``confluent_kafka.Producer``; one
    thread polls this client from the first event on. If the ``confluent_kafka.Producer`` was made from
    settings, `close` also closes this client. The client may also be an ``aiokafka.AIOKafkaProducer``, which
    you must start and stop. An event is in flight from the call that sends the event until the event's
    delivery report arrives. At most ``max_in_flight`` events are in flight at the same time. All other
    options have the same meaning as in `EventProducer`. Each `AsyncEventProducer` belongs to one event loop.

    Raises `TypeError` if ``producer`` is an unsuitable object, such as a client of another library. Raises
    `ValueError` for wrong settings and options.

    Examples:
        >>> import asyncio
        >>> from cloudevents_kafka import AsyncEventProducer, Event
        >>> async def main() -> None:
        ...     settings = {"bootstrap.servers": "localhost:9092"}
        ...     async with AsyncEventProducer(settings, topic="orders") as events:
        ...         delivery = await events.send(Event(id="1", source="/shop", type="order.placed"))
        ...         print(delivery.partition)
        >>> asyncio.run(main())
        0
    """

    def __init__(
        self,
        producer: AnyProducerT | Mapping[str, Any],
        *,
        topic: str | None = None,
        mode: ContentMode = "binary",
        format: str | None = None,
        key_mapper: KeyMapper | None = None,
        max_in_flight: int = 1000,
        close_timeout: float | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._writer = Writer(topic, mode, format, key_mapper, close_timeout)
        client: Any = make_client(producer, "Producer") if isinstance(producer, Mapping) else producer
        with closed_on_error(None if client is producer else client):
            self.is_aiokafka = awaited = is_awaited(client, Producer, "send", "start", "stop")
            self.producer = cast("AnyProducerT", client)
            polled = partial(PolledSender, is_owned=client is not producer)
            sender: Callable[..., AsyncSender] = AiokafkaSender if awaited else polled
            self._sender = sender(client, max_in_flight)
            self._turn = Turn()
            self.observe(observers)

    async def send(
        self, event: Event[Any] | SdkEvent, topic: str | None = None, **options: Unpack[SendOptions]
    ) -> AsyncDelivery[Event]:
        """Send an event, or an SDK's event, and return its delivery after the broker has received the event.

        If the queue is full or ``max_in_flight`` events are in flight, `send` first waits. Raises
        `DeliveryError` if the event was not delivered, and the same errors as `EventProducer.send` if the
        event cannot be written. If the task is cancelled before `send` has queued the event, the event is not
        sent. If the task is cancelled after `send` has queued the event, the delivery continues; if this
        delivery fails, the next `flush` raises the error. To know whether an event was queued, use three
        steps: await `drain`, call `send_nowait`, and await the returned delivery.
        """
        while True:
            try:
                delivery = self.send_nowait(event, topic, **options)
            except asyncio.QueueFull:
                await self._sender.wait_for_room()
            else:
                return await delivery

    def send_nowait(
        self,
        event: Event[Any] | SdkEvent,
        topic: str | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        **options: Unpack[WriteOptions],
    ) -> AsyncDelivery[Event]:
        """Queue an event, or an SDK's event, and return its delivery without waiting.

        The caller may await the returned delivery. Raises `asyncio.QueueFull` if ``max_in_flight`` events are
        in flight, or if the client's queue is full; to prevent this error, await `drain` before each call.
        """
        self._sender.check()
        outgoing = self._writer.encode(event, topic, **options)
        produce = with_options(self._sender.produce, partition, timestamp)
        delivery = self._sender.deliveries.send(self._sender, produce, outgoing)
        self._sender.sent()
        return delivery

    async def send_record(
        self,
        record: RecordInput,
        topic: str | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> AsyncDelivery[Record]:
        """Send any record without a change, and return its delivery after the broker has received it.

        The arguments are the arguments of `EventProducer.send_record`. `send_record` waits, raises errors and
        handles cancelled tasks as `send` does.
        """
        while True:
            try:
                self._sender.check()
                outgoing = self._writer.copy(record, topic)
                produce = with_options(self._sender.produce, partition, timestamp)
                delivery = self._sender.deliveries.send(self._sender, produce, outgoing)
                self._sender.sent()
            except asyncio.QueueFull:
                await self._sender.wait_for_room()
            else:
                return await delivery

    def raise_failures(self) -> None:
        """Raise `DeliveryError`, without waiting, if deliveries have failed since the last flush."""
        self._sender.deliveries.raise_failures()

    def observe(self, observers: Sequence[Observer]) -> None:
        """Add observers, which are called for all events that are sent from now on."""
        deliveries = self._sender.deliveries
        deliveries.observers = add_observers(deliveries.observers, observers)

    def count_sends(self) -> None:
        """Let a run wait for deliveries of the events that handlers send; see `AsyncEventConsumer.run`."""
        self._sender.deliveries.count = count_send

    async def drain(self) -> None:
        """Wait until `send_nowait` can queue an event; if no other task ran for a while, let others run.

        If a loop awaits `drain` before each call of `send_nowait`, the loop does not block the event loop.

        Examples:
            >>> import asyncio
            >>> from cloudevents_kafka import AsyncEventProducer, Event
            >>> async def main() -> None:
            ...     async with AsyncEventProducer(producer, topic="orders") as events:
            ...         for number in range(1000):
            ...             await events.drain()
            ...             events.send_nowait(Event(id=str(number), source="/shop", type="order.placed"))
            >>> asyncio.run(main())
        """
        self._sender.resume()
        if self._sender.full:
            await self._sender.wait_for_room()
        elif self._turn.is_over():
            await self._turn.end()

    async def flush(self, timeout: float | None = None) -> None:
        """Wait up to ``timeout`` seconds until no event is in flight and the observers have been called.

        Raises the same errors as `EventProducer.flush`.
        """
        with suppress(TimeoutError):  # the error below says which events are pending
            async with asyncio.timeout(timeout):
                await self._sender.wait_for_none()
        self._sender.deliveries.raise_pending(timeout)
        self._sender.deliveries.raise_failures()

    async def close(self, timeout: float | None = None) -> None:
        """Flush for at most ``timeout`` seconds, by default ``close_timeout``; later calls of `send` fail.

        Raises the same errors as `flush`.

        A client that the user passed stays open, and may still deliver events that were in flight at the
        timeout.
        """
        self._sender.deliveries.closed = True
        if self._sender.deliveries.is_of_parent:
            return  # the parent process delivers the messages that it has sent
        try:
            await self.flush(self._writer.close_timeout if timeout is None else timeout)
        finally:
            await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the producer; sent events are delivered even if the block has failed or was cancelled."""
        try:
            await self.close()
        except DeliveryError as undelivered:
            if error is None:
                raise
            error.add_note(f"also: {undelivered}")  # the error of the block takes precedence
