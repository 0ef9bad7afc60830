"""`Transactions`: the transactions of a producer; a call that no broker answers is repeated."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloudevents_kafka.clients._errors import ConsumeError
from cloudevents_kafka.clients._gathered import check_committed
from cloudevents_kafka.clients._polling import within
from cloudevents_kafka.clients._serving import Serving
from cloudevents_kafka.clients._transaction_time import TransactionTime
from cloudevents_kafka.clients.producer import DeliveryError, EventProducer
from cloudevents_kafka.errors import CloudEventsKafkaError

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

T = TypeVar("T")
POLL_SECONDS: Final = 0.2
"""A step of a transaction that waits checks at least this often, in seconds, whether the run must end."""

_CALL_SECONDS: Final = 10.0  # the longest time of one client call, before it is repeated
_LEAVE_SECONDS: Final = 2.0
_FENCED: Final = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_ENDED: Final = (*_FENCED, "INVALID_TXN_STATE", "_FATAL")  # the error of a client whose transaction timed out
_CANNOT_GO_ON: Final = "the transactional producer cannot go on"
_IN_DOUBT: Final = "the last commit was not answered, and the offsets of the group are not known"
_RUN_AGAIN: Final = (
    "run again when the brokers answer, with a new producer that has the same transactional.id, or start the "
    "process again"
)
_IS_OPEN: Final = "a transaction of an earlier run is still open in this process"
_MAKE_NEW: Final = (
    "make a new producer with the same transactional.id, which ends the open transaction, and a new "
    "processor, or start the process again"
)
_START_AGAIN: Final = "end the process and start it again; this ends the open transaction"
_MAY_HAVE_TIMED_OUT: Final = (
    ", or pass max_seconds well below transaction.timeout.ms if this setting is short"
)


class Unfinished(Exception):
    """The run did not end within the ``stop_timeout`` seconds that follow a request to stop."""


class Transactions:
    """The transactions of one producer, one after another.

    Each step of a transaction, such as the commit, may take ``timeout`` seconds. After a request to stop the
    run, all steps of the transaction together may take ``stop_timeout`` seconds. While a step waits, the
    client of the consumer is polled, so that this client stays a member of its group.
    """

    def __init__(
        self,
        producer: EventProducer[Any],
        timeout: float,
        time: TransactionTime,
        is_ending: Callable[[], bool],
        serving: Serving,
    ) -> None:
        self._producer = producer
        self._timeout = timeout
        self._time = time
        self._is_ending = is_ending
        self._serving = serving
        self._deadline: float | None = None
        self.stop_timeout = 0.0

    def start(self, stop_timeout: float) -> None:
        """Prepare the transactions of a run; end a transaction that an earlier process left open."""
        self.stop_timeout, self._deadline = stop_timeout, None
        self.call("init_transactions")

    def begin(self) -> None:
        """Begin a transaction; a transaction that an earlier run left open is reported as the reason."""
        self._time.begin()
        try:
            self.call("begin_transaction", timed=False)
        except TransactionError as error:
            if _name_of(error.error) != "_STATE":
                raise
            raise TransactionError(error.error, _IS_OPEN, _MAKE_NEW) from error

    def leave(self) -> None:
        """Leave the transaction open, and drop unsent messages; the next process aborts the transaction."""
        client = self._producer.producer
        with suppress(TimeoutError):  # the client may hang
            within(_LEAVE_SECONDS, partial(_drop, client, 0, in_flight=True))

    def left(self, seconds: float) -> float:
        """Return ``seconds``; after a request to stop, return at most the time left of ``stop_timeout``.

        Raises `Unfinished` if ``stop_timeout`` has passed.
        """
        if not self._is_ending():
            return seconds
        if self._deadline is None:
            self._deadline = time.monotonic() + self.stop_timeout
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Unfinished
        return min(seconds, left)

    def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until the run must end."""
        until = time.monotonic() + seconds
        while not self._is_ending() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))
            self._serving.poll()

    def in_thread(self, work: Callable[[], T], seconds: float | None = None) -> T:
        """Call a function in a separate thread, and return its result.

        Raises `Unfinished` if the function has not returned ``stop_timeout`` seconds after a request to stop,
        and `TransactionError` if the function takes longer than ``seconds``. After a restart of brokers, a
        client call may never return (librdkafka 2.16), because the call waits for the coordinator on a
        connection that was closed.
        """
        result: Future[T] = Future()

        def call() -> None:
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001  # it is raised below
                result.set_exception(error)

        run = copy_context().run  # a handler has the context variables of the caller's thread
        threading.Thread(target=run, args=(call,), name="cloudevents_kafka.processor", daemon=True).start()
        until = math.inf if seconds is None else time.monotonic() + seconds
        while wait((result,), self.left(POLL_SECONDS)).not_done:
            self._serving.poll()
            if time.monotonic() > until + POLL_SECONDS:  # after the time limit of the call itself
                raise TransactionError(f"a call of the client did not return in {seconds:g} s")
        return result.result()

    def abort(self, error: BaseException | None = None) -> Exception | None:
        """Abort the transaction; return the cause of the abort: ``error``, or a delivery that failed before.

        Messages that were already sent must arrive before the abort. With brokers of Kafka 4, a message that
        arrives after the abort causes an error from which the producer does not recover. Messages that are
        still in the client are dropped.
        """
        if error and (of_client := client_error(error)) is not None and of_client.fatal():
            raise self.failure(of_client) from error
        reason = error if isinstance(error, Exception) else None
        try:
            self._drain()
            self._producer.flush(0)
        except DeliveryError as undelivered:
            reason = undelivered
        except Exception as failed:
            if (of_client := client_error(failed)) is None:
                raise
            raise self.failure(of_client) from failed
        self.call("abort_transaction")
        return reason

    def _drain(self) -> None:
        """Drop the producer's unsent messages, and wait up to the timeout for the messages that were sent.

        The purge and the wait are repeated, because the client may have stopped sending, and because a purge
        misses messages that the client moves during the purge.
        """
        client = self._producer.producer
        deadline = time.monotonic() + self._timeout
        pending = True
        while pending and time.monotonic() < deadline:
            drop = partial(_drop, client, self.left(POLL_SECONDS), in_flight=False)
            pending = self.in_thread(drop, self._timeout) > 0

    def call(self, method: str, *arguments: object, timed: bool = True) -> None:
        """Call a method of the producer; repeat the call after retriable errors, up to the timeout."""
        from confluent_kafka import KafkaException

        call = partial(getattr(self._producer.producer, method), *arguments)
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                if timed:
                    self.in_thread(partial(call, min(_CALL_SECONDS, self._timeout)), self._timeout)
                else:
                    call()
            except KafkaException as error:
                reason = error.args[0]
                if reason.txn_requires_abort():
                    raise
                if method == "init_transactions" and reason.name() == "_STATE":
                    return  # it was called before
                if reason.fatal() or not reason.retriable():
                    raise self.failure(reason) from error
                if time.monotonic() > deadline:
                    raise TransactionError(
                        reason, f"{method} did not succeed in {self._timeout:g} s"
                    ) from error
                time.sleep(0.1)
                self._serving.poll()
            else:
                return

    def committed(self, client: Any, places: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
        """Return the offsets that the group of a consumer's client has committed.

        The client waits for the end of transactions that have sent offsets of the group.
        """
        from confluent_kafka import KafkaException

        try:
            ask = partial(client.committed, places, self._timeout)
            found: Sequence[TopicPartition] = self.in_thread(ask, self._timeout)
            check_committed(found)
        except (KafkaException, ConsumeError) as error:
            raise TransactionError(client_error(error) or error, _IN_DOUBT, _RUN_AGAIN) from error
        return found

    def explain(self, error: Exception) -> str:
        """Return the text of an error that has aborted a transaction, with the reason if it is known."""
        slow = self._time.find_slow_record() or self._serving.explain(_name_of(client_error(error)))
        return str(error) if slow is None else f"{error}; {slow}"

    def failure(self, error: Any, what: str = "") -> TransactionError:
        """Return a `TransactionError` for a producer's error; a time-out is mentioned if it is likely."""
        name = _name_of(error)
        if (expelled := self._serving.explain(name)) is not None:
            return TransactionError(error, f"{what}, and {expelled}" if what else expelled, _START_AGAIN)
        if name not in _ENDED or (explained := self._time.explain_end()) is None:
            advice = _MAY_HAVE_TIMED_OUT if name in _FENCED and self._time.may_have_timed_out else ""
            return TransactionError(error, what or _CANNOT_GO_ON, _advice_for(name) + advice)
        reason, advice = explained
        return TransactionError(error, f"{what}, and {reason}" if what else reason, advice)


def _drop(client: Any, seconds: float, *, in_flight: bool) -> int:
    """Drop the messages in the producer's client; return how many are still pending after ``seconds``."""
    client.purge(in_queue=True, in_flight=in_flight)
    pending: int = client.flush(seconds)
    return pending


def client_error(error: BaseException) -> Any:
    """Return the ``KafkaError`` in a ``KafkaException``, or None for other exceptions."""
    reason = error.args[0] if error.args else None
    return reason if callable(getattr(reason, "txn_requires_abort", None)) else None


def is_abortable(error: Exception) -> bool:
    """Return whether a new transaction for the same records may succeed after an error."""
    reason = client_error(error)
    # After a failed delivery, produce() fails with _STATE.
    return reason is not None and (reason.txn_requires_abort() or reason.name() == "_STATE")


class TransactionError(CloudEventsKafkaError):
    """The producer cannot continue with transactions; ``error`` is the error of the client or of a delivery.

    Either the last batch was not committed, or its transaction is still open, or its commit was not answered.
    The next process ends the transaction, and so does a new producer with the same ``transactional.id``. In
    all cases, no record is lost, and no record is written twice, even if the same consumer is used again.

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
    """Return the name of a client's error, or an empty text for other errors."""
    return str(error.name()) if callable(getattr(error, "name", None)) else ""


def _advice_for(name: str) -> str:
    if name in _FENCED:
        return "another process has the same transactional.id: use a unique id"
    if name == "_NOT_CONFIGURED":
        return "create the Producer with a transactional.id"
    return _START_AGAIN
