"""`Polling`: waits for deliveries in programs with threads. Meanwhile, a `PollingThread` polls the client.

The rules:

1. While a message is not reported yet, one thread at a time polls the client. The thread that polls has the
   lock ``turn``. It may be the `PollingThread`, a thread that waits for a delivery, or a thread that sends.
   The `PollingThread` ends when all messages are reported and no further report has arrived for a moment.
2. A delivery report marks its delivery as done and wakes the threads that wait for this delivery. The report
   also queues the callbacks of the user, which are called after the client call has returned; see
   `_callbacks`.
3. If a message has left the client without a delivery report, no report will arrive: waiting for its delivery
   raises an error.
4. Threads of the user make no client calls that may hang. There are three exceptions: ``produce``, short
   polls, and short calls of ``flush`` during a flush without a time limit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any, Final, TypeVar

from cloudevents_kafka.clients._deliveries import Deliveries, Delivery, DeliveryError, Ended, is_closed
from cloudevents_kafka.clients._polling_thread import SECONDS, SHORT_SECONDS, PollingThread
from cloudevents_kafka.clients._protocols import Producer

T = TypeVar("T")
_PAUSE_SECONDS: Final = 0.05  # after an error of a client, which it may raise again
_CLOSE_SECONDS: Final = 5.0  # for a client that may hang
_log: Final = logging.getLogger("cloudevents_kafka.deliveries")


class Polling:
    """Waits for deliveries, while a thread polls the client for their reports.

    ``is_owned`` says whether this library has created the client, so that this object must close it.
    """

    def __init__(self, client: Producer, *, is_owned: bool) -> None:
        self.deliveries: Deliveries[Delivery[Any]] = Deliveries(Delivery)
        self.deliveries.wakes_at_once = True
        self.deliveries.ended = Ended.of(client)
        self.thread = PollingThread(self, "EventProducer")
        self._client: Any = client
        self._is_owned = is_owned
        self._adding = threading.Lock()  # protects `_waiting` and the waiters of a delivery
        self._waiting = 0  # the number of threads that wait
        self._callbacks = self.deliveries.callbacks
        self._pending, self._due = self.deliveries.pending, self._callbacks.due

    def poller(self) -> Callable[[float], int]:
        """Return the client's ``poll``."""
        poll: Callable[[float], int] = self._client.poll
        return poll

    def serve(self, error: BaseException | None, *, is_idle: bool) -> None:
        """Call the queued callbacks after a poll, and log the error that the poll has raised."""
        is_closing = self.deliveries.closed and isinstance(error, RuntimeError)  # `len` raises it later
        if error is not None and not is_closing:
            self._note_error(error)
        if is_idle:
            self.deliveries.find_lost(self._client)
        self._callbacks.serve()

    def is_busy(self) -> bool:
        """Return whether a sent message waits for its report, or a callback of the user is queued."""
        return bool(self.deliveries.pending or self._callbacks.due)

    def sent(self) -> None:
        """Process the delivery reports that have arrived; start the thread that polls for more reports."""
        thread = self.thread
        if not thread.turn.acquire(False):  # an argument by name takes twice as long
            thread.start()  # the thread that has the lock processes the reports
            return
        thread.holder = get_ident()
        try:
            self._client.poll(0)
        except Exception as error:  # noqa: BLE001  # a callback of the user, such as error_cb, may raise any error
            self._note_error(error)
        finally:
            thread.holder = None
            thread.turn.release()
        if self._due:
            self._callbacks.serve()
        if self._pending:
            thread.was_polled = True
            if thread.thread is None:
                thread.start()

    def make_room(self, error: BufferError) -> None:
        """Process delivery reports, because each report frees space in the client's queue.

        If a callback of the client calls this method, ``error`` is raised, because no report can be processed
        until the callback has returned.
        """
        if self.thread.holder == get_ident():
            raise error
        self.thread.start()
        with self.thread.turn:
            self.thread.holder = get_ident()
            try:
                self._poll(SECONDS)
            finally:
                self.thread.holder = None
        self._callbacks.serve()

    def wait(self, delivery: Delivery[Any], timeout: float | None) -> None:
        """Wait until a delivery is done and its callback has returned.

        Raises `DeliveryError` if the delivery is not done within ``timeout`` seconds.
        """
        self._check_outside("result")
        deadline = None if timeout is None else time.monotonic() + timeout
        waiter = Waiter()
        with self._adding:
            self._waiting += 1
            delivery._waiters = (*delivery._waiters, waiter)
        try:
            while not delivery.done:
                self.deliveries.check_process()
                left = SECONDS if deadline is None else min(SECONDS, deadline - time.monotonic())
                if left <= 0:
                    raise DeliveryError(
                        f"no delivery report for {delivery._name()} after {timeout} s", [delivery]
                    )
                self._await(waiter, left)
        finally:
            with self._adding:
                self._waiting -= 1
                delivery._waiters = tuple(each for each in delivery._waiters if each is not waiter)
        if delivery._is_called_back:
            self._callbacks.finish(deadline)
        else:
            self._callbacks.serve()

    def _check_outside(self, name: str) -> None:
        """Raise `RuntimeError` if a callback of the client makes this call, which would end the process."""
        if self.thread.holder == get_ident():
            raise RuntimeError(
                f"{name} must not be called in a callback of the client, such as error_cb; "
                "call it in on_delivery, or in another thread"
            )

    def _await(self, waiter: Waiter, seconds: float) -> None:
        """Poll the client, or wait until the thread that is polling wakes the current thread."""
        if not self.thread.turn.acquire(blocking=False):
            self.thread.start()
            waiter.wait(seconds)
            return
        self.thread.holder = get_ident()
        began, served = time.monotonic(), 1
        try:
            if not waiter.done():  # it may be done by now
                served = self._poll(seconds)
        finally:
            self.thread.holder = None
            self.thread.turn.release()
            if self._waiting > 1:
                self.thread.ask()
        if not served and time.monotonic() - began < SHORT_SECONDS:  # a fake does not wait
            waiter.wait(min(seconds, SHORT_SECONDS))

    def _poll(self, seconds: float) -> int:
        """Return the result of the client's ``poll``; if ``poll`` raises an error, log it and return 0."""
        try:
            served: int = self._client.poll(seconds)
        except Exception as error:  # noqa: BLE001  # a callback of the user, such as error_cb, may raise any error
            self._note_error(error)
            return 0
        return served

    def _note_error(self, error: BaseException) -> None:
        """Log an error of the client, or of a callback such as ``error_cb``, unless the client is closed."""
        self.deliveries.note_error(error)
        if not is_closed(self._client):  # `find_lost` reports that a client is closed
            _log.error("polling the Kafka producer has failed: %s", error, exc_info=error)

    def drain(self, timeout: float | None) -> bool:
        """Flush the client for up to ``timeout`` seconds, and return whether the client's queue is empty."""
        self.deliveries.check_process()
        self._check_outside("flush")
        deadline = None if timeout is None else time.monotonic() + timeout
        is_empty = self._flush(deadline)
        self._callbacks.finish(deadline)
        return is_empty

    def _flush(self, deadline: float | None) -> bool:
        while True:
            left = SECONDS if deadline is None else max(0.0, min(SECONDS, deadline - time.monotonic()))
            is_empty = self._flush_for(left, is_bounded=deadline is not None)
            if is_empty:
                self.deliveries.find_lost(self._client)
            self._callbacks.serve()
            if is_empty or (deadline is not None and time.monotonic() >= deadline):
                return is_empty

    def _flush_for(self, seconds: float, *, is_bounded: bool) -> bool:
        """Flush the client for a limited time, even if the call hangs; return whether its queue is empty."""
        flush = partial(self._client.flush, seconds)
        try:
            return not (within(seconds + SECONDS, flush) if is_bounded else flush())
        except TimeoutError:
            return False
        except Exception as error:  # noqa: BLE001  # a callback of the user, such as error_cb, may raise any error
            self._note_error(error)
            if is_closed(self._client):
                return True
            time.sleep(_PAUSE_SECONDS)
            return not self.deliveries.pending

    def release(self) -> None:
        """Close a client that this object owns; purge its pending messages, and report them as lost."""
        if self._is_owned:
            self._is_owned = False
            close_client(self._client)
            self.deliveries.find_lost(self._client)
            self._callbacks.finish(time.monotonic() + _CLOSE_SECONDS)


class Waiter:
    """A waiting thread; the methods that wake it have the same names as the methods of a future."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def done(self) -> bool:
        """Return whether the thread was woken, but has not continued yet."""
        return not self._lock.locked()

    def set_result(self, _: None) -> None:
        """Wake the thread."""
        with suppress(RuntimeError):  # another thread has woken this thread, too
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` until the thread is woken; return whether it was woken."""
        return self._lock.acquire(timeout=seconds)


def within(seconds: float, call: Callable[[], T]) -> T:
    """Call a function in a daemon thread, and return its result; after ``seconds``, raise `TimeoutError`."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001  # it is raised below
            result.set_exception(error)

    threading.Thread(target=run, name="cloudevents_kafka.call", daemon=True).start()
    return result.result(seconds)


def close_client(client: Any) -> None:
    """Purge and close a client; if the client hangs, log a warning and do not wait any longer."""

    def close() -> None:
        with suppress(RuntimeError):  # it was closed already
            client.purge()
            client.flush(SECONDS)
            client.close()

    try:
        within(_CLOSE_SECONDS, close)
    except TimeoutError:
        _log.warning(
            "a Kafka producer must close within %g s, got no answer; it ends with the process", _CLOSE_SECONDS
        )
