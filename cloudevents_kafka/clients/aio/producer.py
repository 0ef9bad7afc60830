"""`AsyncEventProducer`: sends events through a Kafka producer, for asyncio.

Events are converted as in an `EventProducer`; an `AsyncSender` passes them to the client.
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
from cloudevents_kafka.clients._settings import make_client
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
    """The options of `AsyncEventProducer.send`: those of `EventProducer.send`."""

    partition: int | None
    timestamp: int | None


class AsyncEventProducer(Generic[AnyProducerT]):
    """A sender of CloudEvents through ``producer``: settings of librdkafka, or a client.

    The attribute ``producer`` is the client. It is a ``confluent_kafka.Producer``, which one thread polls
    from the first event on; `close` closes it if it was made from settings. Or it is an
    ``aiokafka.AIOKafkaProducer``, which you start and stop. At most ``max_in_flight`` events are on their
    way, which means that they were sent and not yet reported. The other options are those of `EventProducer`.
    An object belongs to one event loop.

    Raises `TypeError` if ``producer`` is another client, and `ValueError` for wrong settings and options.

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
        """Send an event, or an SDK's event, and return its delivery when the broker has it.

        Waits for room while ``max_in_flight`` events are on their way. Raises `DeliveryError` if the event
        was not delivered, and the errors of `EventProducer.send` if the event cannot be written. If the call
        is cancelled while it waits for room, the event is not sent. If it is cancelled later, the event stays
        on its way, and if it fails, the next `flush` raises the error. To distinguish the two, await `drain`,
        call `send_nowait`, and await its delivery.
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
        """Queue an event, or an SDK's event, and return its delivery, which need not be awaited.

        Raises `asyncio.QueueFull` if there is no room: await `drain` before.
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
        """Send any record unchanged, and return its delivery when the broker has it.

        The arguments are those of `EventProducer.send_record`. It waits, raises errors and is cancelled as
        `send` is.
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
        """Raise `DeliveryError` if events were not delivered since the last flush; do not wait."""
        self._sender.deliveries.raise_failures(0, 0)

    def observe(self, observers: Sequence[Observer]) -> None:
        """Call further observers from now on."""
        deliveries = self._sender.deliveries
        deliveries.observers = add_observers(deliveries.observers, observers)

    def count_sends(self) -> None:
        """Let events that a handler sends count as a part of handling; see `AsyncEventConsumer.run`."""
        self._sender.deliveries.count = count_send

    async def drain(self) -> None:
        """Wait until `send_nowait` has room, and let other tasks run from time to time.

        A loop that awaits it before each `send_nowait` does not block the event loop.

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
        """Wait up to ``timeout`` seconds until no event is on its way, and observers have been called.

        Raises as `EventProducer.flush`.
        """
        with suppress(TimeoutError):  # the error of what is still on its way has more to say
            async with asyncio.timeout(timeout):
                await self._sender.wait_for_none()
        self._sender.deliveries.raise_failures(len(self._sender.pending), timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Flush, for ``close_timeout`` seconds by default, and raise as `flush`; `send` fails from now on.

        A client that was passed stays open, and may still deliver events that were on their way at the
        timeout.
        """
        self._sender.deliveries.closed = True
        if self._sender.deliveries.is_of_parent:
            return  # which delivers what it has sent
        try:
            await self.flush(self._writer.close_timeout if timeout is None else timeout)
        finally:
            await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; sent events are delivered even if the block has raised an error or was cancelled."""
        try:
            await self.close()
        except DeliveryError as undelivered:
            if error is None:
                raise
            error.add_note(f"also: {undelivered}")  # the error of the block takes precedence
