"""EventConsumer: reads events through the Kafka consumer that a user already has.

Each record comes as `Decoded` or `Undecodable`: one bad record never stops a loop.
Subscribing, seeking, pausing and committing are done on the wrapped consumer.

Iterating takes one record at a time from the client, so that what the client holds
for consumed, and would commit, is what the loop has seen and no more. `batches` is
faster, and there it is the whole batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from cloudevents_kafka._clients import Consumer, LibrdkafkaErrorCode, check_consumer
from cloudevents_kafka.binding import Decoded, ReverseKeyMapper, Undecodable, decode
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record

_TURN: Final = 0.5  # seconds the client may wait for a record before stop() is looked at


DataReader = Callable[[Event, Record], Any]
"""Gives the value of an event's data; the record has its headers and topic."""

ConsumerT = TypeVar("ConsumerT", bound=Consumer)


class EventConsumer(Generic[ConsumerT]):
    """Reads CloudEvents through ``consumer``, which stays the user's and reachable.

    ``strict`` raises the `DecodeError` of a bad record instead of giving it as
    `Undecodable`; ``lenient`` reads as `decode` does with it; ``reverse_key_mapper``
    makes of each event, and its record, the event that is wanted; ``data_reader`` makes
    of them what ``event.data`` is, when that is asked for (see `Event.read_with`).
    """

    def __init__(
        self,
        consumer: ConsumerT,
        *,
        strict: bool = False,
        lenient: bool = False,
        reverse_key_mapper: ReverseKeyMapper | None = None,
        data_reader: DataReader | None = None,
    ) -> None:
        check_consumer(consumer)
        self.consumer = consumer
        self._strict = strict
        self._lenient = lenient
        self._reverse_key_mapper = reverse_key_mapper
        self._data_reader = data_reader
        self._stopped = False
        self._waiting: list[Any] = []  # gathered, and not read yet

    def poll(self, timeout: float = 1.0) -> Decoded | Undecodable | None:
        """Read one record, or None where none came within ``timeout`` seconds.

        Raises `ConsumeError` for an error of the client that it does not mend by
        itself, and with ``strict`` the `DecodeError` of a bad record.
        """
        message = self._waiting.pop(0) if self._waiting else self.consumer.poll(timeout)
        if message is None or not _is_record(message):
            return None
        return self._read(message)

    def __iter__(self) -> Iterator[Decoded | Undecodable]:
        """Read records one by one, until `stop` or `close`."""
        return self.items()

    def items(self, *, idle_timeout: float | None = None) -> Iterator[Decoded | Undecodable]:
        """Read records one by one, until `stop`, `close`, or ``idle_timeout`` seconds without any."""
        turn = _TURN if idle_timeout is None else min(_TURN, idle_timeout)
        silent_since = time.monotonic()
        while not self._stopped:
            message = self._waiting.pop(0) if self._waiting else self.consumer.poll(turn)
            if message is not None and (message.error() is None or _is_record(message)):
                yield self._read(message)
                if idle_timeout is not None:
                    silent_since = time.monotonic()
            elif idle_timeout is not None and time.monotonic() - silent_since >= idle_timeout:
                return

    def batches(
        self, max_records: int = 100, timeout: float = _TURN, *, idle_timeout: float | None = None
    ) -> Iterator[list[Decoded | Undecodable]]:
        """Read records in lists, none empty, each gathered for at most ``timeout`` seconds.

        Ends as `items` does. Once a list is given, the client holds all of it for
        consumed: finish it before you commit, and do not seek in the midst of it. A
        hundred records fit into a processor's caches; with more, each takes longer.

        What is raised comes after the list of the records before it; those that were
        gathered behind it come with the next iteration, of whatever kind, so go on
        reading before you commit.
        """
        silent_since = time.monotonic()
        while not self._stopped:
            if not self._waiting:
                self._waiting += self.consumer.consume(max_records, timeout)
            batch = self._read_waiting()
            if batch:
                yield batch
                silent_since = time.monotonic()
            elif idle_timeout is not None and time.monotonic() - silent_since >= idle_timeout:
                return

    def _read_waiting(self) -> list[Decoded | Undecodable]:
        """Read all that waits; what fails stays for the next time if something stands before it."""
        batch: list[Decoded | Undecodable] = []
        waiting, number = self._waiting, 0
        try:
            for number, message in enumerate(waiting):  # noqa: B007  # told where it failed
                if message.error() is None or _is_record(message):
                    batch.append(self._read(message))
        except Exception:  # a function of the user's may raise anything
            if not batch:
                del waiting[: number + 1]
                raise
            del waiting[:number]
        else:
            waiting.clear()
        return batch

    def _read(self, message: Any) -> Decoded | Undecodable:
        item = decode(_record_of(message), lenient=self._lenient)
        if isinstance(item, Undecodable):
            if self._strict:
                raise item.error
        elif self._reverse_key_mapper is not None or self._data_reader is not None:
            return Decoded(self._wanted(item.event, item.record), item.record, item.tolerated)
        return item

    def _wanted(self, event: Event, record: Record) -> Event:
        if self._reverse_key_mapper is not None:
            event = self._reverse_key_mapper(event, record)
        reader = self._data_reader
        return event if reader is None else event.read_with(lambda event: reader(event, record))

    def stop(self) -> None:
        """End all iteration after the record at hand; safe from a signal handler or a thread."""
        self._stopped = True

    def close(self) -> None:
        """Stop, and close the wrapped consumer, so that its group knows at once."""
        self._stopped = True
        self.consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_record(message: Any) -> bool:
    """Tell a record from news; raises `ConsumeError` for an error that stays."""
    error = message.error()
    if error is None:
        return True
    if error.code() == LibrdkafkaErrorCode.PARTITION_EOF or (error.retriable() and not error.fatal()):
        return False
    partition = message.partition()
    where = (
        "" if message.topic() is None else f"{message.topic()}{f'[{partition}]' if partition >= 0 else ''}"
    )
    raise ConsumeError(error, where)


def _record_of(message: Any) -> Record:
    """Make a record as `Record.of` does, of a client's message, whose headers are its own already."""
    kind, timestamp = message.timestamp()
    return Record(
        key=message.key(),
        value=message.value(),
        headers=message.headers() or [],
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=timestamp if kind else None,
    )


class ConsumeError(CloudEventsKafkaError):
    """The client failed while fetching; ``error`` is what it said."""

    def __init__(self, error: object, where: str = "") -> None:
        super().__init__(error, where)
        self.error = error
        self.where = where

    def __str__(self) -> str:
        return f"{self.where + ': ' if self.where else ''}the consumer failed: {self.error}"
