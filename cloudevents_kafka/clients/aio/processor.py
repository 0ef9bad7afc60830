"""`AsyncEventProcessor`: reads records, and writes the events of a coroutine handler exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients._places import Item
from cloudevents_kafka.clients._policy import OnFailure
from cloudevents_kafka.clients._protocols import check_handler
from cloudevents_kafka.clients._sends import Sends, current_sends
from cloudevents_kafka.clients.aio._loop import run_in_thread
from cloudevents_kafka.clients.aio.consumer import AsyncEventConsumer
from cloudevents_kafka.clients.aio.producer import AsyncEventProducer
from cloudevents_kafka.clients.processor import EventProcessor, ProcessorOptions
from cloudevents_kafka.clients.producer import EventProducer

if TYPE_CHECKING:
    from cloudevents_kafka.clients.observing import Observer

ItemT = TypeVar("ItemT", bound=Item)
T = TypeVar("T")


class AsyncEventProcessor:
    """A loop for asyncio that handles batches of records in Kafka transactions.

    An `AsyncEventProcessor` runs an `EventProcessor` in a thread. The ``handler`` is a coroutine function;
    the event loop runs the handler for one record at a time. The handler sends with ``producer``, preferably
    by ``send_nowait``: the handler need not await deliveries, because the commit waits for them. The options
    are the options of `EventProcessor`; a `DeadLetters` object may also use ``producer``.

    The clients of ``consumer`` and ``producer`` must be confluent-kafka clients. aiokafka's producer sends
    the group's offsets with the group id, but without the id of the member. Without the id of the member, a
    broker would accept offsets of partitions that belong to another member, and a record could be written
    twice. Raises `TypeError` for clients of other kinds, and the errors of `EventProcessor`.

    Examples:
        >>> import asyncio
        >>> from cloudevents_kafka import AsyncEventConsumer, AsyncEventProcessor, AsyncEventProducer
        >>> from cloudevents_kafka import Decoded
        >>> from cloudevents_kafka.testing import FakeProducer
        >>> async def main() -> None:
        ...     invoices = AsyncEventProducer(FakeProducer(transactional=True), topic="invoices")
        ...     async def invoice(item: Decoded) -> None:
        ...         invoices.send_nowait(item.event.replace(type="invoice.created"), like=item.record)
        ...     events = AsyncEventConsumer(consumer, strict=True)
        ...     print(await AsyncEventProcessor(events, invoices, invoice).run(idle_timeout=0.1))
        >>> asyncio.run(main())
        2
    """

    @overload
    def __init__(
        self,
        consumer: AsyncEventConsumer[Any, Decoded[T] | Undecodable],
        producer: AsyncEventProducer[Any],
        handler: Callable[[Decoded[T]], Awaitable[object]],
        *,
        on_failure: OnFailure,
        **options: Unpack[ProcessorOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        consumer: AsyncEventConsumer[Any, ItemT],
        producer: AsyncEventProducer[Any],
        handler: Callable[[ItemT], Awaitable[object]],
        *,
        on_failure: None = ...,
        **options: Unpack[ProcessorOptions],
    ) -> None: ...

    def __init__(
        self,
        consumer: AsyncEventConsumer[Any, Any],
        producer: AsyncEventProducer[Any],
        handler: Callable[[Any], Awaitable[object]],
        *,
        on_failure: OnFailure | None = None,
        **options: Unpack[ProcessorOptions],
    ) -> None:
        for wrapper, kind in ((consumer, AsyncEventConsumer), (producer, AsyncEventProducer)):
            name = kind.__name__[len("AsyncEvent") :]
            if not isinstance(wrapper, kind):
                raise TypeError(
                    f"{name.lower()} must be an {kind.__name__}, got {type(wrapper).__name__}; "
                    f"pass {kind.__name__}(…)"
                )
            if wrapper.is_aiokafka:
                raise TypeError(
                    f"{name.lower()} must be an {kind.__name__} of a confluent_kafka.{name}, got "
                    f"{type(wrapper).__name__}; with aiokafka, a broker would accept offsets of partitions "
                    "that the member has lost"
                )
        check_handler(handler, awaited=True)
        self.consumer = consumer
        self.producer = producer
        self._handler = handler
        self._calls: set[Future[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._processor = EventProcessor(
            consumer._polled, _Producer(producer), self._call, on_failure=on_failure, **options
        )

    def stop(self) -> None:
        """End `run` after the record that is currently handled, as `EventProcessor.stop` does."""
        self._processor.stop()

    async def run(self, *, stop_timeout: float = 20.0, idle_timeout: float | None = None) -> int:
        """Process records until `stop` or SIGTERM, or until no record arrives for ``idle_timeout`` seconds.

        Return the number of handled records. If the task that awaits `run` is cancelled, the run also ends. A
        handler that does not return within ``stop_timeout`` seconds is cancelled. Raises the same errors as
        `EventProcessor.run`.
        """
        self._loop, gathered = asyncio.get_running_loop(), self.consumer._gathered
        run = partial(self._processor.run, stop_timeout=stop_timeout, idle_timeout=idle_timeout)
        try:
            gathered.ask_ends_by(self.consumer.consumer)  # the thread that reads makes calls of this client
            return await run_in_thread(run, self.stop, "AsyncEventProcessor")
        finally:
            gathered.ask_ends_by(self.consumer._source)
            for call in list(self._calls):
                call.cancel()

    def _call(self, item: Any) -> None:
        """Let the event loop handle a record, and wait for the handler; the thread of a batch calls this."""
        assert self._loop is not None  # `run` has set it
        call = asyncio.run_coroutine_threadsafe(self._handle(item, current_sends()), self._loop)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        call.result()

    async def _handle(self, item: Any, sends: Sends | None) -> None:
        assert sends is not None  # the processor counts what its handler sends
        with sends.counted():
            await self._handler(item)


class _Producer(EventProducer[Any]):
    """The `EventProducer` that the processor's thread uses, with the client of the `AsyncEventProducer`."""

    def __init__(self, producer: AsyncEventProducer[Any]) -> None:
        super().__init__(producer.producer)
        self._asyncio = producer
        self._deliveries.observers = producer._sender.deliveries.observers

    def observe(self, observers: Sequence[Observer]) -> None:
        """Call the observers for each message that this producer or the `AsyncEventProducer` sends."""
        super().observe(observers)
        if observers:
            self._asyncio.observe(observers)

    def count_sends(self) -> None:
        """Count all messages, whether this producer or the `AsyncEventProducer` sends them."""
        super().count_sends()
        self._asyncio.count_sends()

    def flush(self, timeout: float | None = None) -> None:
        """Flush; raise an error if a delivery of this producer or the `AsyncEventProducer` has failed."""
        super().flush(timeout)
        self._asyncio.raise_failures()
