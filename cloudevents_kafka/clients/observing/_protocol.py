"""`Observer`, whose methods a client calls, and `Notice`, which describes one record to these methods.

The following rules apply to all calls of an observer's methods:

1. After each call of ``sending``, either ``delivered`` or ``failed`` is called once for the same record.
2. For each record that a consumer returns, ``received`` is called once. In a run, the last call about a
   record is the end of ``handling``, or a call of ``skipped`` or ``dead_lettered``. ``retried`` is called
   before each further try to handle the record.
3. If a method of an observer raises an error, the error is logged; the client returns, raises and sends the
   same as without the error.
4. For each partition that was assigned to a consumer, ``revoked`` is called once: when the partition is
   revoked or lost, when the client finds that the partition is not assigned any more, or at ``close``. After
   the call of ``revoked``, no further method is called for a record or a commit of the partition. If a run
   has its own observers, ``revoked`` is also called for the observers of the last run.
5. ``reached`` is called for a partition only when the consumer has no further record of the partition to
   return at that moment.
6. A header that an observer adds replaces all headers with the same name. An observer must not add a header
   whose name begins with ``ce_`` or is ``content-type``: these are the event's own headers.
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
    """Describes what has happened to one record, or to the offset of one partition; unknown fields are None.

    ``group`` is the id of the consumer's group, and ``consumer`` is the number of the consumer in this
    process. ``offset`` is the offset of the record, or the committed offset. ``end`` is the offset after the
    last record of the partition, or None if the client does not know this offset. ``size`` is
    `Record.wire_size`, and ``value_size`` is the size of the value, in bytes. ``attempt`` is the number of
    the current try, from 1.

    ``error`` is an exception, or the client's error for a failed delivery. ``error_name`` is a name for the
    error: the verdict of a `DecodeError`, such as ``not-an-event``, or the client's name for the error, or
    the name of the error's class. If the error is a `DecodeError`, ``verdict`` is its verdict, and ``clause``
    is the first clause of the specification that the record breaks.

    ``seconds`` is a duration; the called method determines which duration. For ``delivered`` and ``failed``,
    ``seconds`` is the time from ``sending`` to the delivery report. For ``received``, ``seconds`` is the time
    in which all records that are returned together were read. For ``retried``, ``seconds`` is the time until
    the next try. For ``skipped`` and ``dead_lettered``, ``seconds`` is the time since the record was read.
    For ``committed``, ``seconds`` is the duration of the call that commits.

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
    """The base class of observers; a subclass overrides the methods whose calls it wants to observe.

    Clients call the methods in their threads or on the event loop, so no method may wait. If a method raises
    an error, the error is logged, once for each class of errors, and is then ignored.

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
        """Return None, or headers to add to a record before the record is passed to the client.

        The returned headers replace headers of the record that have the same names. A returned
        ``traceparent`` also replaces each ``tracestate`` of the record.
        """

    def handling(self, item: Decoded | Undecodable, /) -> AbstractContextManager[object]:
        """Return a context manager; the handler of a record runs in the `with` block of this context manager.

        The context manager cannot suppress an error of the handler.
        """
        return nullcontext(item)

    def delivered(self, notice: Notice) -> None:
        """Observe that a broker has stored a record, perhaps in a transaction that is aborted later."""

    def failed(self, notice: Notice) -> None:
        """Observe that a record was not delivered."""

    def received(self, notices: Sequence[Notice]) -> None:
        """Observe a record that a consumer returns, or all records of a batch that it returns."""

    def retried(self, notice: Notice) -> None:
        """Observe that a record has failed and is tried again."""

    def skipped(self, notice: Notice) -> None:
        """Observe that a record has failed and is skipped."""

    def dead_lettered(self, notice: Notice) -> None:
        """Observe that a record has failed and was sent as a dead letter."""

    def committed(self, notices: Sequence[Notice]) -> None:
        """Observe offsets that were committed, or that a client has begun to commit asynchronously."""

    def reached(self, notices: Sequence[Notice]) -> None:
        """Observe, about once a second, from which offset of each partition the client reads next.

        The consumer has already returned all records of the partition whose offsets are lower than the next
        offset. The offset directly before the next offset may belong to a transaction marker, not to a
        record.
        """

    def revoked(self, notices: Sequence[Notice]) -> None:
        """Observe that partitions are no longer assigned to the consumer.

        Either the consumer was closed, or the partitions were assigned to another member of the group.
        """
