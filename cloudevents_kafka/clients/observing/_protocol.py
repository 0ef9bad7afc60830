"""`Observer`, whose methods a client calls, and `Notice`, which describes one record to these methods.

The following rules apply to all calls of an observer:

1. After each call of ``sending``, either ``delivered`` or ``failed`` is called once for the same record.
2. Each record that a consumer returns is passed to one call of ``received``. In a run, the last call for a
   record is the end of ``handling``, a call of ``skipped``, or a call of ``dead_lettered``. ``retried`` is
   called before each further try of the record.
3. An error of an observer is logged, and does not change what a client returns, raises or sends.
4. Each partition that was assigned to a consumer is passed to one call of ``revoked``: when the partition is
   revoked or lost, when the client finds that the partition is not assigned any more, or at ``close``. After
   this call of ``revoked``, no call about a record or a commit of the partition follows. The method
   ``revoked`` of the last run's observers is also called.
5. ``reached`` is called only for a partition from which the client currently has no further records to
   return.
6. Headers that an observer adds replace headers with the same names. An observer must not add a header whose
   name begins with ``ce_`` or is ``content-type``: these are the event's own headers.
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
    """What has happened to one record, or to the offset of one partition; unknown fields are None.

    ``group`` is the id of the consumer's group, and ``consumer`` is the number of the consumer in this
    process. ``offset`` is the offset of the record, or the committed offset. ``end`` is the offset after the
    last record of the partition, or None if the client does not know this offset. ``size`` is
    `Record.wire_size`, and ``value_size`` is the size of the value, in bytes. ``attempt`` is the number of
    the try.

    ``error`` is an exception, or the client's error for a failed delivery. ``error_name`` is the verdict of a
    `DecodeError`, the client's name for the error, or the name of the error's class. If the error is a
    `DecodeError`, ``verdict`` is its verdict, and ``clause`` is the first clause of the specification that
    the record breaks.

    ``seconds`` is a duration; its meaning depends on the called method. For ``delivered`` and ``failed``,
    ``seconds`` is the time from ``sending`` to the delivery report. For ``received``, ``seconds`` is the time
    that was needed to read the records that are returned together. For ``retried``, ``seconds`` is the time
    until the next try. For ``skipped`` and ``dead_lettered``, ``seconds`` is the time since the record was
    read. For ``committed``, ``seconds`` is the duration of the call that commits.

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

    Threads or the event loop call the methods during their own work, so the methods must not wait. If a
    method raises an error, the error is logged, once for each kind of error, and has no other effect.

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
        """Return None, or headers to add to a record before the record is passed to the client."""

    def handling(self, item: Decoded | Undecodable, /) -> AbstractContextManager[object]:
        """Return a context manager in which the handler of a record runs.

        The context manager cannot suppress an error of the handler.
        """
        return nullcontext(item)

    def delivered(self, notice: Notice) -> None:
        """Observe that a broker has stored a record, perhaps in a transaction that is aborted later."""

    def failed(self, notice: Notice) -> None:
        """Observe that a record was not delivered."""

    def received(self, notices: Sequence[Notice]) -> None:
        """Observe the record that a consumer returns, or all records of a returned batch."""

    def retried(self, notice: Notice) -> None:
        """Observe that a record has failed and is tried again."""

    def skipped(self, notice: Notice) -> None:
        """Observe that a record has failed and is skipped."""

    def dead_lettered(self, notice: Notice) -> None:
        """Observe that a record has failed and was sent as a dead letter."""

    def committed(self, notices: Sequence[Notice]) -> None:
        """Observe offsets that were committed, or that a client has begun to commit asynchronously."""

    def reached(self, notices: Sequence[Notice]) -> None:
        """Observe, about once a second, the next offset that the client will read in each partition.

        The consumer has returned all records before the next offset of a partition. Directly before this next
        offset, the partition may contain transaction markers instead of a record.
        """

    def revoked(self, notices: Sequence[Notice]) -> None:
        """Observe that partitions are no longer assigned to the consumer.

        Either the consumer is closed, or the partitions belong to another member of the group.
        """
