"""`Gathered`: the messages that the client has returned, before the consumer returns them to the user.

The consumers for threads and for asyncio use the class `Gathered`. `Gathered` converts messages to records,
and knows the offset at which each partition continues. This module does no input or output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Generic

from cloudevents_kafka.clients._errors import (
    PARTITION_EOF,
    ConsumeError,
    OnError,
    is_record,
    poll_interval_of,
)
from cloudevents_kafka.clients._health import ConsumerHealth, Vitals
from cloudevents_kafka.clients._places import Item, PartitionName, places_of
from cloudevents_kafka.clients._protocols import (
    OnlyLoop,
    PolledMessage,
    add_observers,
    group_of,
    suppress_client_errors,
)
from cloudevents_kafka.clients._reading import ItemT_co, item_reader
from cloudevents_kafka.clients._settings import check_begun
from cloudevents_kafka.event import Event
from cloudevents_kafka.message_headers import headers_of
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.observing import Observer
    from cloudevents_kafka.clients.observing.calls import Observers

_numbers = count(1)  # of consumers


class Gathered(Generic[ItemT_co]):
    """The fetched messages, and a function that converts a message; ``waiting`` is never replaced."""

    def __init__(
        self,
        read_item: Callable[[Record], ItemT_co],
        on_error: OnError | None,
        client: Any,
        group: str | None,
    ) -> None:
        self.waiting: list[PolledMessage] = []
        self.read_item = read_item
        self._read = read_item
        self._client = client
        self.ends_by: Any = client
        self._batch: Callable[[], AbstractContextManager[object]] = nullcontext
        self.observers: Observers | None = None
        self.observers_of_run: Observers | None = None
        """The observers of the last run, and the observers of the consumer."""
        self.owner: dict[str, Any] = {"group": group, "consumer": next(_numbers)}
        self._on_error = on_error
        self.poll_interval: float | None = None
        """``max.poll.interval.ms`` in seconds, or None until the client has shown this setting."""
        self._ends: dict[tuple[str | None, int | None], TopicPartition] | None = None

    def observe(self, observers: Observers | None) -> None:
        """Call ``observers`` with each record that is returned from now on."""
        self.observers, self._read, self._batch = observers, self.read_item, nullcontext
        if observers is not None:
            observers.owner = self.owner
        if observers is not None and observers.see("received"):
            self._read = reading = observers.reading(self.read_item, self.ends_by)
            self._batch = reading.batch

    def ask_ends_by(self, client: Any) -> None:
        """Let observers use another object's ``get_watermark_offsets`` to get the ends of partitions."""
        self.ends_by = client
        self.observe(self.observers)

    @contextmanager
    def observed(self, observers: Observers | None) -> Iterator[None]:
        """Call ``observers`` during a run. Yields once."""
        before, self.observers_of_run = self.observers, observers
        self.observe(observers)
        try:
            yield
        finally:
            self.observe(before)

    def add(self, messages: Iterable[PolledMessage]) -> None:
        """Add messages that the client has returned."""
        self._ends = None
        self.waiting += messages

    def take(self) -> ItemT_co | None:
        """Return the next fetched record, or None if there is none."""
        waiting = self.waiting
        while waiting:
            message = waiting.pop(0)
            if message.error() is None or self.is_record(message):
                return self.read(message)
        return None

    def take_batch(self, max_records: int | None = None, *, keeps_failed: bool = False) -> list[ItemT_co]:
        """Return the fetched records before the next error; if the error comes first, raise this error.

        A record that cannot be read is dropped when its error is raised, unless ``keeps_failed`` is true.
        With ``keeps_failed``, such a record stays in the list ``waiting``.
        """
        with self._batch():
            return self._take_batch(max_records, keeps_failed=keeps_failed)

    def _take_batch(self, max_records: int | None, *, keeps_failed: bool) -> list[ItemT_co]:
        batch: list[ItemT_co] = []
        waiting, number, failed = self.waiting, 0, False
        try:
            for message in islice(waiting, max_records):
                error = message.error()
                if error is None:
                    batch.append(self.read(message))
                elif error.code() != PARTITION_EOF:
                    failed = True
                    break
                number += 1
        except Exception:  # a user's function may raise any error
            if not batch:
                del waiting[: number + (not keeps_failed)]
                raise
        del waiting[:number]
        if failed and waiting and not batch:
            self.is_record(waiting.pop(0))
        return batch

    def is_record(self, message: PolledMessage) -> bool:
        """Return whether a message is a record; raise `ConsumeError` if it is a final error instead."""
        self.poll_interval = poll_interval_of(message) or self.poll_interval
        return is_record(message, self._on_error)

    def bound_revocation(self, seconds: float | None) -> float:
        """Return how long to wait for the records of revoked partitions: at most ``seconds``.

        The group expels a member that has not polled for ``max.poll.interval.ms``. The client shows the value
        of this setting only after the member was expelled once.
        """
        longest = math.inf if self.poll_interval is None else self.poll_interval / 2
        return min(longest if seconds is None else seconds, longest)

    def read(self, message: PolledMessage) -> ItemT_co:
        """Return the record in a message; the message must not be an error."""
        kind, timestamp = message.timestamp()
        return self._read(
            Record(  # as `Record.of` does, but without copying the headers
                key=message.key(),
                value=message.value(),
                headers=headers_of(message),
                topic=message.topic(),
                partition=message.partition(),
                offset=message.offset(),
                timestamp=timestamp if kind else None,
            )
        )

    def discard(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Drop the fetched messages of ``partitions``, or all messages if ``partitions`` is None."""
        names = None if partitions is None else {(each.topic, each.partition) for each in partitions}
        self.waiting[:] = [
            message
            for message in self.waiting
            if not (names is None or (message.topic(), message.partition()) in names)
        ]

    def drop_moved(self) -> None:
        """Drop each message whose partition was revoked or moved by a seek, after the message was fetched.

        The client's position in a partition shows this: without a seek or a revocation, the position is the
        offset after the last fetched message.
        """
        position = getattr(self._client, "position", None)
        if position is None:  # only the client of confluent-kafka has positions
            return
        if self._ends is None:
            messages = [message for message in self.waiting if message.error() is None]
            last = {(message.topic(), message.partition()): message for message in messages}
            self._ends = {name: _place_of(message, 1) for name, message in last.items()}
        ends = self._ends
        places = position(list(ends.values()))
        # A transaction's marker moves the position further. After a seek, the position is unknown: below 0.
        self.discard([place for place in places if place.offset < ends[place.topic, place.partition].offset])

    def starts(self) -> list[TopicPartition]:
        """Return the offset of the first fetched message of each partition."""
        messages = [message for message in reversed(self.waiting) if message.error() is None]
        first = {(message.topic(), message.partition()): message for message in messages}
        return [_place_of(message) for message in first.values()]


def _place_of(message: PolledMessage, after: int = 0) -> TopicPartition:
    """Return the topic and partition of a message, and its offset plus ``after``; do not read headers."""
    from confluent_kafka import TopicPartition  # not imported without a client

    return TopicPartition(message.topic() or "", message.partition() or 0, (message.offset() or 0) + after)


class Readable(Generic[ItemT_co]):
    """The base class of the consumers for threads and for asyncio; it contains the messages and the state.

    The options of this class are the options of `EventConsumer`.
    """

    def __init__(
        self,
        client: Any,
        settings: Mapping[str, Any] | None,
        *,
        on_error: OnError | None = None,
        observers: Sequence[Observer] = (),
        **reading: Any,
    ) -> None:
        check_callbacks(on_error=on_error)
        self._settings = settings
        self.has_begun = settings is None
        """Whether reading may begin; a client made from settings needs topics or partitions first."""
        self._gathered: Gathered[ItemT_co] = Gathered(
            item_reader(**reading), on_error, client, group_of(settings, client)
        )
        self._gathered.observe(add_observers(None, observers))
        self._stopped = False
        self._closed = False
        self.vitals = Vitals()
        self.only_loop = OnlyLoop()
        """The run or processor that reads from this consumer; a second run or processor is refused."""
        self.is_subscribed = False
        """Whether `subscribe` was called; only then, revoked partitions are reported to `run`."""

    @property
    def is_passed(self) -> bool:
        """Whether the user passed a client to the consumer, and not settings."""
        return self._settings is None

    def check_open(self, what: str, *, goes_on: bool = False) -> None:
        """Raise `RuntimeError` if the consumer is closed.

        With ``goes_on``, also raise `RuntimeError` if the consumer was stopped.
        """
        if self._closed or (goes_on and self._stopped):
            state = "closed" if self._closed else "stopped"
            raise RuntimeError(f"{what} needs an open consumer, got a {state} consumer; make a new consumer")

    def check_begun(self, client: Any) -> None:
        """Raise `RuntimeError` if the client was made from settings and has not subscribed to a topic."""
        if not self.has_begun:
            check_begun(client)
            self.has_begun = True

    def health(self) -> ConsumerHealth:
        """Return the state of the consumer immediately, without a call of the Kafka client.

        Any thread may call this method.

        Examples:
            >>> from cloudevents_kafka import EventConsumer
            >>> events = EventConsumer(consumer)
            >>> events.health().seconds_since_poll < 60
            True
        """
        return self.vitals.health()

    def note_poll(self, client: Any, returned: Iterable[PolledMessage] = ()) -> None:
        """Store the time of a poll; ``returned`` contains the messages that the poll returned.

        This method is called by the thread that polls.
        """
        gone = self.vitals.note_poll(client)
        if gone is None:
            return
        if gone:
            self._note_gone(gone)
        if (observers := self._observers) is not None and observers.see("reached"):
            self._note_reached(observers, returned)

    def _note_reached(self, observers: Observers, returned: Iterable[PolledMessage]) -> None:
        """Call observers with the position of each partition that has no more fetched records."""
        ends_by = self._gathered.ends_by
        if (position := getattr(ends_by, "position", None)) is None:  # a client of a user's class
            return
        more = {(each.topic(), each.partition()) for each in (*returned, *self._gathered.waiting)}
        with suppress_client_errors(), suppress(RuntimeError):  # another thread may close the client
            places = position(places_of(self.vitals.assigned - more))
            observers.of_places("reached", [place for place in places if place.offset >= 0], ends_by)

    def note_revoked(self, places: Iterable[TopicPartition]) -> None:
        """Remember that partitions were revoked, because they now belong to another member of the group."""
        names = {(place.topic, place.partition) for place in places}
        self.vitals.note_rebalance(names)
        self._note_gone(names)

    def note_close(self) -> None:
        """Remember that the client is closed, and report all its partitions to observers as revoked."""
        self._note_gone(self.vitals.note_close())

    @property
    def _observers(self) -> Observers | None:
        return self._gathered.observers_of_run or self._gathered.observers

    def _note_gone(self, names: Iterable[PartitionName]) -> None:
        if (observers := self._observers) is not None:
            observers.of_places("revoked", places_of(names), self._gathered.ends_by)

    @property
    def read_item(self) -> Callable[[Record], Any]:
        """A function that returns the item of a record, according to the consumer's options."""
        return self._gathered.read_item


def start_of(place: Item | Record | TopicPartition) -> TopicPartition:
    """Return the ``TopicPartition`` to which a consumer seeks so that it reads a record again.

    A ``TopicPartition`` is returned unchanged. Raises `TypeError` if the object is not an item, a record or a
    ``TopicPartition``.
    """
    record = place.record if isinstance(place, Item) else place
    if isinstance(record, Record):
        start = record.position
        start.offset -= 1
        return start
    if isinstance(getattr(place, "offset", None), int):
        return record
    raise TypeError(
        f"seek() must get an item, its record or a TopicPartition, got {_kind_of(place)}; pass the item that "
        "was read, or TopicPartition(topic, partition, offset)"
    )


def ends_of(done: Item | Record | Iterable[Item | Record]) -> list[TopicPartition]:
    """Return the offset after a record or, for several records, after the last record of each partition.

    Raises `TypeError` if an object is neither an item nor a record.
    """
    is_one = isinstance(done, Item | Record | Event | str) or not isinstance(done, Iterable)
    several: Iterable[Any] = (done,) if is_one else done  # type: ignore[assignment]
    last: dict[tuple[str | None, int | None], Record] = {}
    for each in several:
        record = each.record if isinstance(each, Item) else each
        if not isinstance(record, Record):
            raise TypeError(
                f"commit() must get items, or their records, got {_kind_of(each)}; pass the item that was "
                "read, or commit a TopicPartition with the client"
            )
        name = record.topic, record.partition
        if name not in last or record.next_offset > last[name].next_offset:
            last[name] = record
    return [record.position for record in last.values()]


def _kind_of(value: object) -> str:
    return repr(value) if value is None or isinstance(value, int | str) else type(value).__name__


def check_committed(places: Iterable[TopicPartition]) -> None:
    """Raise `ConsumeError` if the offset of a partition was not committed."""
    for place in places:
        if getattr(place, "error", None) is not None:
            raise ConsumeError(place.error, f"{place.topic}[{place.partition}]")
