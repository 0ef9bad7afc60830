"""`AsyncSender`: sends messages and awaits deliveries on an event loop; limits the pending messages.

`PolledSender` passes records to confluent-kafka's ``Producer``. One thread polls this producer, and passes
the producer's reports to the deliveries.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import Any, Final, NoReturn, Self

from cloudevents_kafka.clients._deliveries import Deliveries, Delivery, Ended, SentT_co, is_closed
from cloudevents_kafka.clients._polling import close_client
from cloudevents_kafka.clients._polling_thread import PollingThread
from cloudevents_kafka.clients._protocols import Producer
from cloudevents_kafka.clients.aio._call_thread import call_once

_WOKEN: Final = 100  # deliveries whose waiters one callback of the loop wakes, in a millisecond
_ROOM: Final = 250  # waiting tasks are woken when this number of messages can be sent
_RETRY_SECONDS: Final = 0.02  # if other code has filled the queue, this code gets the reports
_CALLED_SECONDS: Final = 0.002  # between two checks whether the observers have been called


class AsyncDelivery(Delivery[SentT_co]):
    """The delivery of an event or a record; any number of tasks may await it.

    ``await delivery`` waits for the delivery report, and returns the delivery or raises `DeliveryError`. If a
    task is cancelled while it awaits a delivery, the delivery itself continues.

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

    def __await__(self) -> Generator[Any, None, Self]:
        if not self.done:
            if isinstance(self._shell, AsyncSender):
                self._shell.resume()
            waiter = asyncio.get_running_loop().create_future()
            self._waiters = (*self._waiters, waiter)
            if not self.done:  # a thread may have reported it before this waiter was added
                yield from waiter
        return self if self._client_error is None else self.result()


