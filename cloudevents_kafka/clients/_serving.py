"""`Serving`: keeps a consumer in its group while a processor waits for a handler or for brokers."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._gathered import Gathered, ends_of
from cloudevents_kafka.clients._places import Item, PartitionName, places_of
from cloudevents_kafka.clients._protocols import suppress_client_errors

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.consumer import EventConsumer

_DEFAULT_INTERVAL: Final = 300_000  # max.poll.interval.ms
_PATIENCE: Final = 1.0  # seconds before the first poll: a pause makes the client drop its fetched records
_LONG: Final = 2.0  # an unusually long time without a poll, in seconds
_EXPELLED: Final = (
    "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"
)  # fmt: skip


class Serving:
    """Polls a client, so that the client stays a member of its group.

    Records that `Serving` has polled are not lost: the next batch contains them.

    If a poll of `Serving` returns a record, `Serving` pauses the partition of this record until the next
    batch. So `Serving` polls at most one record of each partition.

    If a partition is revoked while a batch is handled, another member may commit the records of the batch, so
    this client must not seek back to these records. After a revocation, the client has no position in the
    partition until the partition is assigned again and a poll returns a record. `Serving` therefore checks
    the positions before each poll, because a new position after the poll could hide the revocation.
    """

    def __init__(
        self, events: EventConsumer[Any, Any], gathered: Gathered[Any], settings: Mapping[str, Any] | None
    ) -> None:
        self._events = events
        self._client = events.consumer
        self._gathered = gathered
        self._interval: object = (settings or {}).get("max.poll.interval.ms")
        self._paused: list[TopicPartition] = []
        self._batch: Sequence[Item] = ()
        self._ends: dict[PartitionName, int] | None = None  # of the batch, except in revoked partitions
        self._failure: Exception | None = None
        self._began = self._polled = time.monotonic()
        self._longest = 0.0  # seconds between two polls

    def begin(self) -> None:
        """Prepare for the next batch. Raises the error of an earlier `Serving.poll` that has failed."""
        if self._paused:
            self.end()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        self._began = self._polled = time.monotonic()
        self._longest = 0.0

    def hold(self, batch: Sequence[Item]) -> None:
        """Remember a batch that was just read, without calling the client."""
        self._batch, self._ends = batch, None

    def held(self) -> Collection[PartitionName]:
        """Return those partitions of the current batch that were not revoked since the batch was read."""
        if self._ends is None:
            self._ends = {(place.topic, place.partition): place.offset for place in ends_of(self._batch)}
        for place in self._client.position(places_of(self._ends)):
            name = place.topic, place.partition
            if place.offset < self._ends[name]:  # a transaction's marker moves the position further
                del self._ends[name]
        return self._ends

    def end(self) -> None:
        """Seek back to fetched records that the consumer has not returned; resume paused partitions.

        Another consumer that uses the same client then also reads the fetched records.
        """
        self._go_back()
        self._resume()

    def _go_back(self) -> None:
        if not self._gathered.waiting:
            return
        self._gathered.drop_moved()  # after a seek back or a revocation
        for place in self._gathered.starts():
            with suppress_client_errors():
                self._client.seek(place)
                self._gathered.discard([place])

    def _resume(self) -> None:
        paused, self._paused = self._paused, []
        for place in paused:
            with suppress_client_errors():  # the partition was revoked
                self._client.resume([place])

    def poll(self) -> None:
        """Poll the client; if this poll fails, `begin` raises the error after the current batch."""
        if time.monotonic() - self._began < _PATIENCE:
            return
        self._longest = self._seconds
        self._polled = time.monotonic()
        if self._failure is None:
            try:
                self._poll()
            except Exception as error:  # noqa: BLE001  # of the client, or a user's function in a rebalance
                self._failure = error

    def _poll(self) -> None:
        from confluent_kafka import TopicPartition

        self.held()
        message = self._client.poll(0)
        if message is not None:
            self._gathered.add((message,))
        self._events.note_poll(self._client)
        if message is not None and message.error() is None:
            place = TopicPartition(message.topic(), message.partition())
            self._client.pause([place])
            self._paused.append(place)
        self._events.raised.check()

    @property
    def _seconds(self) -> float:
        return max(self._longest, time.monotonic() - self._polled)

    def explain(self, name: str) -> str | None:
        """Return the reason if the group has expelled the member, or None if another error has occurred."""
        if name not in _EXPELLED or self._seconds < _LONG:
            return None
        known = self._interval is not None
        interval = float(str(self._interval if known else _DEFAULT_INTERVAL)) / 1000
        return (
            f"the group has expelled the member, which did not poll for {self._seconds:.1f} s, and "
            f"max.poll.interval.ms is {interval:g} s{'' if known else ' by default'}: raise this setting, or "
            "let other threads run while the handler runs"
        )
