"""`EventConsumer`: reads events through a Kafka client that is passed, or that is made from settings.

Each record is returned as a `Decoded` or an `Undecodable` object, so a record that is not a valid event does
not stop a loop. Subscribe, seek and commit with methods of `EventConsumer`; pause partitions with the wrapped
Kafka client. A loop over an `EventConsumer` polls one record at a time. In the body of the loop, the client's
position is therefore the offset after the current record, and the client commits no later record. The method
`batches` is faster, but the client's position is then after the last record of the batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar, Unpack, overload

from cloudevents_kafka.binding import Decoded, ReverseKeyMapper, Undecodable
from cloudevents_kafka.clients._closing import close_before, leave
from cloudevents_kafka.clients._errors import ConsumeError, OnError, Raised, explain_unread
from cloudevents_kafka.clients._gathered import Readable, check_committed, ends_of, start_of
from cloudevents_kafka.clients._health import ConsumerHealth
from cloudevents_kafka.clients._places import PartitionName
from cloudevents_kafka.clients._policy import Action, OnFailure, RunPolicy, RunResult
from cloudevents_kafka.clients._protocols import (
    Consumer,
    ConsumerT,
    check_client,
    check_handler,
    check_max_records,
    check_producer,
    check_seconds,
    check_topics,
    expels_after,
)
from cloudevents_kafka.clients._reading import DataReader, ItemT_co, ReadOptions
from cloudevents_kafka.clients._settings import closed_on_error, make_consumer
from cloudevents_kafka.clients.dead_letters import DeadLetters
from cloudevents_kafka.clients.typed_data import MYPY, DataHook, TypesByName, UntypedData
from cloudevents_kafka.errors import DecodeError
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients._thread_run import ThreadRun
    from cloudevents_kafka.clients._workers import Threads
    from cloudevents_kafka.clients.observing import Observer
    from cloudevents_kafka.clients.producer import EventProducer

__all__ = [
    "Action",
    "ConsumeError",
    "ConsumerHealth",
    "DataReader",
    "EventConsumer",
    "OnError",
    "OnFailure",
    "RunResult",
]

_POLL_SECONDS: Final = 0.5  # the longest wait for a record before stop() has an effect
_WAIT_SECONDS: Final = 0.05  # a call that takes longer has waited for records
_TURN_SECONDS: Final = 0.002  # for other threads: the client makes one call at a time, and they try each ms

OnRebalance = Callable[[Any, "list[TopicPartition]"], object]
"""A function that is called with the client and the partitions that were assigned, revoked or lost."""

T = TypeVar("T")


class EventConsumer(Readable[ItemT_co], Generic[ConsumerT, ItemT_co]):
    """Reads CloudEvents through ``consumer``: a Kafka client, or librdkafka settings for a new client.

    The attribute ``consumer`` is the Kafka client; `close` closes this client. In a client that is made from
    settings, ``enable.auto.commit`` is False. The constructor subscribes the client to ``topics``, as
    `subscribe` does; leave ``topics`` out if the client is subscribed already.

    A record that is not a valid event is returned as `Undecodable`; with ``strict``, the `DecodeError` of the
    record is raised. The option ``lenient`` has the same meaning as in `decode`. ``reverse_key_mapper`` is a
    function that takes an event and its record, and returns the event that the consumer then returns.

    ``event.data`` is decoded when it is first used, and raises `DataError` if the data cannot be decoded.
    With ``eager_data``, the data is decoded when the record is read. If decoding with ``eager_data`` fails,
    the record is returned as an `Undecodable` object with a `BrokenData` error. ``data_type`` implies
    ``eager_data``: ``event.data`` is an instance of ``data_type``, which is a pydantic model, a msgspec
    Struct, a dataclass or another type (see `typed_data`). ``data_type`` may also be a mapping from the
    ``type`` of events to such Python types. If the mapping does not contain the ``type`` of an event, the
    data of this event is not converted. ``data_reader`` is a function that takes an event and its record, and
    returns ``event.data`` (see `Event.read_with`). If ``data_type`` is also passed, the value that
    ``data_reader`` returns is converted to this type.

    ``on_error`` is a function that is called with each `ConsumeError` of the client, and returns whether
    reading continues. If ``on_error`` is missing or returns None, an error that is ``final`` is raised, and
    any other error is logged as a warning. The documentation of `ConsumeError` says which errors are final.
    ``observers`` are called with each record that is read or handled, and with committed offsets: see
    `Observer`.

    Raises `ValueError` for wrong settings. Raises `TypeError` for an unsuitable object, such as a class or an
    asyncio client.

    Examples:
        >>> from cloudevents_kafka import Decoded, EventConsumer
        >>> settings = {"bootstrap.servers": "localhost:9092", "group.id": "mail"}
        >>> settings["auto.offset.reset"] = "earliest"
        >>> with EventConsumer(settings, topics=["orders"]) as events:
        ...     for item in events:
        ...         print(item.event.data if isinstance(item, Decoded) else item.error)
        ...         events.stop()
        {'total': '9.50'}
    """

    if not MYPY:

        @overload
        def __init__(
            self: EventConsumer[ConsumerT, Decoded[T | Any]],
            consumer: ConsumerT | Mapping[str, Any],
            *,
            strict: Literal[True],
            data_type: TypesByName[T],
            **options: Unpack[ReadOptions],
        ) -> None: ...

        @overload
        def __init__(
            self: EventConsumer[ConsumerT, Decoded[T | Any] | Undecodable],
            consumer: ConsumerT | Mapping[str, Any],
            *,
            strict: bool = ...,
            data_type: TypesByName[T],
            **options: Unpack[ReadOptions],
        ) -> None: ...

    @overload
    def __init__(
        self: EventConsumer[ConsumerT, Decoded],
        consumer: ConsumerT | Mapping[str, Any],
        *,
        strict: Literal[True],
        data_type: UntypedData = ...,
        **options: Unpack[ReadOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: EventConsumer[ConsumerT, Decoded[T]],
        consumer: ConsumerT | Mapping[str, Any],
        *,
        strict: Literal[True],
        data_type: type[T] | DataHook[T],
        **options: Unpack[ReadOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: EventConsumer[ConsumerT, Decoded | Undecodable],
        consumer: ConsumerT | Mapping[str, Any],
        *,
        strict: bool = ...,
        data_type: UntypedData = ...,
        **options: Unpack[ReadOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: EventConsumer[ConsumerT, Decoded[T] | Undecodable],
        consumer: ConsumerT | Mapping[str, Any],
        *,
        strict: bool = ...,
        data_type: type[T] | DataHook[T],
        **options: Unpack[ReadOptions],
    ) -> None: ...

    def __init__(
        self,
        consumer: ConsumerT | Mapping[str, Any],
        *,
        strict: bool = False,
        lenient: bool = False,
        reverse_key_mapper: ReverseKeyMapper | None = None,
        data_reader: DataReader | None = None,
        eager_data: bool = False,
        data_type: Any = None,
        on_error: OnError | None = None,
        topics: Sequence[str] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        settings: Mapping[str, Any] | None = consumer if isinstance(consumer, Mapping) else None
        raised = Raised()
        client: Any = consumer if settings is None else make_consumer(settings, raised.keeping)
        with closed_on_error(None if settings is None else client):
            check_client(client, Consumer)
            super().__init__(
                client,
                settings,
                strict=strict,
                lenient=lenient,
                reverse_key_mapper=reverse_key_mapper,
                data_reader=data_reader,
                eager_data=eager_data,
                data_type=data_type,
                on_error=on_error,
                observers=observers,
            )
        self.consumer: ConsumerT = client
        self.raised = raised
        """The error that a callback of the client has raised; it is raised again after records are stored."""
        self._client: Any = client  # a user's class may have no methods of a group
        self._left: list[TopicPartition] = []  # the first unfinished offsets after `run`
        self._is_away = False  # whether the group did not answer the last request of a run
        self._run: ThreadRun | None = None
        self._closes: bool | None = None  # at the end of a processor's run; None if no processor reads
        self._workers: Threads | None = None  # of the last run, if its handlers have not returned
        self._has_returned = threading.Event()  # unset while a processor's handler has a batch
        self._has_returned.set()
        self._in_doubt: frozenset[PartitionName] = frozenset()  # of a processor's commit without an answer
        self._lock = threading.RLock()  # protects the run; a signal handler may call `close`
        self.hand_over: Callable[..., object] = self._hand_over
        """A function that the polling thread calls with partitions that are revoked or lost."""
        if topics is not None:
            with closed_on_error(None if settings is None else client):
                self.subscribe(topics)

    def subscribe(
        self,
        topics: Sequence[str],
        *,
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
    ) -> None:
        """Subscribe the client to topics, or to patterns that begin with ``^``; replace all earlier topics.

        After a call of `subscribe`, `run` is informed when partitions are revoked. `run` then passes no
        further record of the revoked partitions to the handler, waits for the running handlers, and commits
        the handled records. ``on_assign``, ``on_revoke`` and ``on_lost`` are called with the client and the
        partitions. During a run, ``on_revoke`` is called after `run` has committed the finished records. If
        partitions are lost, `run` neither waits nor commits, because another member may already read them.
        """
        check_topics(topics)
        check_callbacks(on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        keeping = self.raised.keeping
        self._client.subscribe(
            list(topics),
            on_assign=keeping(partial(self._assign, on_assign)),
            on_revoke=keeping(partial(self._revoke, on_revoke, lost=False)),
            on_lost=keeping(partial(self._revoke, on_lost or on_revoke, lost=True)),
        )
        self.is_subscribed = True

    def _assign(self, then: OnRebalance | None, client: Any, partitions: list[TopicPartition]) -> None:
        self.vitals.note_rebalance()
        if then is not None:
            then(client, partitions)

    def _revoke(
        self, then: OnRebalance | None, client: Any, partitions: list[TopicPartition], *, lost: bool
    ) -> None:
        try:
            self.hand_over(partitions, lost=lost)
            if then is not None:
                then(client, partitions)
        finally:  # after the last commit for these partitions
            self.note_revoked(partitions)

    def _hand_over(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        self.discard(partitions)
        if self._run is not None:
            self._run.revoke(partitions, lost=lost)

    def poll(self, timeout: float = 1.0) -> ItemT_co | None:
        """Return the next record, or None if no record arrives within ``timeout`` seconds.

        Raises `ConsumeError` for an error from which the client does not recover, and `RuntimeError` if a
        `run` or a processor currently reads, or if the consumer is closed. With ``strict``, `poll`
        raises the `DecodeError` of a record that is not a valid event.
        """
        # While one thread polls again and again, the client delays the calls of `close` in another thread.
        if self._closed and self.only_loop.name is None:
            self.check_open("poll()")
        return self._next(timeout)

    def _next(self, timeout: float) -> ItemT_co | None:
        if self.only_loop.name is not None:
            self.only_loop.check("poll()")
        gathered = self._gathered
        if gathered.waiting:
            gathered.drop_moved()
        message = gathered.waiting.pop(0) if gathered.waiting else self._poll(timeout)
        if message is None or not (message.error() is None or gathered.is_record(message)):
            return None
        try:
            return gathered.read(message)
        except DecodeError:
            raise
        except BaseException:
            if self.only_loop.name is not None:  # the run ends, and the next run begins with this record
                gathered.waiting.insert(0, message)
            raise

    def _poll(self, timeout: float) -> Any:
        if not self.has_begun:
            self.check_begun(self.consumer)
        try:
            message = self.consumer.poll(timeout)
        except SystemError as error:
            raise explain_unread(error) from error
        except RuntimeError:
            if self._closed:  # by another thread, while this thread waited for the client
                return None
            raise
        self.note_poll(self.consumer, () if message is None else (message,))
        if message is None and timeout:
            time.sleep(_TURN_SECONDS)
        if self.raised.error is not None:
            if message is not None:
                self._gathered.add((message,))
            self.raised.check()
        return message

    def __iter__(self) -> Iterator[ItemT_co]:
        """Iterate over records until `stop` or `close`."""
        return self.items()

    def items(self, *, idle_timeout: float | None = None) -> Iterator[ItemT_co]:
        """Yield records until `stop`, `close`, or ``idle_timeout`` seconds without a record."""
        self.check_open("items()")
        check_seconds("idle_timeout", idle_timeout)
        self.only_loop.check("items()")
        wait = _POLL_SECONDS if idle_timeout is None else min(_POLL_SECONDS, idle_timeout)
        idle_since = time.monotonic()
        while not self._stopped:
            item = self._next(wait)
            if item is not None:
                yield item
                if idle_timeout is not None:
                    idle_since = time.monotonic()
            elif idle_timeout is not None and time.monotonic() - idle_since >= idle_timeout:
                return

    def batches(
        self, max_records: int = 100, timeout: float = _POLL_SECONDS, *, idle_timeout: float | None = None
    ) -> Iterator[list[ItemT_co]]:
        """Yield lists of records that arrive within ``timeout`` seconds; no list is empty.

        The iteration ends at `stop` or `close`, or if no record arrives within ``idle_timeout`` seconds. When
        a list is yielded, the client's position is after the whole list: process all records of the list
        before you commit. A list of 100 records fits into the caches of a CPU; in a longer list, each record
        takes more time. If the client returns an error, the records before the error are yielded first, and
        then the error is raised. The next iteration, over the consumer or over `batches`, returns the records
        after the error. If partitions are revoked, or `seek` moves a position, records of these partitions
        that were fetched before are dropped.
        """
        if self.only_loop.name is None:  # a loop ends without an error after a call of `close`
            self.check_open("batches()")
        check_max_records(max_records)
        check_seconds("idle_timeout", idle_timeout)
        gathered = self._gathered
        idle_since = time.monotonic()
        while not self._stopped:
            self.only_loop.check("batches()")
            if gathered.waiting:
                gathered.drop_moved()
            has_waited = False
            if not gathered.waiting:
                self.check_begun(self.consumer)
                has_waited = self._consume(max_records, timeout)
            batch = gathered.take_batch(keeps_failed=self.only_loop.name is not None)
            if batch:
                yield batch
                idle_since = time.monotonic()
            elif idle_timeout is not None and time.monotonic() - idle_since >= idle_timeout:
                return
            if has_waited or not batch:
                time.sleep(_TURN_SECONDS)

    def _consume(self, max_records: int, timeout: float) -> bool:
        """Fetch records, and return whether the client has waited for them."""
        began = time.monotonic()
        try:
            messages = self.consumer.consume(max_records, timeout)
        except SystemError as error:
            raise explain_unread(error) from error
        except RuntimeError:
            if self._closed:
                return False
            raise
        has_waited = time.monotonic() - began > _WAIT_SECONDS
        self._gathered.add(messages)
        self.note_poll(self.consumer)
        self.raised.check()
        return has_waited

    def seek(self, to: Decoded | Undecodable | Record | TopicPartition) -> None:
        """Continue reading at a record, or at an offset of a partition.

        Records of the same partition that were fetched but not returned are dropped. Raises `TypeError` if
        the argument is neither a record nor an offset of a partition, and the errors of the client's
        ``seek``, such as ``KafkaException`` if the partition is not assigned.
        """
        place = start_of(to)
        self._client.seek(place)
        self.discard([place])

    def bound_revocation(self, seconds: float | None) -> float:
        """Return how long, in seconds, a run may wait for running handlers after a revocation."""
        return self._gathered.bound_revocation(seconds)

    def discard(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Drop the records that were fetched but not returned yet.

        If ``partitions`` is None, the records of all partitions are dropped. The client's position stays
        after the dropped records. Call `seek` next, unless the partitions were revoked.
        """
        self._gathered.discard(partitions)

    def commit(
        self,
        done: Decoded | Undecodable | Record | Iterable[Decoded | Undecodable | Record],
        *,
        asynchronous: bool = False,
    ) -> None:
        """Commit the offset after a record, or after the last record of each partition of a batch.

        The records of a batch may be passed in any order. `commit` does not commit records that were fetched
        but not returned yet. The Kafka client's own ``commit`` without arguments may commit records that were
        fetched but not returned. Raises the errors of the client, `TypeError` if the argument is not a record
        or a batch, and `ConsumeError` if the commit of a partition fails. With ``asynchronous``, the client
        reports a failed commit only to the function in its setting ``on_commit``.
        """
        offsets = ends_of(done)
        if offsets:
            began = time.monotonic()
            check_committed(self._client.commit(offsets=offsets, asynchronous=asynchronous) or ())
            if (observers := self._gathered.observers) is not None:
                observers.of_places("committed", offsets, self._client, began)

    def run(
        self: EventConsumer[Any, Decoded[T] | Undecodable],
        handler: Callable[[Decoded[T]], object],
        *,
        on_failure: OnFailure = "fail",
        tries: int = 1,
        backoff: float = 0.5,
        retry_on: type[Exception] | tuple[type[Exception], ...] | None = None,
        concurrency: int = 1,
        producer: EventProducer[Any] | None = None,
        max_ahead: int = 1000,
        max_bytes: int = 67_108_864,
        max_age: float | None = 300.0,
        revoke_timeout: float | None = None,
        stop_timeout: float = 20.0,
        idle_timeout: float | None = None,
        observers: Sequence[Observer] = (),
    ) -> RunResult:
        """Call ``handler`` with each event, commit the handled records, and return the counts of the run.

        The run ends at SIGTERM, after a call of `stop`, or if no record arrives within ``idle_timeout``
        seconds. At the end, the run passes no further record to ``handler``, and waits up to ``stop_timeout``
        seconds for the running handlers. The offset of a record that is still unfinished then is not
        committed; the next run, or another member of the group, reads the record again. The consumer stays
        open. The setting ``enable.auto.commit`` of the Kafka client must be False. If ``enable.auto.commit``
        is True, the client itself commits all records that were read, even if they are not handled yet. If
        the group's offsets show that the client has committed an unfinished record, `ConsumeError` is raised.

        ``on_failure`` says what to do with a failed record: a record that is not an event, or whose handler
        has raised an error ``tries`` times. ``"fail"`` raises the error, ``"skip"`` counts and logs the
        record, and a `DeadLetters` object sends the record to a topic for dead letters and waits for the
        delivery. ``on_failure`` may also be a function that takes a record and its error, and returns
        ``"fail"``, ``"skip"`` or a `DeadLetters` object. After an error of a type in ``retry_on``, the
        handler is called with the record again. By default, the handler is called again after every error
        except `DecodeError` and `DataError`. After a `DecodeError` or a `DataError`, the record is tried
        again only if a failed connection, a time-out, or an HTTP answer with the status 429 or 5xx has caused
        the error. The wait before the second call of the handler has a random length between half of
        ``backoff`` seconds and ``backoff`` seconds. Both limits double with each further try, but no wait is
        longer than 30 s. While a record waits for another try, records with other keys are handled. If a
        Kafka client has a fatal error, the run raises this error and does not use ``on_failure``, because
        the record is not at fault.

        ``handler`` is called in separate threads; ``concurrency`` is the number of these threads. Records of
        a topic that have the same key are handled one after another, in the order in which they were read.
        Records of a partition that have no key are also handled one after another, in the order in which they
        were read. Records with different keys may be handled in any order, even if ``concurrency`` is 1,
        because the keys take turns. If ``producer`` is passed, a record is finished only when all events that
        its handler has sent with this producer are delivered. If the delivery of such an event fails, the
        record has failed.

        The offset of a record is committed when this record and all earlier records of its partition are
        finished. If the group has no offset for a partition, the first commit, about a second after the first
        record, contains the offset of this record even if the record is unfinished. If the process is killed
        after this commit, ``auto.offset.reset`` cannot skip the record. In each partition, ``handler`` is
        called for at most ``max_ahead`` records after the oldest unfinished record. If the process is killed,
        up to ``max_ahead`` finished records of each partition that come after an unfinished record are
        handled again. Records that were finished after the last commit are also handled again. If the next
        reader is also a `run`, it handles again only the records that were finished since the last commit. If
        a record is unfinished after ``max_age`` seconds, a warning is logged. All records that wait in memory
        may use at most ``max_bytes`` in total, by default 64 MiB; a record counts as its size plus 1 KiB.
        Each partition has a share of ``max_bytes``. When the waiting records of a partition fill this share,
        the partition is not read until half of the share is free. All other partitions are still read
        meanwhile. When partitions are revoked, `run` waits up to ``revoke_timeout`` seconds for the handlers
        that process records of these partitions, and commits the finished records. This wait requires that
        the client was subscribed with `EventConsumer.subscribe`. The default of ``revoke_timeout`` is 60
        seconds, or half of ``max.poll.interval.ms`` if this half is shorter. For aiokafka, the default of
        ``revoke_timeout`` is at most half of ``rebalance_timeout_ms``. If you pass a confluent-kafka client,
        the run does not know ``max.poll.interval.ms`` until the group expels the client for the first time.
        ``observers`` are called in addition to the observers that were passed to the consumer.

        Raises the error of a failed record, `ConsumeError`, `DeadLetterError`, `ValueError` for wrong
        options, and `RuntimeError` if another run or a processor already uses the consumer. After an error,
        the run waits up to ``stop_timeout`` seconds for the running handlers. The next run also waits for
        handlers that are still running, so that a record is never in two handlers at once.

        Examples:
            >>> with EventConsumer(consumer) as events:
            ...     events.run(lambda item: print(item.event.id), on_failure="skip", idle_timeout=0.1)
            1
            2
            RunResult(handled=2, skipped=0, dead=0, retried=0)
        """
        from cloudevents_kafka.clients._workers import Threads  # not imported without a run

        self.check_open("run()", goes_on=True)
        check_handler(handler)
        check_producer(producer, "EventProducer")
        policy = RunPolicy(
            read=self._gathered.read_item,
            expels=expels_after(self._settings, self.consumer),
            on_failure=on_failure,
            tries=tries,
            backoff=backoff,
            retry_on=retry_on,
            concurrency=concurrency,
            max_ahead=max_ahead,
            max_bytes=max_bytes,
            max_age=max_age,
            revoke_timeout=revoke_timeout,
            stop_timeout=stop_timeout,
            idle_timeout=idle_timeout,
            observers=observers,
            observed=self._gathered.observers,
        )
        if isinstance(on_failure, DeadLetters):
            on_failure.check_plain()
        with self.only_loop.begin("run()"):
            return self._handle_all(Threads(policy, handler, producer))

    def _handle_all(self, workers: Threads) -> RunResult:
        from cloudevents_kafka.clients._thread_run import ThreadRun

        self._run = run = ThreadRun(self, workers, self._workers)
        self.vitals.in_work = workers.schedule.in_work
        try:
            with self._gathered.observed(workers.policy.observed):
                return run.handle_all()
        finally:
            with self._lock:
                self._run, self._left = None, run.progress.left
                self._is_away = run.progress.is_away
                self._workers = workers if workers.schedule.in_work else self._workers
            try:
                if run.closes:
                    self._close()
            finally:
                run.ended.set()

    def stop(self) -> None:
        """End each iteration after its current record; a signal handler or another thread may call `stop`."""
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether `stop` or `close` was called."""
        return self._stopped

    def close(self) -> None:
        """Stop, and close the wrapped consumer, which leaves its group.

        A client with a ``group.instance.id`` stays in the group until its session times out, so a restart
        causes no rebalance.

        If `close` is called during a run, the consumer is closed after the end of this run. If a processor
        reads from the consumer, `close` returns at once, and the consumer is closed after the processor's
        run.
        """
        self._stopped = self._closed = True
        with self._lock:
            run, is_read = self._run, self._closes is not None
            if run is not None:
                run.closes = True
            elif is_read:
                self._closes = True
        if run is not None and threading.current_thread() not in run.threads:
            run.ended.wait()
        elif run is None and not is_read:
            self._close()

    @contextmanager
    def closing_later(self) -> Iterator[None]:
        """Delay calls of `close` until the end of the block. A processor reads in this block. Yields once."""
        self._closes = False
        try:
            yield
        finally:
            with self._lock:
                closes, self._closes = self._closes, None
            if closes:
                self._close()

    def _close(self) -> None:
        left, self._left = self._left, []
        try:
            if self._settings is None:
                close_before(self.consumer, left, self._gathered.starts, is_away=self._is_away)
            else:  # this client commits nothing by itself
                leave(self._client)
        finally:
            self.note_close()
        self.raised.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