class AsyncSender:
    """Passes records to a client on one event loop, and wakes the tasks that wait for deliveries or to send.

    A subclass sets ``produce`` to the client's method, or to a function that queues a record, and calls
    `report_called` after it has received delivery reports.
    """

    produce: Callable[..., Any]  # raises BufferError if the client's queue is full

    def __init__(self, max_in_flight: int) -> None:
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight must be at least 1, got {max_in_flight}")
        self.max_in_flight = max_in_flight
        self.deliveries: Deliveries[AsyncDelivery[Any]] = Deliveries(AsyncDelivery)
        self.pending = self.deliveries.pending  # the messages in flight
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduled = False  # whether the loop is going to call `_wake`
        self._client_full = False
        self._for_room: deque[asyncio.Future[None]] = deque()
        self._for_none: deque[asyncio.Future[None]] = deque()

    @property
    def full(self) -> bool:
        """Whether the limit of pending messages is reached, or the client's queue is full."""
        return self._client_full or len(self.pending) >= self.max_in_flight

    def check(self) -> None:
        """Raise `asyncio.QueueFull` if no record can be sent now, or `RuntimeError` on another event loop."""
        if asyncio.get_running_loop() is not self._loop:
            self.running_loop()
        if self._client_full or len(self.pending) >= self.max_in_flight:
            raise asyncio.QueueFull(f"{len(self.pending)} events are in flight; await drain() first")

    def make_room(self, error: BufferError) -> NoReturn:
        """Raise `asyncio.QueueFull`, because the client's queue is full.

        No further record is sent until some delivery reports have arrived, or a short time has passed.
        """
        self._client_full = True
        self.sent()
        self.running_loop().call_later(_RETRY_SECONDS, self._retry)
        raise asyncio.QueueFull(f"the queue of the client is full: {error}; await drain() first") from None

    def wait(self, delivery: Delivery[Any], timeout: float | None) -> None:  # noqa: ARG002  # only tasks wait
        """Raise `asyncio.InvalidStateError` unless the report of a delivery has arrived."""
        if not delivery.done:
            raise asyncio.InvalidStateError(f"{delivery!r} has no report yet; await it")

    def resume(self) -> None:
        """Start sending again if its task was cancelled; this method is called before each wait."""
        self.deliveries.check_process()

    def running_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop; raise `RuntimeError` if it is not the loop of the first call."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError("an AsyncEventProducer must stay in one event loop; create one for each")
        return loop

    async def wait_for_room(self) -> None:
        """Wait until a record can be sent; the task that called this method first continues first."""
        while self.full or self._for_room:
            await self._wait(self._for_room)
            if not self.full:
                return

    async def wait_for_none(self) -> None:
        """Wait until no record is in flight, and the observers have been called."""
        while self.deliveries.is_busy():
            if self.pending:
                await self._wait(self._for_none)
            else:
                await asyncio.sleep(_CALLED_SECONDS)

    def report_called(self, *, from_thread: bool = False) -> None:
        """Let the event loop wake waiting tasks; the sender calls this method after delivery reports."""
        self._client_full = False
        self._schedule(from_thread=from_thread)

    def _schedule(self, *, from_thread: bool = False) -> None:
        loop = self._loop
        if (
            loop is None
            or self._scheduled
            or not (self.deliveries.awaited or self._for_room or self._for_none)
        ):
            return
        self._scheduled = True
        (loop.call_soon_threadsafe if from_thread else loop.call_soon)(self._wake)

    async def close(self) -> None:
        """Release the resources of the sender; a client that the user passed stays open."""

    def sent(self) -> None:
        """After a message was sent, make sure that its delivery report will be processed."""

    def _wake(self) -> None:
        """Wake the tasks that may continue; the event loop calls this method.

        Tasks that wait to send are woken only when many messages can be sent, so that the program rarely
        switches between the event loop and the polling thread. If no report is expected, the next tasks are
        woken at once, because a woken task may be cancelled or may send nothing.
        """
        self._scheduled = False
        self.deliveries.wake(_WOKEN)
        in_flight = len(self.pending)
        if not in_flight:
            _wake_some(self._for_none, len(self._for_none))
        room = 0 if self._client_full else self.max_in_flight - in_flight
        if room >= min(_ROOM, -(-self.max_in_flight // 2)):
            _wake_some(self._for_room, room)
        if self.deliveries.awaited or (room and not in_flight):
            self._schedule()

    def _retry(self) -> None:
        self._client_full = False
        self._wake()

    async def _wait(self, waiting: deque[asyncio.Future[None]]) -> None:
        waiter = self.running_loop().create_future()
        waiting.append(waiter)
        self.resume()
        self.sent()
        self._schedule()  # a thread may have processed the last report before this waiter was added
        await waiter


def _wake_some(waiting: deque[asyncio.Future[None]], count: int) -> None:
    while waiting and count:
        waiter = waiting.popleft()
        if not waiter.done():  # the waiter of a cancelled task is done
            waiter.set_result(None)
            count -= 1


class PolledSender(AsyncSender):
    """Sends records through a client whose ``poll`` calls the functions for delivery reports.

    For all delivery reports of one call of ``poll``, the polling thread wakes the event loop only once. If
    each report woke the event loop, the loop and the polling thread would compete for Python's interpreter
    lock at every report.
    """

    def __init__(self, client: Producer, max_in_flight: int, *, is_owned: bool = False) -> None:
        super().__init__(max_in_flight)
        self._is_owned = is_owned  # whether the client was made for this object
        self.produce = client.produce
        self.deliveries.ended = Ended.of(client)
        self._client: Any = client
        self._thread = PollingThread(self, "AsyncEventProducer")
        self._last_error = ""

    def sent(self) -> None:
        """Start the polling thread, unless it is already running."""
        self._thread.start()

    async def close(self) -> None:
        """Close a client that was made for this sender; purge pending messages, and report them as lost."""
        if self._is_owned:
            self._is_owned = False
            await call_once(partial(close_client, self._client), "AsyncEventProducer.close")
            self.serve(None, is_idle=True)

    def poller(self) -> Callable[[float], int]:
        """Return the method that polls the client: ``poll``, or ``flush``, which ignores ``linger.ms``."""
        poll: Callable[[float], int] = self._client.flush if self._for_none else self._client.poll
        return poll

    def serve(self, error: BaseException | None, *, is_idle: bool) -> None:
        """After a poll, call queued functions and wake the event loop; report an error to the loop."""
        if error is not None:
            self._report_error(error)
        if is_idle or self._for_none:
            self.deliveries.find_lost(self._client)
        self.deliveries.callbacks.serve()
        with suppress(RuntimeError):  # the loop is closed
            self.report_called(from_thread=True)

    def is_busy(self) -> bool:
        """Return whether polling is needed, for pending messages, queued functions or a full queue."""
        busy = self.pending or self.deliveries.callbacks.due or self._client_full
        return bool(busy) and not (self._loop is not None and self._loop.is_closed())

    def _report_error(self, error: BaseException) -> None:
        self.deliveries.note_error(error)
        if self._loop is None or repr(error) == self._last_error or is_closed(self._client):
            return  # `find_lost` reports a closed client
        self._last_error = repr(error)
        context = {"message": "polling the Kafka producer has failed", "exception": error}
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._loop.call_exception_handler, context)
