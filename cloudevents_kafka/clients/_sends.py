"""`Sends`: what one call of a handler has sent by the producer of its run, and when all of it has arrived.

A context variable says whose sends they are, so that sends of other threads and tasks do not count; those of
tasks that the handler creates do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from weakref import ReferenceType, ref

from cloudevents_kafka.clients._deliveries import Delivery, OnDelivery

_current: Final[ContextVar[Sends | None]] = ContextVar("cloudevents_kafka.sends", default=None)


class Sends:
    """The messages that a handler has sent; ``arrived`` is called when all are reported after `end`.

    Without ``arrived`` they are only counted, and the producer keeps their failures.
    """

    def __init__(self, arrived: Callable[[], object] | None = None) -> None:
        self.error: Exception | None = None
        self.number = 0
        self._arrived = arrived
        self._pending: set[ReferenceType[_Sent]] = set()
        self._ended = False
        self._lock = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the sends of the block. Yields once."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def end(self) -> bool:
        """Return whether all is reported when the handler has returned; ``arrived`` is not called then."""
        with self._lock:
            self._ended = True
            return not self._pending

    def add(self, on_delivery: OnDelivery | None) -> OnDelivery | None:
        """Return the callback for another message."""
        self.number += 1
        if self._arrived is None:
            return on_delivery
        sent = _Sent(self, on_delivery)
        with self._lock:
            # A client that reports failures only frees the callback of a success without a call.
            self._pending.add(ref(sent, self._report))
        return sent

    def _report(self, sent: ReferenceType[_Sent]) -> None:
        with self._lock:
            self._pending.discard(sent)
            is_last = self._ended and not self._pending
        if is_last and self._arrived is not None:
            self._arrived()


class _Sent:
    """The callback of one message, which the client frees after its report."""

    __slots__ = ("__weakref__", "_on_delivery", "_sends")

    def __init__(self, sends: Sends, on_delivery: OnDelivery | None) -> None:
        self._sends = sends
        self._on_delivery = on_delivery

    def __call__(self, delivery: Delivery[Any]) -> None:
        self._sends.error = self._sends.error or delivery.error
        if self._on_delivery is not None:
            self._on_delivery(delivery)


def current_sends() -> Sends | None:
    """Return what counts the sends of the current handler."""
    return _current.get()


def count_send(on_delivery: OnDelivery | None) -> OnDelivery | None:
    """Return the callback for a message that is sent now: of the handler that sends it, if there is one."""
    sends = _current.get()
    return on_delivery if sends is None else sends.add(on_delivery)
