"""`Sender`: a producer client for `EventProducer` that never waits, and counts what is in flight.

`EventProducer` calls ``produce``, and the loop calls its reports. `_polled_sender` and
`_aiokafka_sender` pass the records to a client, and the reports of the client to the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

_REPORTS: Final = 100  # in one callback of the loop: more would take longer than a millisecond
_ROOM: Final = 250  # which a waiting task is woken for
_RETRY_SECONDS: Final = 0.02  # a queue that others have filled is reported to them

Report = Callable[[Any, Any], None]
"""Called on the event loop with the error and the message of a delivery report."""


class Sender:
    """A producer client, used on one event loop, with a bound on the records in flight.

    A record is in flight until its report was called. A subclass sets ``_pass``, which passes a record
    to its client, and appends reports and schedules them.
    """

    _pass: Callable[..., Any]  # as ``produce`` of the client; raises BufferError if it has no room

    def __init__(self, max_in_flight: int) -> None:
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight must be at least 1, got {max_in_flight}")
        self.max_in_flight = max_in_flight
        self.in_flight = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reports: deque[tuple[Report, Any, Any]] = deque()  # any thread may append to it
        self._scheduled = False  # whether the loop is going to call them
        self._client_full = False
        self._for_room: deque[asyncio.Future[None]] = deque()
        self._for_none: deque[asyncio.Future[None]] = deque()

    @property
    def full(self) -> bool:
        """Whether `produce` raises `asyncio.QueueFull`."""
        return self._client_full or self.in_flight >= self.max_in_flight

    def produce(self, topic: str, *, on_delivery: Report, **record: Any) -> None:
        """Pass a record to the client without waiting; raise `asyncio.QueueFull` if there is no room."""
        if asyncio.get_running_loop() is not self._loop:
            self.running_loop()
        if self._client_full or self.in_flight >= self.max_in_flight:
            raise asyncio.QueueFull(f"{self.in_flight} events are in flight; await drain() first")
        try:
            self._pass(topic, on_delivery=partial(_append, self._reports, on_delivery), **record)
        except BufferError as error:
            self._client_full = True
            self.running_loop().call_later(_RETRY_SECONDS, self._retry)
            raise asyncio.QueueFull(f"the client has no room: {error}; await drain() first") from None
        self.in_flight += 1

    def poll(self, timeout: float = 0) -> int:  # noqa: ARG002  # of a client
        """Return 0: the loop calls the reports."""
        return 0

    def flush(self, timeout: float = 0) -> int:  # noqa: ARG002  # of a client
        """Return the number of records in flight."""
        return self.in_flight

    def running_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop; raise `RuntimeError` if it is not the one of the first call."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            self._start(loop)
        if self._loop is not loop:
            raise RuntimeError("an AsyncEventProducer must stay in one event loop; create one for each")
        return loop

    async def wait_for_room(self) -> None:
        """Wait until there is room; who waits first returns first."""
        while self.full or self._for_room:
            await self._wait(self._for_room)
            if not self.full:
                return

    async def wait_for_none(self) -> None:
        """Wait until no record is in flight."""
        while self.in_flight:
            await self._wait(self._for_none)

    def schedule(self, *, from_thread: bool = False) -> None:
        """Let the loop call the reports, if there are any and it is not going to."""
        loop = self._loop
        if loop is not None and self._reports and not self._scheduled:
            self._scheduled = True
            (loop.call_soon_threadsafe if from_thread else loop.call_soon)(self._call_reports)

    async def close(self) -> None:
        """Release what the sender has started; the client stays open."""

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start what passes reports to the loop."""

    def _call_reports(self) -> None:
        """Call some reports that the client has made; run by the loop."""
        reports = self._reports
        try:
            for _ in range(min(len(reports), _REPORTS)):
                report, error, message = reports.popleft()
                self.in_flight -= 1
                report(error, message)
        finally:
            self._scheduled = False
            self.schedule()
            self._retry()

    def _retry(self) -> None:
        self._client_full = False
        self._wake()

    def _wake(self) -> None:
        """Wake the tasks whose condition holds.

        For room only once there is much, so that the loop and a thread that polls take long turns.
        A woken task may be cancelled, or send nothing: while no report is to come, the
        next are woken without one.
        """
        if not self.in_flight:
            _wake_some(self._for_none, len(self._for_none))
        room = self.max_in_flight - self.in_flight
        if self._for_room and not self._client_full and room >= min(_ROOM, -(-self.max_in_flight // 2)):
            _wake_some(self._for_room, room)
            if self._for_room and not self.in_flight and self._loop is not None:
                self._loop.call_soon(self._wake)

    async def _wait(self, waiting: deque[asyncio.Future[None]]) -> None:
        waiter = self.running_loop().create_future()
        waiting.append(waiter)
        await waiter


def _append(reports: deque[tuple[Report, Any, Any]], report: Report, error: Any, message: Any) -> None:
    reports.append((report, error, message))


def _wake_some(waiting: deque[asyncio.Future[None]], count: int) -> None:
    while waiting and count:
        waiter = waiting.popleft()
        if not waiter.done():  # it is, if its task was cancelled
            waiter.set_result(None)
            count -= 1
