"""`EventProcessor`: reads records, calls a handler, and writes the handler's events exactly once.

The records of a batch are handled in one transaction of the producer. The transaction also commits the
offsets of the consumer group. If the transaction is aborted, consumers with ``isolation.level``
``read_committed`` never read the events that the handler has sent. After the abort of a transaction, the
records of its batch are read again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack, overload

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients._gathered import ends_of
from cloudevents_kafka.clients._handling import BatchHandler, Handled
from cloudevents_kafka.clients._places import Item, name_of, places_of
from cloudevents_kafka.clients._policy import OnFailure, Policy, RunResult
from cloudevents_kafka.clients._protocols import (
    check_handler,
    check_max_records,
    check_seconds,
    member_id,
    suppress_client_errors,
)
from cloudevents_kafka.clients._serving import Serving
from cloudevents_kafka.clients._signals import stop_at_sigterm
from cloudevents_kafka.clients._transaction_time import TransactionTime
from cloudevents_kafka.clients._transactions import (
    POLL_SECONDS,
    TransactionError,
    Transactions,
    Unfinished,
    client_error,
    is_abortable,
)
from cloudevents_kafka.clients.consumer import EventConsumer
from cloudevents_kafka.clients.producer import EventProducer
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from cloudevents_kafka.clients.observing import Observer

_MAX_PAUSE: Final = 5.0  # seconds between two transactions of the same records
_RETURN_SECONDS: Final = 1.0  # a handler of asyncio that was cancelled returns a moment later
_log: Final = logging.getLogger("cloudevents_kafka.processor")

__all__ = ["EventProcessor", "TransactionError"]

ItemT = TypeVar("ItemT", bound=Item)
T = TypeVar("T")


class ProcessorOptions(TypedDict, total=False):
    """The options of `EventProcessor`, except ``on_failure``."""

    max_records: int
    max_seconds: float | None
    transaction_timeout: float | None
    timeout: float
    transactions: int
    tries: int
    backoff: float
    retry_on: type[Exception] | tuple[type[Exception], ...] | None
    observers: Sequence[Observer]


class EventProcessor:
    """A loop that reads batches of records and handles each batch in one Kafka transaction.

    ``handler`` is called with each event; without ``on_failure``, it is also called with records that are not
    events. The handler sends its results with ``producer``: it calls `EventProducer.send`,
    `EventProducer.send_record`, or `DeadLetters.send` of an object with the same producer. After an aborted
    transaction, the handler is called again with the same records, so it should have no effects other than
    sending. The handler is called in a separate thread. The client of ``producer`` needs a
    ``transactional.id`` that no other process uses. In the client of ``consumer``, ``enable.auto.commit``
    must be False: automatic commits would include records whose transaction may be aborted.

    ``on_failure``, ``tries``, ``backoff`` and ``retry_on`` have the same meaning as in `EventConsumer.run`.
    The failure options apply to records that are not events, and to records whose handler raises an error.
    `DeadLetters` with the same producer sends dead letters in the transaction, so the dead letter of each
    failed record is sent exactly once. If the handler has sent events and then fails, these events are
    aborted. Without ``on_failure``, an error of the handler aborts the transaction and ends `run`.

    A batch consists of up to ``max_records`` records; a higher number means larger and fewer transactions. A
    batch ends early if its transaction is open for ``max_seconds``, or after `stop`; then no further record
    is passed to the handler. The handled records of the batch are then committed, and the next batch reads
    the remaining records again, in order. A transaction is therefore open for at most the sum of three times:
    ``max_seconds``, the time for handling one record, and the time for the commit.

    A broker aborts a transaction that is open for longer than ``transaction.timeout.ms``. After such an
    abort, the process must end. The client does not show its setting ``transaction.timeout.ms``. If the
    setting differs from Kafka's default, 60 s, pass its value in seconds as ``transaction_timeout``. The
    default of ``max_seconds`` is a tenth of ``transaction_timeout``.

    ``timeout`` is the longest time, in seconds, that one step of a transaction, such as the commit, may take
    if no broker answers. ``transactions`` is a number: if this many transactions for the same records are
    aborted in a row, `run` raises an error. While the handler or a broker is slow, the client is polled, so
    the group does not expel this member. ``observers`` are called in addition to the observers of the
    consumer and of the producer: see `Observer`. Raises `TypeError` if a client does not support
    transactions, or if the handler is a coroutine function. Raises `ValueError` for times that are not above
    0, and for a `DeadLetters` object with another producer.

    Examples:
        >>> from cloudevents_kafka import Decoded, EventConsumer, EventProcessor, EventProducer
        >>> from cloudevents_kafka.testing import FakeProducer
        >>> invoices = EventProducer(FakeProducer(transactional=True), topic="invoices")
        >>> def invoice(item: Decoded) -> None:
        ...     invoices.send(item.event.replace(type="invoice.created"), like=item.record)
        >>> EventProcessor(EventConsumer(consumer, strict=True), invoices, invoice).run(idle_timeout=0.1)
        2
    """

    @overload
    def __init__(
        self,
        consumer: EventConsumer[Any, Decoded[T] | Undecodable],
        producer: EventProducer[Any],
        handler: Callable[[Decoded[T]], object],
        *,
        on_failure: OnFailure,
        **options: Unpack[ProcessorOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        consumer: EventConsumer[Any, ItemT],
        producer: EventProducer[Any],
        handler: Callable[[ItemT], object],
        *,
        on_failure: None = ...,
        **options: Unpack[ProcessorOptions],
    ) -> None: ...

    def __init__(
        self,
        consumer: EventConsumer[Any, Any],
        producer: EventProducer[Any],
        handler: Callable[[Any], object],
        *,
        max_records: int = 500,
        max_seconds: float | None = None,
        transaction_timeout: float | None = None,
        timeout: float = 60.0,
        transactions: int = 10,
        on_failure: OnFailure | None = None,
        tries: int = 1,
        backoff: float = 0.5,
        retry_on: type[Exception] | tuple[type[Exception], ...] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        _check(consumer, EventConsumer, "consumer", "consumer_group_metadata")
        _check(producer, EventProducer, "producer", "send_offsets_to_transaction")
        check_handler(handler)
        check_max_records(max_records)
        self.consumer = consumer
        self.producer = producer
        self._max_records = self._next_records = max_records
        self._time = TransactionTime(transaction_timeout, max_seconds)
        self._serving = Serving(consumer, consumer._gathered, consumer._settings)
        self._transactions = Transactions(producer, timeout, self._time, self._is_ending, self._serving)
        if transactions < 1:
            raise ValueError(f"transactions must be at least 1, got {transactions!r}")
        producer.observe(observers)
        self._policy = Policy(
            read=consumer.read_item,
            observers=observers,
            observed=consumer._gathered.observers,
            on_failure=on_failure or "fail",
            tries=tries,
            backoff=backoff,
            retry_on=retry_on,
        )
        self._handler = BatchHandler(handler, self._policy, producer, passes_all=on_failure is None)
        self._most = transactions
        self._timeout = timeout
        self._counts = RunResult()
        self._stopped = False
        self._aborted: tuple[Sequence[Item], Exception] | None = None  # the last batch, if it was aborted
        producer.count_sends()

    def stop(self) -> None:
        """End `run` after the record that is handled; a signal handler or another thread may call `stop`.

        The handled records of the current batch are committed, and its other records are read again later.
        """
        self._stopped = True

    def run(self, *, stop_timeout: float = 20.0, idle_timeout: float | None = None) -> int:
        """Process records until `stop`, SIGTERM, or ``idle_timeout`` seconds without a record.

        Return the number of handled records. The run begins with ``init_transactions``. If an earlier process
        with the same ``transactional.id`` has left a transaction open, ``init_transactions`` waits for the
        end of this transaction, or aborts it. The run ends between two transactions, or after the abort of a
        transaction, so the committed offsets and the committed events always agree. If a handler or a broker
        does not answer within ``stop_timeout`` seconds after `stop`, the transaction stays open. In this
        case, end the process: the next process with the same ``transactional.id`` aborts the transaction.
        In the same process, make a new producer with the same ``transactional.id`` and a new processor. The
        next run of the same consumer then reads the records of this transaction again. This is also true
        after a `TransactionError`. If the commit of the transaction was not answered, the next run continues
        at the offsets of the group, and a position that you have set by a seek is lost.
        Raises `TransactionError` if the producer cannot continue, or if the handler of an earlier run is
        still running, for example after Ctrl-C. Raises `ConsumeError`, the errors of the handler, and
        `RuntimeError` if a run or another processor already uses the consumer.
        """
        check_seconds("stop_timeout", stop_timeout)
        check_seconds("idle_timeout", idle_timeout)
        self.consumer.check_open("run()", goes_on=True)
        with (
            self.consumer.only_loop.begin("processor"),
            self.consumer.closing_later(),
            stop_at_sigterm(self.stop),
            self.consumer._gathered.observed(self._policy.observed),
        ):
            self._counts, self._aborted = RunResult(), None
            # What the handler of an earlier run sends must not be in a transaction of other records.
            if not self.consumer._has_returned.wait(_RETURN_SECONDS):
                raise TransactionError("a handler of an earlier run has not returned")
            try:
                return self._process_all(stop_timeout, idle_timeout)
            except Unfinished:
                _log.warning("a transaction was not ended within stop_timeout; the next process aborts it")
                self._transactions.leave()
                return self._counts.handled
            finally:
                self._serving.end()

    def _process_all(self, stop_timeout: float, idle_timeout: float | None) -> int:
        self._transactions.start(stop_timeout)
        self._settle()
        failures = 0
        idle_since = time.monotonic()
        while not self._is_ending():
            # Before the records: a rebalance after this call makes the broker refuse the offsets.
            member = member_id(self.consumer.consumer)
            group = self.consumer.consumer.consumer_group_metadata()
            batch = self._read_batch()
            if batch is None:
                idle = time.monotonic() - idle_since
                is_idle = idle_timeout is not None and idle >= idle_timeout and not self._is_left(idle)
                if is_idle:
                    break
                continue
            if member != member_id(self.consumer.consumer) or self._is_ending():
                # The member has joined since then. Brokers would accept offsets with the earlier metadata.
                self._seek_back(batch)
            elif isinstance(outcome := self._process(batch, group), int):
                self._counts.handled += outcome
                failures, self._aborted = 0, None
            else:
                failures += 1
                self._aborted = batch, outcome
                self._report(batch, outcome, failures)
            idle_since = time.monotonic()
        return self._counts.handled

    def _settle(self) -> None:
        """If the last commit of an earlier run was not answered, continue at the group's offsets.

        Where the group has no offset, the earlier run has already sought back.
        """
        if not self.consumer._in_doubt:
            return
        client = self.consumer.consumer
        assigned = {(place.topic, place.partition) for place in client.assignment()}
        if places := places_of(self.consumer._in_doubt & assigned):
            for place in self._transactions.committed(client, places):
                if place.offset >= 0:
                    with suppress_client_errors():  # the partition was revoked
                        self.consumer.seek(place)

    def _is_left(self, seconds: float) -> bool:
        """Return whether this member must still read the records of an aborted transaction again.

        Raises `TransactionError` if these records are not read again within the processor's ``timeout``.
        """
        if self._aborted is None:
            return False
        batch, error = self._aborted
        assigned = {(place.topic, place.partition) for place in self.consumer.consumer.assignment()}
        if assigned and not assigned & {(place.topic, place.partition) for place in ends_of(batch)}:
            return False  # another member reads these records
        if seconds >= self._timeout:
            records = pluralize(len(batch), "record")
            raise self._transactions.failure(
                client_error(error) or error,
                f"a transaction for {records} was aborted, and its records were not read again in "
                f"{seconds:.0f} s",
            ) from error
        return True

    def _is_ending(self) -> bool:
        return self._stopped or self.consumer.stopped

    def _read_batch(self) -> Sequence[Item] | None:
        self._serving.begin()
        batch = next(self.consumer.batches(self._next_records, POLL_SECONDS, idle_timeout=0), None)
        self._serving.hold(batch or ())
        return batch

    def _process(self, batch: Sequence[Item], group: object) -> int | Exception:
        """Handle a batch in a transaction, and return the number of committed records.

        If the transaction was aborted and may be repeated, return the error instead. However the transaction
        ends, the records that it has not committed are read again.
        """
        try:
            outcome = self._transact(batch, group)
        except BaseException as error:
            self._seek_back_after(error, batch)
            raise
        number = outcome.number if isinstance(outcome, Handled) and not outcome.is_aborted else 0
        if number < len(batch):
            self._seek_back(batch[number:])
        self.consumer._in_doubt = frozenset()
        if isinstance(outcome, Exception):
            return outcome
        if number:
            self._handler.note_committed(batch[:number], self._counts)
            self._adapt(batch, number)
        self._transactions.pause(outcome.seconds)
        return number

    def _transact(self, batch: Sequence[Item], group: object) -> Handled | Exception:
        """Handle a batch in a transaction, and commit or abort the transaction.

        If the transaction was aborted after an error and may be repeated, return the error.
        """
        self._transactions.begin()
        self.consumer._in_doubt = frozenset()  # a commit that was not answered has ended
        try:
            handled = self._handle_in_thread(batch)
            if not handled.is_aborted:
                self._commit(batch[: handled.number], group)
        except (TransactionError, Unfinished):
            raise
        except BaseException as error:
            reason = self._transactions.abort(error)
            if not isinstance(error, Exception) or not is_abortable(error):
                raise
            return reason or error
        if handled.is_aborted:
            self._transactions.abort()
        return handled

    def _commit(self, batch: Sequence[Item], group: object) -> None:
        """Commit a transaction; until the commit is answered, only the group knows whether it succeeds."""
        began, offsets = time.monotonic(), ends_of(batch)
        self._transactions.call("send_offsets_to_transaction", offsets, group)
        self.consumer._in_doubt = frozenset(map(name_of, batch))
        self._transactions.call("commit_transaction")
        if (observers := self._policy.observed) is not None:
            observers.of_places("committed", offsets, self.consumer.consumer, began)

    def _handle_in_thread(self, batch: Sequence[Item]) -> Handled:
        """Handle a batch in a separate thread, which continues even if the calling thread is interrupted."""
        self.consumer._has_returned.clear()
        with self.consumer.vitals.working(len(batch)):
            return self._transactions.in_thread(partial(self._handle, batch))

    def _handle(self, batch: Sequence[Item]) -> Handled:
        try:
            return self._handler.handle(batch, self._time, self._is_ending)
        finally:
            self.consumer._has_returned.set()

    def _adapt(self, batch: Sequence[Item], number: int) -> None:
        """Adapt the size of the next batch, after ``number`` records of a batch were committed."""
        if (slow := self._time.find_slow_record()) is not None:
            _log.warning("%s", slow)
        whole = self._next_records if number == len(batch) else number
        self._next_records = min(2 * whole, self._max_records)

    def _seek_back_after(self, error: BaseException, batch: Sequence[Item]) -> None:
        """Seek back after an error; if that fails, the next run continues at the group's offsets."""
        try:
            self._seek_back(batch)
        except Exception as failure:  # noqa: BLE001  # of the client; the error itself is raised
            error.add_note(f"seeking back has failed: {failure}; the next run asks the group for its offsets")
            self.consumer._in_doubt = frozenset(map(name_of, batch))

    def _seek_back(self, batch: Sequence[Item]) -> None:
        """Seek back to the batch's first record in each partition, except in partitions that were revoked."""
        first = {(item.record.topic, item.record.partition): item.record for item in reversed(batch)}
        for name in first.keys() & self._serving.held():
            self.consumer.seek(first[name])

    def _report(self, batch: Sequence[Item], error: Exception, failures: int) -> None:
        records = pluralize(len(batch), "record")
        if failures == self._most:
            raise self._transactions.failure(
                client_error(error) or error, f"{failures} transactions for {records} were aborted"
            ) from error
        reason = self._transactions.explain(error)
        _log.warning("a transaction for %s was aborted, and its records are read again: %s", records, reason)
        self._transactions.pause(min(0.05 * 2**failures, _MAX_PAUSE))


def _check(wrapper: object, kind: type, name: str, method: str) -> None:
    """Raise `TypeError` if a wrapper's client does not have ``method``, which transactions need."""
    if not isinstance(wrapper, kind) or not callable(getattr(getattr(wrapper, name), method, None)):
        raise TypeError(
            f"{name} must be an {kind.__name__} of a client with {method}(), "
            f"got {type(wrapper).__name__}; wrap a {name.capitalize()} of confluent_kafka"
        )
