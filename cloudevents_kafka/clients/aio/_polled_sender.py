"""`PolledSender`: sends through confluent-kafka's ``Producer``, which one thread polls."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from threading import Thread
from typing import Any, Final
from weakref import ReferenceType, ref

from cloudevents_kafka.clients._protocols import Producer
from cloudevents_kafka.clients.aio._sender import Sender

_POLL_SECONDS: Final = 0.1  # the longest wait within the client, which delays close()
_PAUSE_SECONDS: Final = 0.002  # between calls of a client that does not wait, such as a fake


class PolledSender(Sender):
    """Sends through a client whose ``poll`` calls the reports.

    The thread wakes the loop once for all reports of one call of ``poll``. Woken by the first of them,
    the loop would contend with the thread for Python's interpreter lock, and take over for each report.
    """

    def __init__(self, client: Producer, max_in_flight: int, *, is_owned: bool = False) -> None:
        super().__init__(max_in_flight)
        self._is_owned = is_owned  # made for this object
        self.produce = client.produce
        self._client: Any = client
        self._thread: Thread | None = None
        self._closed = False
        self._last_error = ""

    async def close(self) -> None:
        """End the thread, now or when the last record was reported, for which tasks may wait.

        A client that was made for this object is closed; what is on its way is purged, and reported so.
        """
        is_owned, self._closed = self._is_owned and not self._closed, True
        if is_owned:
            await asyncio.to_thread(self._client.purge)
        if self._thread is not None and (is_owned or not self.reports):
            await asyncio.to_thread(self._thread.join)
        if is_owned:
            await asyncio.to_thread(self._client.close)

    def serve(self) -> bool:
        """Wait for reports and wake the loop for them; return whether to go on. Run by the thread."""
        began = time.monotonic()
        try:
            # While somebody waits for all: flush() sends what waits for `linger.ms`.
            served = (self._client.flush if self._for_none else self._client.poll)(_POLL_SECONDS)
        except Exception as error:  # noqa: BLE001  # a callback of the user, such as error_cb, may raise any
            self._report_error(error)
            served = 0
        self.report_called(from_thread=True)
        if not served and time.monotonic() - began < _PAUSE_SECONDS:
            time.sleep(_PAUSE_SECONDS)
        return not self._closed or len(self.reports) > 0

    def _start(self) -> None:
        # The thread must not keep a sender that its user has forgotten.
        self._thread = Thread(target=_serve, args=(ref(self),), name="AsyncEventProducer", daemon=True)
        self._thread.start()

    def _report_error(self, error: Exception) -> None:
        time.sleep(_POLL_SECONDS)
        if self._loop is None or repr(error) == self._last_error:
            return  # a closed client raises the same error each time
        self._last_error = repr(error)
        context = {"message": "polling the Kafka producer has failed", "exception": error}
        self._loop.call_soon_threadsafe(self._loop.call_exception_handler, context)


def _serve(reference: ReferenceType[PolledSender]) -> None:
    """Serve a sender until it is closed or freed, or its loop is closed."""
    with suppress(RuntimeError):  # the loop is closed
        while (sender := reference()) is not None and sender.serve():
            del sender
