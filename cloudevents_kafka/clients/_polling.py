"""`Polling`: the shell of deliveries for threads, of which one at a time serves the client's reports.

Who polls, and who wakes whom, is the law of `primitives.turns`; a report wakes all threads that wait for its
delivery, at once. Its random histories are in `tests/clients/test_polling.py`.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Any, Final

from cloudevents_kafka.clients._deliveries import Deliveries, Delivery, DeliveryError, when_freed
from cloudevents_kafka.clients._protocols import Producer
from cloudevents_kafka.primitives.turns import SECONDS, SHORT_SECONDS, Turns, Waiter, seconds_to

_ADDING: Final = Lock()  # for the waiters of a delivery


class Polling:
    """Waits for deliveries by polling the client, or for the thread that does.

    ``is_owned`` is whether the client was made for this object.
    """

    def __init__(self, client: Producer, *, is_owned: bool) -> None:
        self.deliveries: Deliveries[Delivery[Any]] = Deliveries(Delivery, self)
        self.deliveries.wakes_at_once = True
        self.turns = Turns()
        self._client: Any = client
        self._is_owned = is_owned

    def make_room(self, _: BufferError) -> None:
        """Serve delivery reports, each of which leaves room in the client's queue."""
        self.turns.ask(self._client.poll, SHORT_SECONDS if self.turns.waiting else SECONDS, 1)

    def wait(self, delivery: Delivery[Any], timeout: float | None) -> None:
        """Wait until a delivery is done. Raises `DeliveryError` if it is not within ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        waiter, freed = Waiter(), when_freed(delivery)
        with _ADDING:
            delivery._waiters = (*delivery._waiters, waiter)
        try:
            if not self.turns.wait(waiter, self._client.poll, lambda: delivery.done, deadline):
                raise DeliveryError(
                    f"no delivery report for {delivery._name()} after {timeout} s", [delivery]
                )
        finally:
            del freed
            with _ADDING:
                delivery._waiters = tuple(each for each in delivery._waiters if each is not waiter)

    def drain(self, timeout: float | None) -> int:
        """Flush, for up to ``timeout`` seconds, and return the number of messages that are pending."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = max(seconds_to(deadline), 0)
            pending = self.turns.ask(self._client.flush, wait, wait)
            if not pending or (deadline is not None and time.monotonic() >= deadline):
                return pending

    def release(self) -> None:
        """Close a client that was made for this object; what is on its way is purged, and reported so."""
        if self._is_owned:
            self._is_owned = False
            self.turns.ask(self._close, SECONDS, 1)

    def _close(self, seconds: float) -> int:
        try:
            self._client.purge()
            return int(self._client.flush(seconds))
        finally:
            self._client.close()
            self._client = _Closed


class _Closed:
    """A client that has nothing to report."""

    poll = flush = staticmethod(lambda _: 0)
