"""`Observer`, the methods that a client calls while it works, and `Notice`, what it says of one record.

The law, which `calls` keeps and ``tests/observing/test_observers.py`` tests by random histories:

1. After each `Observer.sending` either `Observer.delivered` or `Observer.failed` is called, once, with the
   record that `sending` has got, even if the client only frees the message.
2. Each record that a client returns is in one call of `Observer.received`. In a run it ends with its handler,
   or in one call of `Observer.skipped` or `Observer.dead_lettered`; each further try has one of
   `Observer.retried`.
3. What an observer raises changes nothing but the log: not what a client returns, raises or sends.
4. An observer changes no event: the headers that it adds replace those with the same names, of which a record
   has each once from then on, but never those of an attribute or of the content type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.errors import DecodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import HeaderInput, Record


class Notice(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What has happened to one record, or to the offset of one partition.

    ``offset`` is that of the record, or the one that was committed. ``record`` and ``event`` are None if they
    are not known. ``error`` is an exception, or the client's error of a delivery. ``attempt`` is the number
    of the try. ``pulled`` is whether the program polls by itself, and not a run.

    ``seconds`` are those from `Observer.sending` to the report; of reading all records that were returned
    together; until another try; from reading to the end, if that is known; or of the call that commits.

    Examples:
        >>> from cloudevents_kafka import Record
        >>> from cloudevents_kafka.observing import Notice
        >>> notice = Notice(topic="orders", partition=0, record=Record(value=b"9.50"))
        >>> notice.value_size, notice.size, notice.verdict
        (4, 73, None)
    """

    topic: str | None
    partition: int | None = None
    offset: int | None = None
    record: Record | None = None
    event: Event[Any] | None = None
    error: Any = None
    attempt: int = 0
    seconds: float | None = None
    pulled: bool = False
    end_of: Callable[[str | None, int | None], int | None] | None = None
    """The function of the client for `end`."""

    @property
    def end(self) -> int | None:
        """The offset after the last record of the partition, as far as the client knows it."""
        return None if self.end_of is None else self.end_of(self.topic, self.partition)

    @property
    def value_size(self) -> int:
        """The size of the value in bytes."""
        return 0 if self.record is None else len(self.record.value or b"")

    @property
    def size(self) -> int:
        """The size in bytes of key, value, headers and their frame; see `Record.wire_size`."""
        return 0 if self.record is None else self.record.wire_size()

    @property
    def verdict(self) -> str | None:
        """Why the record is not read as an event; None if it is, or if another error is the reason."""
        return self.error.verdict if isinstance(self.error, DecodeError) else None

    @property
    def clause(self) -> str | None:
        """The first clause that the record breaks, or None."""
        clauses = self.error.clauses if isinstance(self.error, DecodeError) else ()
        return next(iter(clauses), None)

    @property
    def error_name(self) -> str:
        """The name of the error: its verdict, the client's name for it, or its class; empty without one."""
        if self.error is None:
            return ""
        name = getattr(self.error, "name", None)
        return self.verdict or str(name() if callable(name) else type(self.error).__name__)


class Observer:
    """The methods that clients call; a subclass, or an object of any class, has those that it needs.

    `sending` and `handling` surround what they are about; the other methods are called after it. They are
    called where the work is done, in threads or on the event loop, so they must not wait, and several threads may
    call them at the same time. What they raise is logged, once for each kind, and stops nothing.

    Examples:
        >>> from cloudevents_kafka import Event, EventProducer
        >>> from cloudevents_kafka.observing import Notice, Observer
        >>> class Printer(Observer):
        ...     def delivered(self, notice: Notice) -> None:
        ...         print(notice.topic, notice.partition, notice.offset)
        >>> with EventProducer(producer, topic="orders", observers=[Printer()]) as events:
        ...     delivery = events.send(Event(id="1", source="/shop", type="order.placed"))
        orders 0 0
    """

    def sending(self, record: Record) -> HeaderInput:
        """Return headers to add to a record that a producer passes to its client now, or None."""

    def handling(self, item: Decoded | Undecodable, /) -> AbstractContextManager[object]:
        """Return a context manager around the handler of a run or an `EventProcessor`, or its coroutine.

        It gets the error of the handler, and cannot suppress it.
        """
        return nullcontext(item)

    def delivered(self, notice: Notice) -> None:
        """Note a record that a broker has; if it is in a transaction, that may be aborted later.

        A client that reports only failures says neither the partition nor the offset.
        """

    def failed(self, notice: Notice) -> None:
        """Note a record that was not delivered; ``error`` says why."""

    def received(self, notices: Sequence[Notice]) -> None:
        """Note the record, or the records of a batch, that a consumer returns."""

    def retried(self, notice: Notice) -> None:
        """Note a record that failed with ``error``, and is tried again after ``seconds``."""

    def skipped(self, notice: Notice) -> None:
        """Note a record that failed with ``error``, and is left out for good."""

    def dead_lettered(self, notice: Notice) -> None:
        """Note a record that failed with ``error``, and has become a dead letter."""

    def committed(self, notices: Sequence[Notice]) -> None:
        """Note offsets that were committed; by a run, which does not wait, they were passed to the client."""

    def revoked(self, notices: Sequence[Notice]) -> None:
        """Note partitions that go to another member of the group."""
