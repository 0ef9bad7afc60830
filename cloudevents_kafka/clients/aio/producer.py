"""`AsyncEventProducer`: sends events through a user's Kafka producer, for asyncio.

`EventProducer` converts the events and keeps their deliveries, as it does in synchronous programs.
Its client here is a `Sender`, which does not wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack, cast
from weakref import ReferenceType

from cloudevents_kafka.binding import ContentMode, KeyMapper
from cloudevents_kafka.clients._protocols import Producer
from cloudevents_kafka.clients.aio._aiokafka_sender import AiokafkaSender
from cloudevents_kafka.clients.aio._clients import is_awaited
from cloudevents_kafka.clients.aio._polled_sender import PolledSender
from cloudevents_kafka.clients.aio._sender import Sender
from cloudevents_kafka.clients.aio._turn import Turn
from cloudevents_kafka.clients.producer import Delivery, DeliveryError, EventProducer, RecordDelivery
from cloudevents_kafka.record import HeaderInput, RecordInput

ProducerT = TypeVar("ProducerT")


class SendOptions(TypedDict, total=False):
    """The options of `AsyncEventProducer.send`: those of `EventProducer.send`."""

    key: bytes | str | None
    partition: int | None
    timestamp: int | None
    headers: HeaderInput
    mode: ContentMode | None
    format: str | None
    key_mapper: KeyMapper | None
    like: RecordInput | None


class AsyncDelivery(Delivery):
    """The delivery of one event, which any number of tasks may await.

    ``await delivery`` waits for the report, and returns the delivery or raises `DeliveryError`.
    Cancelled, it leaves the event on its way.

    Examples:
        >>> import asyncio
        >>> from cloudevents_kafka import AsyncEventProducer, Event
        >>> async def main() -> None:
        ...     async with AsyncEventProducer(producer, topic="orders") as events:
        ...         delivery = events.send_nowait(Event(id="1", source="/shop", type="order.placed"))
        ...         print((await delivery).offset)
        >>> asyncio.run(main())
        0
    """

    _waiters: tuple[asyncio.Future[None], ...] = ()

    def result(self, timeout: float | None = None) -> Self:  # noqa: ARG002  # of the base class
        """Return the delivery or raise `DeliveryError`; before the report, `asyncio.InvalidStateError`."""
        if not self.done:
            raise asyncio.InvalidStateError(f"{self!r} has no report yet; await it")
        return super().result(0)

    def __await__(self) -> Generator[Any, None, Self]:
        waiter = self.waiter()
        if waiter is not None:
            yield from waiter
        return self if self._client_error is None else self.result()

    def waiter(self) -> asyncio.Future[None] | None:
        """Return a new future of the report, or None if it has arrived."""
        if self.done:
            return None
        if self._producer is not None:
            self._producer.producer.resume()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters = (*self._waiters, waiter)
        return None if self.done else waiter  # another thread may have reported it, and seen no waiter

    @property
    def awaited(self) -> bool:
        """Whether a task awaits it."""
        return any(not waiter.done() for waiter in self._waiters)

    def wake(self) -> None:
        """Wake the tasks that await it; called on their event loop after the report."""
        waiters, self._waiters = self._waiters, ()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _report(self, error: Any, message: Any) -> None:
        super()._report(error, message)
        if self._waiters and self._producer is not None:
            self._producer.producer.reported.append(self)


class AsyncRecordDelivery(RecordDelivery, AsyncDelivery):
    """The delivery of one record, which `AsyncEventProducer.send_record` has sent.

    Examples:
        >>> import asyncio
        >>> from cloudevents_kafka import AsyncEventProducer, Record
        >>> async def main() -> None:
        ...     async with AsyncEventProducer(producer) as events:
        ...         delivery = await events.send_record(Record(value=b"17"), "orders")
        ...         print(delivery.record.value)
        >>> asyncio.run(main())
        b'17'
    """


def _forget(deliveries: dict[Any, ReferenceType[Delivery]], reference: Any) -> None:
    """Wake who awaits a delivery that is not reported, as with ``delivery.report.only.error``."""
    delivery = deliveries.pop(reference)()
    if delivery is not None and not delivery.done:
        delivery._look_for_report()


class _Events(EventProducer[Sender]):
    """The events of an `AsyncEventProducer`, which waits instead of them."""

    _delivery = AsyncDelivery
    _record_delivery = AsyncRecordDelivery

    def __init__(self, sender: Sender, **options: Any) -> None:
        super().__init__(sender, **options)
        sender.reports = self._reports
        self._forget = partial(_forget, self._reports)

    def end(self) -> None:
        """Accept no more events."""
        self._closed = True

    def _produce(self, produce: Callable[[], Any]) -> None:
        try:
            produce()
        except BufferError as error:
            self.producer.refuse(error)

    def _drain(self, timeout: float | None) -> int:  # noqa: ARG002  # of the base class
        return len(self._reports)


class AsyncEventProducer(Generic[ProducerT]):
    """A sender of CloudEvents through ``producer``, which remains an attribute.

    ``producer`` is a plain ``confluent_kafka.Producer``, which one thread polls from the first event
    on, or an ``aiokafka.AIOKafkaProducer``, which its user starts and stops. At most ``max_in_flight``
    events are on their way: sent, and not yet reported. The other options are those of `EventProducer`.
    An object belongs to one event loop.

    Raises `TypeError` if ``producer`` is another client, and `ValueError` for wrong options.

    Examples:
        >>> import asyncio
        >>> from confluent_kafka import Producer
        >>> from cloudevents_kafka import AsyncEventProducer, Event
        >>> async def main() -> None:
        ...     client = Producer({"bootstrap.servers": "localhost:9092"})
        ...     async with AsyncEventProducer(client, topic="orders") as events:
        ...         delivery = await events.send(Event(id="1", source="/shop", type="order.placed"))
        ...         print(delivery.partition)
        >>> asyncio.run(main())
        0
    """

    def __init__(
        self,
        producer: ProducerT,
        *,
        topic: str | None = None,
        mode: ContentMode = "binary",
        format: str | None = None,
        key_mapper: KeyMapper | None = None,
        max_in_flight: int = 1000,
        close_timeout: float | None = None,
    ) -> None:
        awaited = is_awaited(producer, Producer, "send", "start", "stop")
        kind: Any = AiokafkaSender if awaited else PolledSender
        self.producer = producer
        self._sender: Sender = kind(producer, max_in_flight)
        self._events = _Events(
            self._sender,
            topic=topic,
            mode=mode,
            format=format,
            key_mapper=key_mapper,
            close_timeout=close_timeout,
        )
        self._close_timeout = close_timeout
        self._turn = Turn()

    async def send(
        self, event: Any, topic: str | None = None, **options: Unpack[SendOptions]
    ) -> AsyncDelivery:
        """Send an event, or an SDK's event, and return its delivery when the broker has it.

        Waits for room while ``max_in_flight`` events are on their way. Raises `DeliveryError` if the
        event was not delivered, and what `EventProducer.send` raises for an event that cannot be written.

        If it is cancelled while it waits for room, the event is not sent. After that the event stays
        on its way, and if it fails, the next `flush` raises the error. To know which, await `drain`,
        call `send_nowait`, and await its delivery.
        """
        while True:
            try:
                delivery = self.send_nowait(event, topic, **options)
            except asyncio.QueueFull:
                await self._sender.wait_for_room()
            else:
                break
        waiter = delivery.waiter()
        if waiter is not None:
            await waiter
        return delivery if delivery._client_error is None else delivery.result()

    def send_nowait(
        self, event: Any, topic: str | None = None, **options: Unpack[SendOptions]
    ) -> AsyncDelivery:
        """Queue an event, or an SDK's event, and return its delivery, to await it or not.

        Raises `asyncio.QueueFull` if there is no room: await `drain` before.
        """
        self._sender.check()
        return cast("AsyncDelivery", self._events.send(event, topic, **options))

    async def send_record(
        self,
        record: RecordInput,
        topic: str | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> AsyncRecordDelivery:
        """Send any record as it is, and return its delivery when the broker has it.

        Arguments are those of `EventProducer.send_record`. Waits, raises and is cancelled as `send`.
        """
        while True:
            try:
                self._sender.check()
                delivery = self._events.send_record(record, topic, partition=partition, timestamp=timestamp)
            except asyncio.QueueFull:
                await self._sender.wait_for_room()
            else:
                return await cast("AsyncRecordDelivery", delivery)

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
        """Wait up to ``timeout`` seconds until no event is on its way, and raise as `EventProducer.flush`."""
        with suppress(TimeoutError):  # the error of what is still on its way has more to say
            async with asyncio.timeout(timeout):
                await self._sender.wait_for_none()
        self._events.flush(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Flush, for ``close_timeout`` seconds by default, and raise as `flush`; `send` fails from now on.

        The client stays open, and may still deliver what was on its way at the timeout.
        """
        self._events.end()
        try:
            await self.flush(self._close_timeout if timeout is None else timeout)
        finally:
            await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; sent events are delivered also if the block has raised an error or was cancelled."""
        try:
            await self.close()
        except DeliveryError as undelivered:
            if error is None:
                raise
            error.add_note(f"also: {undelivered}")  # the error of the block takes precedence
