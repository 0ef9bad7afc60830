"""`Polling`: the shell of deliveries for threads, of which one at a time serves the client's reports.

Its law, whose random histories are in `tests/clients/test_polling.py`:

1. While threads wait, only the thread that has the turn calls the client's ``poll`` or ``flush``.
2. A thread that waits takes the turn when it is free, for one ``poll`` after the other until its report is
   there, but leaves it to threads that ask for it, to flush or for room in the client's queue.
3. A report wakes all threads that wait for its delivery, at once, by the thread that serves it.
4. A thread that stops waiting, or had the turn and does not wait, wakes one that waits, to take the turn.
5. No thread waits long for the turn, as a callback of the user may wait for this thread: it polls, too.

Calls of the client and waits end within `_POLL_SECONDS`: signals are handled between them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, RLock
from typing import Any, Final

from cloudevents_kafka.clients._deliveries import Deliveries, Delivery, DeliveryError, when_freed
from cloudevents_kafka.clients._protocols import Producer

_POLL_SECONDS: Final = 0.1
_FIRST_SECONDS: Final = 0.01  # of the first poll: send() may be serving the report, as it saw nobody wait
_PAUSE_SECONDS: Final = 0.002  # between calls of a client that does not wait, such as a fake


class _Waiter:
    """A thread that waits for its report or the turn, with the methods of a future."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lock.acquire()

    def done(self) -> bool:
        return not self._lock.locked()

    def set_result(self, _: None) -> None:
        with suppress(RuntimeError):  # another thread has woken it, too
            self._lock.release()

    def wait(self, seconds: float) -> None:
        self._lock.acquire(timeout=seconds)


class Polling:
    """Waits for deliveries, by polling the client or for the thread that does."""

    def __init__(self, client: Producer, *, is_owned: bool = False) -> None:
        self.deliveries: Deliveries[Delivery[Any]] = Deliveries(Delivery, self, wakes_at_once=True)
        self.waiting: dict[_Waiter, None] = {}  # an ordered set
        self._client = client
        self._is_owned = is_owned  # made for this object
        self._is_released = False
        self._turn = RLock()  # a callback in the turn of its thread may send, wait and flush
        self._began = 0.0  # when the last turn began
        self._asking: list[None] = []  # an item for each thread that asks for the turn
        self._adding = Lock()  # for the waiters of deliveries

    def serve(self) -> None:
        """Serve the reports that have arrived, unless another thread does."""
        if self._turn.acquire(blocking=False):
            try:
                self._call(self._client.poll, 0)
            finally:
                self._pass_on()

    def make_room(self, _: BufferError) -> None:
        """Serve reports, or wait until another thread has: each leaves room in the client's queue."""
        self._ask(self._client.poll, _FIRST_SECONDS if self.waiting else _POLL_SECONDS, 1)

    def drain(self, timeout: float | None) -> int:
        """Flush, for up to ``timeout`` seconds, and return the number of messages that are pending."""
        if self._is_released:
            return 0
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = max(_seconds_to(deadline), 0)
            pending = self._ask(self._client.flush, wait, wait)
            if not pending or (deadline is not None and time.monotonic() >= deadline):
                return pending

    def release(self) -> None:
        """Close a client that was made for this object; what is on its way is purged, and reported so."""
        if self._is_owned:
            self._is_owned, self._is_released = False, True
            self._ask(self._close, _POLL_SECONDS, 1)

    def _close(self, seconds: float) -> int:
        client: Any = self._client
        try:
            client.purge()
            return int(client.flush(seconds))
        finally:
            client.close()

    def wait(self, delivery: Delivery[Any], timeout: float | None) -> None:
        """Wait until a delivery is done. Raises `DeliveryError` if it is not within ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        waiter, longest = _Waiter(), _FIRST_SECONDS
        freed = when_freed(delivery)
        with self._adding:
            delivery._waiters = (*delivery._waiters, waiter)
        self.waiting[waiter] = None
        try:
            while not delivery.done:
                seconds = min(longest, _seconds_to(deadline))
                if seconds < 0:
                    reason = f"no delivery report for {delivery._name()} after {timeout} s"
                    raise DeliveryError(reason, [delivery])
                self._wait(waiter, delivery, seconds)
                longest = _POLL_SECONDS
        finally:
            del self.waiting[waiter], freed
            with self._adding:
                delivery._waiters = tuple(each for each in delivery._waiters if each is not waiter)
            self._pass_on()

    def _wait(self, waiter: _Waiter, delivery: Delivery[Any], seconds: float) -> None:
        """Poll in the turn, or wait until the thread is woken."""
        if (not self._asking or self._turn._is_owned()) and self._turn.acquire(blocking=False):  # type: ignore[attr-defined]
            served = self._call(self._client.poll, seconds)
            if not served and time.monotonic() - self._began < _PAUSE_SECONDS and not delivery.done:
                waiter.wait(min(seconds, _PAUSE_SECONDS))
        else:
            waiter.wait(seconds)
            if not delivery.done and time.monotonic() - self._began > 2 * _POLL_SECONDS:
                self._client.poll(0)

    def _ask(self, serve: Callable[[float], int], seconds: float, patience: float) -> int:
        """Serve reports by a function of the client, after waiting for the turn; return its result."""
        self._asking.append(None)
        try:
            has_turn = self._turn.acquire(timeout=patience)
            return self._call(serve, seconds) if has_turn else serve(seconds)
        finally:
            self._asking.pop()
            self._pass_on()

    def _call(self, serve: Callable[[float], int], seconds: float) -> int:
        """Serve reports in the turn, which ends with it."""
        self._began = time.monotonic()
        try:
            return serve(seconds)
        finally:
            self._turn.release()

    def _pass_on(self) -> None:
        """Wake one of the threads that wait, to take the turn if it is free."""
        with suppress(RuntimeError, StopIteration):  # another thread has changed the set, and passes on
            if self.waiting:
                next(iter(self.waiting)).set_result(None)


def _seconds_to(deadline: float | None) -> float:
    return _POLL_SECONDS if deadline is None else min(_POLL_SECONDS, deadline - time.monotonic())
