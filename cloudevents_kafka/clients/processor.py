"""EventProcessor: reads records, and writes what a handler makes of them, exactly once.

A batch of records is handled in one transaction of the producer, which has the offsets of the group,
too. If the transaction is aborted, what the handler has sent is never read (by consumers with
``isolation.level`` ``read_committed``), and the records of the batch are read again.

::

    def handle(item):
        if isinstance(item, Decoded):
            producer.send(item.event.replace(type="order.checked"), like=item.record)

    EventProcessor(EventConsumer(reader), producer, handle).run()

The reader must have ``enable.auto.commit`` False, as offsets that the client commits by itself are of
records whose transaction may be aborted. The writer must have a ``transactional.id`` of its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients._gathered import ends_of
from cloudevents_kafka.clients._policy import Action, OnFailure, Policy, RunResult, log_outcome
from cloudevents_kafka.clients._protocols import check_handler, member_id, noting_place
from cloudevents_kafka.clients._run import stop_at_sigterm
from cloudevents_kafka.clients._sends import Sends
from cloudevents_kafka.clients._transaction_time import TransactionTime
from cloudevents_kafka.clients.consumer import EventConsumer
from cloudevents_kafka.clients.dead_letters import DeadLetters
from cloudevents_kafka.clients.producer import DeliveryError, EventProducer
from cloudevents_kafka.errors import CloudEventsKafkaError, DecodeError
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_POLL_SECONDS: Final = 0.2  # the longest time to gather a batch
_CALL_SECONDS: Final = 2.0  # in one call of the client, which is repeated if it may be
_TRANSACTIONS: Final = 10  # for the same records, by default
_MAX_PAUSE: Final = 5.0  # seconds between two transactions of the same records
_FENCED: Final = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_ENDED: Final = (*_FENCED, "INVALID_TXN_STATE", "_FATAL")  # the error of a client whose transaction timed out
_CANNOT_GO_ON: Final = "the transactional producer cannot go on"
_MAY_HAVE_TIMED_OUT: Final = ", or pass max_seconds well below transaction.timeout.ms if that is short"
_log: Final = logging.getLogger("cloudevents_kafka.processor")

Item = Decoded | Undecodable
ItemT = TypeVar("ItemT", bound=Item)
Place = tuple[str | None, int | None, int | None]


class _Failed(Exception):
    """The handler of a record of a batch has failed, and has sent something, or is to be tried again."""

    def __init__(self, number: int, *, has_sent: bool, seconds: float) -> None:
        super().__init__(number, has_sent, seconds)
        self.number = number
        self.has_sent = has_sent
        self.seconds = seconds


class _Unfinished(Exception):
    """The time to stop is over."""


class EventProcessor:
    """A loop that handles batches of records in transactions.

    ``handler`` is called with each record, an event or not, and sends what it makes of it by
    ``producer``: `EventProducer.send`, `EventProducer.send_record`, or `DeadLetters` on the same
    producer. It is called again for records whose transaction was aborted, so it should have no
    effects but what it sends. It is called in another thread.

    ``on_failure``, ``tries``, ``backoff`` and ``retry_on`` are those of `EventConsumer.run`: what becomes of
    a record that is not an event, or whose handler raises an error. A `DeadLetters` on the same producer
    sends its letter in the transaction, so a bad record is set aside exactly once. What a failed try has sent
    is aborted. Without ``on_failure`` the handler gets records that are not events, too, and an error that it
    raises aborts the transaction and ends `run`.

    A batch has up to ``max_records``; more make transactions larger and rarer. It ends before, too: no
    record begins ``max_seconds`` after its transaction, or after `stop`. What was handled by then is
    committed, and the remaining records are read again, by the next batch, in their order. So a
    transaction is open for ``max_seconds``, one record and the commit, however many records there are.

    A broker aborts a transaction after ``transaction.timeout.ms``, and the process must end then. The
    client does not show that setting: pass it as ``transaction_timeout``, in seconds, unless it has
    Kafka's default, 60 s. ``max_seconds`` is by default a tenth of it.

    ``timeout`` is the longest time, in seconds, of one step of a transaction while brokers are away.
    The same records have ten transactions, or ``tries`` if that is above 1, before `run` raises an error.

    Raises `TypeError` if the clients have no transactions, or the handler is a coroutine function, and
    `ValueError` for times that are not above 0, and for dead letters of another producer.

    Examples:
        >>> from cloudevents_kafka import Decoded, EventConsumer, EventProcessor, EventProducer
        >>> from cloudevents_kafka.testing import FakeProducer
        >>> invoices = EventProducer(FakeProducer(transactional=True), topic="invoices")
        >>> def invoice(item: Decoded) -> None:
        ...     invoices.send(item.event.replace(type="invoice.created"), like=item.record)
        >>> EventProcessor(EventConsumer(consumer, strict=True), invoices, invoice).run(idle_timeout=0.1)
        2
    """

    def __init__(
        self,
        consumer: EventConsumer[Any, ItemT],
        producer: EventProducer[Any],
        handler: Callable[[ItemT], object],
        *,
        max_records: int = 500,
        max_seconds: float | None = None,
        transaction_timeout: float | None = None,
        timeout: float = 60.0,
        on_failure: OnFailure | None = None,
        tries: int = 1,
        backoff: float = 0.5,
        retry_on: type[Exception] | tuple[type[Exception], ...] | None = None,
    ) -> None:
        _check(consumer, EventConsumer, "consumer", "consumer_group_metadata")
        _check(producer, EventProducer, "producer", "send_offsets_to_transaction")
        check_handler(handler)
        self.consumer = consumer
        self.producer = producer
        self._handler: Callable[[Any], object] = noting_place(handler)
        self._max_records = self._next_records = max_records
        self._time = TransactionTime(transaction_timeout, max_seconds)
        self._timeout = timeout
        self._policy = Policy(
            read=consumer.read_item,
            on_failure=on_failure or "fail",
            tries=tries,
            backoff=backoff,
            retry_on=retry_on,
        )
        self._passes_all = on_failure is None
        if isinstance(on_failure, DeadLetters):
            self._check_letters(on_failure)
        self._tries = tries if tries > 1 else _TRANSACTIONS
        self._failures: dict[Place, tuple[int, Exception, Action | None]] = {}  # tries, error, what to do
        self._counts = RunResult()
        self._stopped = False
        self._stop_timeout = 0.0
        self._deadline: float | None = None  # when `run` ends after `stop`
        self._is_left = False  # whether a handler was left in its thread
        producer.count_sends()

    def stop(self) -> None:
        """End `run` after the current record; may be called by a signal handler or a thread.

        The records of the batch that were handled are committed, and the remaining records are read again.
        """
        self._stopped = True

    def run(self, *, stop_timeout: float = 20.0, idle_timeout: float | None = None) -> int:
        """Process records until `stop`, SIGTERM, or ``idle_timeout`` seconds without one; return how many.

        Begins with ``init_transactions``, which waits for or aborts a transaction that an earlier
        process with the same ``transactional.id`` has left. Ends between two transactions, or after
        aborting one, so the offsets of the group and what was sent always agree. If that takes longer than
        ``stop_timeout`` seconds after `stop`, as a handler or a broker does not answer, the transaction is
        left: end the process then, and the next one aborts it.

        Raises `TransactionError` if the client cannot go on, `ConsumeError`, and what the handler
        raises.
        """
        if not stop_timeout >= 0:
            raise ValueError(f"stop_timeout must be seconds from 0, got {stop_timeout!r}")
        if self._is_left:
            raise TransactionError("a handler of an earlier run has not returned")
        self._stop_timeout, self._deadline = stop_timeout, None
        self._counts = RunResult()
        with stop_at_sigterm(self.stop):
            try:
                return self._process_all(idle_timeout)
            except _Unfinished:
                self._leave_transaction()
                return self._counts.handled

    def _leave_transaction(self) -> None:
        """End without the transaction, of which nothing is to be sent any more."""
        _log.warning("a transaction was not ended within stop_timeout; the next process aborts it")
        self.producer.producer.purge()
        self.producer.producer.flush(0)

    def _process_all(self, idle_timeout: float | None) -> int:
        self._call("init_transactions")
        failures = 0
        idle_since = time.monotonic()
        while not self._stopped:
            # Before the records: a rebalance after this call makes the broker refuse the offsets.
            member = member_id(self.consumer.consumer)
            group = self.consumer.consumer.consumer_group_metadata()
            batch = self._read_batch()
            if batch is None:
                if self.consumer.stopped or self._is_idle(idle_since, idle_timeout):
                    break
            elif member != member_id(self.consumer.consumer) or self._is_ending:
                # The member joined meanwhile. Brokers do not refuse offsets with the metadata from before
                # that.
                self._seek_back(batch)
            elif isinstance(outcome := self._process(batch, group), int):
                self._counts.handled += outcome
                failures = 0
                idle_since = time.monotonic()
            else:
                failures += 1
                self._report(batch, outcome, failures)
        return self._counts.handled

    @property
    def _is_ending(self) -> bool:
        return self._stopped or self.consumer.stopped

    def _left(self, seconds: float) -> float:
        """Return seconds, or what is left of them after `stop`; raise `_Unfinished` if that is nothing."""
        if not self._is_ending:
            return seconds
        if self._deadline is None:
            self._deadline = time.monotonic() + self._stop_timeout
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _Unfinished
        return min(seconds, left)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_ending and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_SECONDS))

    def _in_thread(self, work: Callable[[], Any], seconds: float | None = None) -> Any:
        """Return what a function returns in a thread of its own; None if it takes longer than ``seconds``.

        Raises `_Unfinished` if it takes longer than the time to stop.
        """
        result: Future[Any] = Future()

        def call() -> None:
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001  # it is raised by the caller
                result.set_exception(error)

        threading.Thread(target=call, name="cloudevents_kafka.processor", daemon=True).start()
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            try:
                return result.result(self._left(_POLL_SECONDS))
            except TimeoutError:
                if result.done():
                    raise
        return None

    def _read_batch(self) -> Sequence[Item] | None:
        try:
            return next(self.consumer.batches(self._next_records, _POLL_SECONDS, idle_timeout=0), None)
        except DecodeError as error:  # of a consumer with `strict`: the next run begins with it
            self.consumer.seek(error.record)
            raise

    def _process(self, batch: Sequence[Item], group: object) -> int | Exception:
        """Handle a batch in a transaction, and return the number of records that are committed.

        Returns the error if the transaction was aborted and may be repeated.
        """
        self._time.begin()
        self._call("begin_transaction", timed=False)
        pause = 0.0
        try:
            try:
                number = self._handle_in_thread(batch)
            except _Failed as failed:
                number, pause = failed.number, failed.seconds
                if failed.has_sent or not number:
                    raise
            self._send_offsets(ends_of(batch[:number]), group)
            self._call("commit_transaction")
        except (TransactionError, _Unfinished):
            raise
        except _Failed:
            self._abort()
            self._seek_back(batch)
            self._pause(pause)
            return 0
        except BaseException as error:
            reason = self._abort(error)
            self._seek_back(batch)
            if not isinstance(error, Exception) or not _is_abortable(error):
                raise
            return reason or error
        for item in batch[:number]:
            failure = self._failures.pop(_place(item), None)
            if failure is not None and failure[2] is not None:
                log_outcome(item, failure[0], failure[1], failure[2], self._counts)
        self._leave(batch, number)
        self._pause(pause)
        return number

    def _handle_in_thread(self, batch: Sequence[Item]) -> int:
        try:
            return int(self._in_thread(partial(self._handle, batch)))
        except _Unfinished:
            self._is_left = True
            raise

    def _handle(self, batch: Sequence[Item]) -> int:
        """Handle records while there is time, at least one, and return their number."""
        for number, item in enumerate(batch):
            if number and (self._is_ending or self._time.is_over):
                return number
            with self._time.measured(item.record):
                self._handle_one(number, item)
        return len(batch)

    def _handle_one(self, number: int, item: Item) -> None:
        """Call the handler, or act on the failure that an aborted transaction has shown; raise `_Failed`."""
        attempt, error, action = self._failures.get(_place(item), (0, None, None))
        if action is None:
            attempt += 1
            sends = Sends()
            error = self._try(item, attempt, sends)
            if error is None:
                return
            seconds = self._policy.next_try(item, attempt, error)
            if seconds is None:
                action = self._policy.action(item, error)
            self._failures[_place(item)] = attempt, error, action
            if seconds is not None or sends.number:
                raise _Failed(number, has_sent=sends.number > 0, seconds=seconds or 0.0)
        if isinstance(action, DeadLetters):
            self._check_letters(action)
            action.send(item, error, attempt=attempt)

    def _try(self, item: Item, attempt: int, sends: Sends) -> Exception | None:
        """Return the error of a record, None if it was handled."""
        item = self._policy.read_again(item) if attempt > 1 else item
        if isinstance(item, Undecodable) and not self._passes_all:
            return item.error
        try:
            with sends.counted():
                self._handler(item)
        except Exception as error:
            if self._passes_all:
                raise
            return error
        return None

    def _check_letters(self, letters: DeadLetters) -> None:
        if letters.producer.producer is not self.producer.producer:
            raise ValueError(
                "on_failure must send dead letters by the producer of the processor, so that they are in its "
                "transactions, got another; make DeadLetters with that producer"
            )

    def _leave(self, batch: Sequence[Item], number: int) -> None:
        """Leave the records after the first ``number`` to the next batch, which is then smaller."""
        if (slow := self._time.find_slow_record()) is not None:
            _log.warning("%s", slow)
        if number == len(batch):
            self._next_records = min(2 * self._next_records, self._max_records)
        else:
            self._next_records = min(2 * number, self._max_records)
            self._seek_back(batch[number:])

    def _abort(self, error: BaseException | None = None) -> Exception | None:
        """Abort the transaction, and return the reason: the error, or the delivery that failed before it.

        What is on its way must arrive first: for brokers of Kafka 4 a record after the abort is an error
        from which a client does not recover. What is still in the client need not.
        """
        if error and (client_error := _client_error(error)) is not None and client_error.fatal():
            raise self._failure(client_error) from error
        reason = error if isinstance(error, Exception) else None
        try:
            self._drain()
            self.producer.flush(0)
        except DeliveryError as undelivered:
            reason = undelivered
        except Exception as failed:
            if (client_error := _client_error(failed)) is None:
                raise
            raise self._failure(client_error) from failed
        self._call("abort_transaction")
        return reason

    def _drain(self) -> None:
        """Drop what is still in the client, and wait for what is on its way, up to the timeout.

        Both are repeated: the client may have stopped sending, and a purge misses messages that it moves
        just then.
        """
        client = self.producer.producer
        deadline = time.monotonic() + self._timeout
        pending = True
        while pending and time.monotonic() < deadline:
            client.purge(in_queue=True, in_flight=False)
            pending = client.flush(self._left(_POLL_SECONDS)) > 0

    def _seek_back(self, batch: Sequence[Item]) -> None:
        """Read the batch again, except for partitions that were revoked: the group's offsets say where."""
        client = self.consumer.consumer
        ends = {(place.topic, place.partition): place.offset for place in ends_of(batch)}
        first = {(item.record.topic, item.record.partition): item.record for item in reversed(batch)}
        for place in client.position(ends_of(batch)):
            name = place.topic, place.partition
            # A partition that was revoked has no position, also if it was assigned again.
            if place.offset >= ends[name]:
                self.consumer.seek(first[name])

    def _report(self, batch: Sequence[Item], error: Exception, failures: int) -> None:
        records = pluralize(len(batch), "record")
        if failures == self._tries:
            raise self._failure(
                _client_error(error) or error, f"{failures} transactions for {records} were aborted"
            ) from error
        slow = self._time.find_slow_record()
        reason = error if slow is None else f"{error}; {slow}"
        _log.warning("a transaction for %s was aborted, and they are read again: %s", records, reason)
        self._pause(min(0.05 * 2**failures, _MAX_PAUSE))

    def _call(self, method: str, *arguments: object, timed: bool = True) -> None:
        """Call a method of the producer; repeat it, up to the timeout, if it failed and may be repeated."""
        from confluent_kafka import KafkaException

        call = getattr(self.producer.producer, method)
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                call(*arguments, *((self._left(_CALL_SECONDS),) if timed else ()))
            except KafkaException as error:
                reason = error.args[0]
                if reason.txn_requires_abort():
                    raise
                if method == "init_transactions" and reason.name() == "_STATE":
                    return  # it was called before
                if reason.fatal() or not reason.retriable():
                    raise self._failure(reason) from error
                if time.monotonic() > deadline:
                    raise TransactionError(
                        reason, f"{method} did not succeed in {self._timeout:g} s"
                    ) from error
                time.sleep(0.1)
            else:
                return

    def _failure(self, error: Any, what: str = "") -> TransactionError:
        """Return the error of a producer that cannot go on, which says so if its transaction timed out."""
        name = _name_of(error)
        if name not in _ENDED or (explained := self._time.explain_end()) is None:
            advice = _MAY_HAVE_TIMED_OUT if name in _FENCED and self._time.may_have_timed_out else ""
            return TransactionError(error, what or _CANNOT_GO_ON, _advice_for(name) + advice)
        reason, advice = explained
        return TransactionError(error, f"{what}, and {reason}" if what else reason, advice)

    def _send_offsets(self, offsets: list[TopicPartition], group: object) -> None:
        """Add the offsets to the transaction, in a thread.

        After a restart of brokers the call may never return, for all its timeout (librdkafka 2.16): it
        waits for the coordinator by a connection that is gone.
        """
        send = partial(self._call, "send_offsets_to_transaction", offsets, group)
        if self._in_thread(lambda: (send(),), self._timeout) is None:
            reason = f"send_offsets_to_transaction did not return in {self._timeout:g} s"
            raise TransactionError(reason)

    @staticmethod
    def _is_idle(since: float, timeout: float | None) -> bool:
        return timeout is not None and time.monotonic() - since >= timeout


