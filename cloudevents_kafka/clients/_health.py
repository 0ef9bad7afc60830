"""`ConsumerHealth`, the state of a consumer for a health check, and `Vitals`, which collects this state.

The polling thread writes to `Vitals`. Any thread may read `Vitals`. The values in `Vitals` are replaced as a
whole, or are copied in one step. Therefore, a thread that reads `Vitals` waits neither for a lock nor for a
call of the client.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from cloudevents_kafka.clients._places import PartitionName
from cloudevents_kafka.clients._protocols import suppress_client_errors

_ASK_SECONDS: Final = 1.0  # between two requests for the assigned partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHealth:
    """The state of a consumer, as `EventConsumer.health` returns it.

    ``seconds_since_poll`` is the time since the last poll of the client, or since the creation of the
    consumer if there was no poll. ``records_in_work`` is the number of records that the handlers of `run` or
    of a processor are handling now. ``seconds_in_work`` is the time since the first of these records was
    passed to its handler, or 0.0 if ``records_in_work`` is 0. ``assignment`` lists the topic and the number
    of each assigned partition. The list of partitions is as old as the last poll, or up to a second older.

    Examples:
        >>> from cloudevents_kafka import EventConsumer
        >>> with EventConsumer(consumer) as events:
        ...     first, now = events.poll(), events.health()
        >>> now.records_in_work, now.assignment
        (0, (('orders', 0),))
    """

    seconds_since_poll: float
    records_in_work: int
    seconds_in_work: float
    assignment: tuple[PartitionName, ...]


class Vitals:
    """The times and partitions that a loop stores; ``in_work`` maps a record to the start of its handler."""

    def __init__(self) -> None:
        self.in_work: dict[Any, float] = {}
        self._polled = time.monotonic()
        self._asked = -math.inf
        self._assigned: frozenset[PartitionName] = frozenset()

    def health(self) -> ConsumerHealth:
        """Return the state of the consumer; any thread may call this method."""
        began, polled, now = self.in_work.copy().values(), self._polled, time.monotonic()
        return ConsumerHealth(
            seconds_since_poll=now - polled,
            records_in_work=len(began),
            seconds_in_work=now - min(began, default=now),
            assignment=tuple(sorted(self._assigned)),
        )

    @property
    def assigned(self) -> frozenset[PartitionName]:
        """The partitions that the client had when it was last asked for its assigned partitions."""
        return self._assigned

    def note_poll(self, client: Any) -> frozenset[PartitionName] | None:
        """Remember that the client was polled; return the partitions that were taken from it.

        The result is None if the client was asked for its partitions less than a second ago.
        """
        self._polled = now = time.monotonic()
        if now - self._asked < _ASK_SECONDS:
            return None
        self._asked = now
        ask = getattr(client, "assignment", None)
        if ask is None:  # a client of a user's class
            return frozenset()
        before = self._assigned
        with suppress_client_errors(), suppress(RuntimeError):  # another thread may close the client
            self._assigned = frozenset((place.topic, place.partition) for place in ask())
        return before - self._assigned

    def note_rebalance(self, gone: Iterable[PartitionName] = ()) -> None:
        """Drop revoked partitions; after the next poll, ask the client for its partitions again."""
        self._assigned -= frozenset(gone)
        self._asked = -math.inf

    def note_close(self) -> frozenset[PartitionName]:
        """Remember that the client is closed; return the partitions that it had."""
        gone, self._assigned = self._assigned, frozenset()
        return gone

    @contextmanager
    def working(self, records: int) -> Iterator[None]:
        """Until the block ends, count this number of records as being handled. Yields once."""
        self.in_work = dict.fromkeys(range(records), time.monotonic())
        try:
            yield
        finally:
            self.in_work = {}
