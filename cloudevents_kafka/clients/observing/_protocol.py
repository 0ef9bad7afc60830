"""`Observer`, whose methods a client calls while it works, and `Notice`, their argument about one record.

These rules are true for all calls:

1. After each call of ``sending``, either ``delivered`` or ``failed`` is called once, with the same record.
2. Each record that a consumer returns is in one call of ``received``. In a run, its last call is the end of
  ``handling``, ``skipped`` or ``dead_lettered``; ``retried`` is called before each further try.
3. An error of an observer is logged. It does not change what a client returns, raises or sends.
4. Each partition that a consumer had is in one call of ``revoked``: when the partition is revoked or lost,
  when it turns out not to be assigned any more, or at ``close``. No record or commit of the partition
  follows. The observers of the last run are called, too.
5. An offset in ``reached`` is that of a partition for which the client has no further records to return.
6. Headers of an observer replace headers with the same names. They must not have the names of the event's own
  headers: attributes and content type.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import HeaderInput, Record


class Notice(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What has happened to one record, or to the offset of one partition. Unknown fields are None.

    ``group`` is the id of the consumer's group, and ``consumer`` its number in this process. ``offset``
    is that of the record, or the one that was committed, and ``end`` the one after the last record of
    the partition, as far as the client knows it. ``size`` is `Record.wire_size`, and ``value_size`` the
    size of the value, in bytes. ``attempt`` is the number of the try.

    ``error`` is an exception, or the client's error of a delivery; ``error_name`` is its verdict, the
    client's name for it, or its class. ``verdict`` and ``clause`` (the first broken one) are those of a
    `DecodeError`.

    ``seconds`` is a duration, which depends on the method: from ``sending`` to the report; of reading the
    records that are returned together; until the next try; from reading a record to its end in a run; or of
    the call that commits.

    Examples:
        >>> from cloudevents_kafka.clients.observing import Notice
        >>> Notice(topic="orders", partition=0, offset=7).error_name
        ''
    """

    topic: str | None
    group: str | None = None
    consumer: int | None = None
    partition: int | None = None
    offset: int | None = None
    end: int | None = None
    record: Record | None = None
    event: Event[Any] | None = None
    size: int = 0
    value_size: int = 0
    seconds: float | None = None
    attempt: int = 0
    error: Any = None
    error_name: str = ""
    verdict: str | None = None
    clause: str | None = None


class Observer:
    """The base class of observers; a subclass overrides the methods that it needs.

    Several threads, or the event loop, call the methods while they work, so the methods must not wait. An
    error in a method is logged, once for each kind of error, and has no other effect.

    Examples:
        >>> from cloudevents_kafka import Event, EventProducer
        >>> from cloudevents_kafka.clients.observing import Notice, Observer
        >>> class Printer(Observer):
        ...     def delivered(self, notice: Notice) -> None:
        ...         print(notice.topic, notice.partition, notice.offset)
        >>> with EventProducer(producer, topic="orders", observers=[Printer()]) as events:
        ...     delivery = events.send(Event(id="1", source="/shop", type="order.placed"))
        orders 0 0
    """

    def sending(self, record: Record) -> HeaderInput:
        """Return headers to add to a record that is passed to the client now, or None."""

    def handling(self, item: Decoded | Undecodable, /) -> AbstractContextManager[object]:
        """Return a context manager around the handler of a record; it cannot suppress an error."""
        return nullcontext(item)

    def delivered(self, notice: Notice) -> None:
        """Observe that a broker has a record, perhaps in a transaction that is aborted later."""

    def failed(self, notice: Notice) -> None:
        """Observe that a record was not delivered."""

    def received(self, notices: Sequence[Notice]) -> None:
        """Observe the record, or the records of a batch, that a consumer returns."""

    def retried(self, notice: Notice) -> None:
        """Observe that a record has failed and is tried again."""

    def skipped(self, notice: Notice) -> None:
        """Observe that a record has failed and is skipped."""

    def dead_lettered(self, notice: Notice) -> None:
        """Observe that a record has failed and was sent as a dead letter."""

    def committed(self, notices: Sequence[Notice]) -> None:
        """Observe offsets that were committed, or passed to a client that commits them asynchronously."""

    def reached(self, notices: Sequence[Notice]) -> None:
        """Observe the next offsets of the client, about once a second.

        The consumer has returned all records before these offsets, which may be after markers of
        transactions.
        """

    def revoked(self, notices: Sequence[Notice]) -> None:
        """Observe that the consumer no longer has partitions: it is closed, or another member has them."""