def _check(wrapper: object, kind: type, name: str, method: str) -> None:
    """Raise `TypeError` unless a wrapper's client has a method of transactions."""
    if not isinstance(wrapper, kind) or not callable(getattr(getattr(wrapper, name), method, None)):
        raise TypeError(
            f"{name} must be an {kind.__name__} of a client with {method}(), "
            f"got {type(wrapper).__name__}; wrap a {name.capitalize()} of confluent_kafka"
        )


def _place(item: Item) -> Place:
    record = item.record
    return record.topic, record.partition, record.offset


def _client_error(error: BaseException) -> Any:
    """Return the ``KafkaError`` of a ``KafkaException``, None for other exceptions."""
    reason = error.args[0] if error.args else None
    return reason if callable(getattr(reason, "txn_requires_abort", None)) else None


def _is_abortable(error: Exception) -> bool:
    """Return whether a new transaction for the same records may succeed after an error."""
    reason = _client_error(error)
    # After a failed delivery, produce() fails with _STATE.
    return reason is not None and (reason.txn_requires_abort() or reason.name() == "_STATE")


class TransactionError(CloudEventsKafkaError):
    """The producer cannot go on with transactions; ``error`` is the client's, or that of a delivery.

    Nothing of the last batch was committed, or the next process ends the open transaction: no record is
    lost or written twice.

    Examples:
        >>> from cloudevents_kafka import EventConsumer, EventProcessor, EventProducer, TransactionError
        >>> from cloudevents_kafka.testing import FakeProducer
        >>> writer = FakeProducer(transactional=True)
        >>> writer.fail_transaction("_FENCED", fatal=True)
        >>> try:
        ...     EventProcessor(EventConsumer(consumer), EventProducer(writer), lambda item: None).run()
        ... except TransactionError as error:
        ...     print(error.error.name())
        _FENCED
    """

    def __init__(self, error: Any, what: str = _CANNOT_GO_ON, advice: str = "") -> None:
        super().__init__(error, what, advice)
        self.error = error
        self.what = what
        self._advice = advice or _advice_for(_name_of(error))

    def __str__(self) -> str:
        return f"{self.what}: {self.error}; {self._advice}"


def _name_of(error: Any) -> str:
    """Return the name of a client's error; empty for other errors."""
    return str(error.name()) if callable(getattr(error, "name", None)) else ""


def _advice_for(name: str) -> str:
    if name in {*_FENCED, "_STATE"}:  # a transaction that another process has ended
        return "another process has the same transactional.id: start each with its own"
    if name == "_NOT_CONFIGURED":
        return "create the Producer with a transactional.id"
    return "end the process and start it again, which ends what is open"
