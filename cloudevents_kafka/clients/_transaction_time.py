"""The time of a transaction: when its batch must end, and whether the broker may have aborted it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cloudevents_kafka.record import Record

DEFAULT_TIMEOUT: Final = 60.0
"""Kafka's default of ``transaction.timeout.ms``, in seconds."""

_SHORTEST_TIMEOUT: Final = 1.0  # the shortest time-out that a client accepts
# The handler's share of the time-out: deliveries, the commit and a slow record need the remaining time.
_SHARE: Final = 0.1


class TransactionTime:
    """Measures the time since a transaction began, and stores which record took the longest to handle.

    ``timeout`` is ``transaction.timeout.ms`` in seconds, or None if the client does not show this setting.
    After ``max_seconds``, by default a tenth of ``timeout``, no further record is passed to the handler.
    """

    def __init__(self, timeout: float | None, max_seconds: float | None) -> None:
        for name, value in (("transaction_timeout", timeout), ("max_seconds", max_seconds)):
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be more than 0 seconds, or None, got {value!r}")
        self._timeout = timeout
        self._limit = DEFAULT_TIMEOUT if timeout is None else timeout
        self._max_seconds = self._limit * _SHARE if max_seconds is None else max_seconds
        self._began: float | None = None
        self._slowest: tuple[float, Record | None] = (0.0, None)

    def begin(self) -> None:
        """Begin to measure a transaction."""
        self._began = time.monotonic()
        self._slowest = (0.0, None)

    @contextmanager
    def measured(self, record: Record) -> Iterator[None]:
        """Measure how long the handling of a record takes. Yields once, while the record is handled."""
        began = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - began
            if seconds > self._slowest[0]:
                self._slowest = (seconds, record)

    @property
    def is_over(self) -> bool:
        """Whether ``max_seconds`` of the transaction have passed, so that no further record is handled."""
        return self._seconds >= self._max_seconds

    @property
    def _seconds(self) -> float:
        return 0.0 if self._began is None else time.monotonic() - self._began

    def find_slow_record(self) -> str | None:
        """Return advice if one record alone took as long as a transaction may be open, else None."""
        seconds, record = self._slowest
        if record is None or seconds < self._limit:
            return None
        return f"{record.where} alone took {seconds:.1f} s, but {self._setting}: {_SLOW_ADVICE}"

    def explain_end(self) -> tuple[str, str] | None:
        """Return two texts: why the broker has ended a transaction, and what to do.

        The result is None if the transaction was not open long enough to time out. In this case, another
        process with the same ``transactional.id`` has ended the transaction.
        """
        seconds = self._seconds
        if seconds >= self._limit:
            return f"the broker timed the transaction out: {self._describe(seconds)}", self._advice
        if self._timeout is None and seconds > max(self._max_seconds, _SHORTEST_TIMEOUT):
            what = f"the broker has probably timed the transaction out: {self._describe(seconds)}"
            other = "if this setting is longer, start each process with its own transactional.id"
            return what, f"{self._advice}; {other}"
        return None

    @property
    def may_have_timed_out(self) -> bool:
        """Whether ``transaction.timeout.ms`` is unknown, and the broker may have ended the transaction."""
        return self._timeout is None and self._seconds >= _SHORTEST_TIMEOUT

    @property
    def _setting(self) -> str:
        known = f"{self._limit:g} s" if self._timeout is not None else f"{self._limit:g} s by default"
        return f"transaction.timeout.ms is {known}"

    def _describe(self, seconds: float) -> str:
        longest, record = self._slowest
        of_which = "" if record is None else f", {longest:.1f} s of them for {record.where}"
        return f"it was open for {seconds:.1f} s{of_which}, and {self._setting}"

    @property
    def _advice(self) -> str:
        bound = self._limit if self._timeout is not None else self._max_seconds
        return _SLOW_ADVICE if self._slowest[0] >= bound else _BATCH_ADVICE


_SLOW_ADVICE: Final = (
    "set transaction.timeout.ms of the Producer above the time of the slowest record, and pass this setting, "
    "in seconds, as transaction_timeout, or make the handler faster"
)
_BATCH_ADVICE: Final = "pass max_seconds well below transaction.timeout.ms"
