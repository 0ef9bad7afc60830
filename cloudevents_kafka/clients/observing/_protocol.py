"""`Observer`, the methods that a client calls while it works, and `Notice`, their argument about one record.

The law, which `calls` keeps and ``tests/observing/test_calls.py`` tests by random histories:

1. After each ``sending`` either ``delivered`` or ``failed`` is called, once, with the same record.
2. A record that a consumer returns is in one call of ``received``. In a run it ends by its handler, by
   ``skipped`` or by ``dead_lettered``, after as many calls of ``retried`` as it has further tries.
3. An error of an observer is logged. It does not change what a client returns, raises or sends.
4. A partition that a consumer had is in one call of ``revoked``, after the last record and the last commit
   of it that the consumer notes: when it is revoked, lost, found not to be assigned, or at ``close``. The
   observers of the last run are called, too.
5. An offset in ``reached`` is of a partition of which the consumer has returned all that its client has.
6. Headers of an observer replace those with the same names, which a record has once then. They are never
   those of the event: its attributes and its content type.
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

    ``error`` is an exception, or the client's error of a delivery, and ``error_name`` its verdict, the
    client's name or its class. ``verdict`` and ``clause``, the first that is broken, are of a `DecodeError`.

    ``seconds`` are those from ``sending`` to the report, of reading the records that are returned together,
    until another try, from reading a record in a run to its end, or of the call that commits.

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
    """The methods that clients call; a subclass has those that it needs.

    They are called where the work is done, by several threads or on the event loop, so they must not wait.
    What they raise is logged, once for each kind, and stops nothing.

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
        """Note a record that a broker has, perhaps in a transaction that is aborted later."""

    def failed(self, notice: Notice) -> None:
        """Note a record that was not delivered."""

    def received(self, notices: Sequence[Notice]) -> None:
        """Note the record, or the records of a batch, that a consumer returns."""

    def retried(self, notice: Notice) -> None:
        """Note a record that has failed and is tried again."""

    def skipped(self, notice: Notice) -> None:
        """Note a record that has failed, and is left out."""

    def dead_lettered(self, notice: Notice) -> None:
        """Note a record that has failed, and is a dead letter."""

    def committed(self, notices: Sequence[Notice]) -> None:
        """Note offsets that were committed, or passed to a client that commits without a wait."""

    def reached(self, notices: Sequence[Notice]) -> None:
        """Note the next offsets of the client, after markers of transactions, about once a second.

        They are of partitions of which the consumer has returned all records before.
        """

    def revoked(self, notices: Sequence[Notice]) -> None:
        """Note partitions that the consumer no longer has: it is closed, or another member has them."""
