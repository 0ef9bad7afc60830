"""`AsyncEventConsumer`: reads events through a Kafka consumer, for asyncio.

A `Source` fetches messages. The items that an `AsyncEventConsumer` returns are made by the code of
`EventConsumer`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar, Unpack, overload

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients._gathered import Gathered, Readable, ends_of, start_of
from cloudevents_kafka.clients._health import ConsumerHealth
from cloudevents_kafka.clients._policy import RunOptions, RunPolicy, RunResult
from cloudevents_kafka.clients._protocols import (
    AnyConsumerT,
    Consumer,
    check_handler,
    check_max_records,
    check_producer,
    check_seconds,
    check_topics,
    expels_after,
    is_awaited,
)
from cloudevents_kafka.clients._reading import ItemT_co, ReadOptions
from cloudevents_kafka.clients._settings import closed_on_error
from cloudevents_kafka.clients.aio._aiokafka_source import AiokafkaSource
from cloudevents_kafka.clients.aio._checks import check_run
from cloudevents_kafka.clients.aio._loop import Turn
from cloudevents_kafka.clients.aio._source import PolledSource, Source
from cloudevents_kafka.clients.consumer import EventConsumer, OnRebalance
from cloudevents_kafka.clients.typed_data import MYPY, DataHook, TypesByName, UntypedData
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.aio._tasks import Tasks
    from cloudevents_kafka.clients.aio.producer import AsyncEventProducer

_BATCH_SECONDS: Final = 0.5

T = TypeVar("T")


class AsyncReadOptions(ReadOptions, total=False):
    """The options of `AsyncEventConsumer` that do not change the type of the returned items."""

    max_records: int


class AsyncEventConsumer(Generic[AnyConsumerT, ItemT_co]):
    """Reads CloudEvents through ``consumer``; the attribute ``consumer`` is the Kafka client.

    The argument ``consumer`` is a ``confluent_kafka.Consumer``, the settings for a new one, or an
    ``aiokafka.AIOKafkaConsumer``, which you must start. If a call of a confluent-kafka client may wait, a
    separate thread makes the call. The client is subscribed to ``topics``, as with `subscribe`. To pause and
    resume partitions, call ``pause`` and ``resume`` of the Kafka client. The other options are the options of
    `EventConsumer`. Functions that are passed as options are called on the event loop, so they must not wait.

    When a task asks for a record and all fetched records were returned, up to ``max_records`` further records
    are fetched. The client's position may therefore be ahead of the returned records: commit the returned
    records with `commit`. If a task is cancelled, no fetched record is lost: the next task that asks for a
    record receives it. After `close`, the group reads again all records that were fetched but not returned,
    even if the client commits automatically.

    Unless a `run` reads, any number of tasks may read from the consumer; each record is returned to only one
    of them. Raises `TypeError` if ``consumer`` is an unsuitable object, such as a client of another library.

    Examples:
        >>> import asyncio
        >>> from cloudevents_kafka import AsyncEventConsumer
        >>> settings = {"bootstrap.servers": "localhost:9092", "group.id": "mail"}
        >>> settings["auto.offset.reset"] = "earliest"
        >>> async def main() -> None:
        ...     async with AsyncEventConsumer(settings, topics=["orders"], strict=True) as events:
        ...         async for item in events:
        ...             print(item.event.id)
        ...             events.stop()
        >>> asyncio.run(main())
        1
    """

    if not MYPY:

        @overload
        def __init__(
            self: AsyncEventConsumer[AnyConsumerT, Decoded[T | Any]],
            consumer: AnyConsumerT | Mapping[str, Any],
            *,
            strict: Literal[True],
            data_type: TypesByName[T],
            **options: Unpack[AsyncReadOptions],
        ) -> None: ...

        @overload
        def __init__(
            self: AsyncEventConsumer[AnyConsumerT, Decoded[T | Any] | Undecodable],
            consumer: AnyConsumerT | Mapping[str, Any],
            *,
            strict: bool = ...,
            data_type: TypesByName[T],
            **options: Unpack[AsyncReadOptions],
        ) -> None: ...

    @overload
    def __init__(
        self: AsyncEventConsumer[AnyConsumerT, Decoded],
        consumer: AnyConsumerT | Mapping[str, Any],
        *,
        strict: Literal[True],
        data_type: UntypedData = ...,
        **options: Unpack[AsyncReadOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncEventConsumer[AnyConsumerT, Decoded[T]],
        consumer: AnyConsumerT | Mapping[str, Any],
        *,
        strict: Literal[True],
        data_type: type[T] | DataHook[T],
        **options: Unpack[AsyncReadOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncEventConsumer[AnyConsumerT, Decoded | Undecodable],
        consumer: AnyConsumerT | Mapping[str, Any],
        *,
        strict: bool = ...,
        data_type: UntypedData = ...,
        **options: Unpack[AsyncReadOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncEventConsumer[AnyConsumerT, Decoded[T] | Undecodable],
        consumer: AnyConsumerT | Mapping[str, Any],
        *,
        strict: bool = ...,
        data_type: type[T] | DataHook[T],
        **options: Unpack[AsyncReadOptions],
    ) -> None: ...

    def __init__(
        self,
        consumer: AnyConsumerT | Mapping[str, Any],
        *,
        max_records: int = 100,
        topics: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        is_settings = isinstance(consumer, Mapping)
        self.is_aiokafka = not is_settings and is_awaited(consumer, Consumer, "getmany", "start", "stop")
        self._aiokafka: AiokafkaSource | None = None
        self._events: Readable[ItemT_co]
        if self.is_aiokafka:
            client: Any = consumer
            self._events = Readable(consumer, None, **options)
            self._source: Source = AiokafkaSource(self._events, client, max_records)
            self._aiokafka = self._source
        else:
            self._events = self._polled = EventConsumer[Any, ItemT_co](consumer, **options)
            client = self._polled.consumer
            with closed_on_error(client if is_settings else None):
                self._source = PolledSource(self._polled, client, max_records)
        self.consumer: AnyConsumerT = client
        self._gathered: Gathered[ItemT_co] = self._source.gathered
        self._turn = Turn()
        self._closing: asyncio.Task[None] | None = None
        self._tasks: Tasks | None = None  # of the current run
        self._before: Tasks | None = None  # of the last run, if its handlers have not returned
        self._ended = asyncio.Event()  # set after the last run
        if topics is not None:
            with closed_on_error(client if is_settings else None):
                self.subscribe(topics)

    def subscribe(
        self,
        topics: Sequence[str],
        *,
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
    ) -> None:
        """Subscribe the client to topics, or to patterns that begin with ``^``.

        The arguments are the arguments of `EventConsumer.subscribe`. A callback such as ``on_revoke`` is
        called in the thread that polls the client; with aiokafka, it is called on the event loop. With
        aiokafka, ``topics`` must be either names of topics or one pattern. aiokafka reports lost partitions
        as revoked partitions.
        """
        if self._aiokafka is None:
            self._polled.subscribe(topics, on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
            return
        if on_lost is not None:
            raise ValueError(
                "on_lost must be None for aiokafka, which reports lost partitions as revoked; pass on_revoke"
            )
        check_topics(topics)
        check_callbacks(on_assign=on_assign, on_revoke=on_revoke)
        self._aiokafka.subscribe(topics, on_assign, on_revoke)
        self._events.is_subscribed = True

    @property
    def is_subscribed(self) -> bool:
        """Whether `subscribe` was called; only then is `run` informed about revoked partitions."""
        return self._events.is_subscribed

    async def run(
        self: AsyncEventConsumer[Any, Decoded[T] | Undecodable],
        handler: Callable[[Decoded[T]], Awaitable[object]],
        *,
        producer: AsyncEventProducer[Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Await ``handler`` for each event, commit the handled records, and return the counts of the run.

        The options, the guarantees and the errors are the same as for `EventConsumer.run`. For example, up to
        ``concurrency`` records with different keys are handled at the same time. ``producer`` is an
        `AsyncEventProducer`; `DeadLetters` may send with an `EventProducer` or an `AsyncEventProducer`.
        `stop`, a cancellation, and SIGTERM in the main thread end the run. If a handler does not return
        within ``stop_timeout`` seconds after the run has begun to end, the handler is cancelled.

        Examples:
            >>> import asyncio
            >>> from cloudevents_kafka import AsyncEventConsumer, Decoded
            >>> async def handle(item: Decoded) -> None:
            ...     print(item.event.id)
            >>> async def main() -> None:
            ...     async with AsyncEventConsumer(consumer) as events:
            ...         print(await events.run(handle, on_failure="skip", idle_timeout=0.1))
            >>> asyncio.run(main())
            1
            2
            RunResult(handled=2, skipped=0, dead=0, retried=0)
        """
        from cloudevents_kafka.clients.aio._task_run import TaskRun  # not imported without a run
        from cloudevents_kafka.clients.aio._tasks import Tasks

        self._events.check_open("run()", goes_on=True)
        check_handler(handler, awaited=True)
        check_producer(producer, "AsyncEventProducer")
        events, source = self._events, self._source
        observed, expels = self._gathered.observers, expels_after(events._settings, self.consumer)
        policy = RunPolicy(read=events.read_item, expels=expels, observed=observed, **options)
        if self.is_aiokafka:
            check_run(self.consumer)
        with events.only_loop.begin("run()"), self._gathered.observed(policy.observed):
            events.only_loop.thread = 0  # the run reads with the source, and no other code reads
            if producer is not None:
                producer.count_sends()
            self._tasks = tasks = Tasks(policy, handler, counts_sends=producer is not None)
            run = TaskRun(events, source, tasks, self._before)
            events.vitals.in_work = tasks.schedule.in_work
            source.hand_over = run.revoke
            self._ended.clear()
            try:
                return await run.handle_all()
            finally:
                source.hand_over = self._tasks = None
                self._before = tasks if tasks.schedule.in_work else self._before
                if self._aiokafka is None:
                    self._polled._left, self._polled._is_away = run.progress.left, run.progress.is_away
                self._ended.set()
                source.release()

    @property
    def stopped(self) -> bool:
        """Whether `stop` or `close` was called."""
        return self._events._stopped

    async def poll(self, timeout: float = 1.0) -> ItemT_co | None:
        """Return the next record, or None if no record arrives within ``timeout`` seconds.

        Raises the same errors as `EventConsumer.poll`.
        """
        self._events.check_open("poll()")
        deadline, waited = time.monotonic() + timeout, False
        while True:
            if self._turn.is_over():
                await self._turn.end()
            item = self._take("poll()")
            left = deadline - time.monotonic()
            if item is not None or self._events._stopped or (waited and left <= 0):
                return item
            await self._source.wait(max(left, 0))
            waited = True

    def _take(self, name: str) -> ItemT_co | None:
        if self._events.only_loop.name is not None:
            self._events.only_loop.check(name)
        self._source.drop_moved()
        return self._gathered.take()

    def __aiter__(self) -> AsyncIterator[ItemT_co]:
        """Iterate over records until `stop` or `close`."""
        return self.items()

    async def items(self, *, idle_timeout: float | None = None) -> AsyncIterator[ItemT_co]:
        """Yield records until `stop`, `close`, or ``idle_timeout`` seconds without a record.

        Other tasks of the event loop run at least once per millisecond, unless the body of your loop takes
        longer.
        """
        self._events.check_open("items()")
        check_seconds("idle_timeout", idle_timeout)
        idle_since = time.monotonic()
        while not self._events._stopped:
            if self._turn.is_over():
                await self._turn.end()
            item = self._take("items()")
            if item is not None:
                yield item
                if idle_timeout is not None:
                    idle_since = time.monotonic()
                continue
            left = None if idle_timeout is None else idle_since + idle_timeout - time.monotonic()
            await self._source.wait(None if left is None else max(left, 0))
            if left is not None and left <= 0 and not self._source.waiting:
                return

    async def batches(
        self, max_records: int = 100, timeout: float = _BATCH_SECONDS, *, idle_timeout: float | None = None
    ) -> AsyncIterator[list[ItemT_co]]:
        """Yield lists of records that arrive within ``timeout`` seconds; no list is empty.

        The iteration ends at `stop` or `close`, or if no record arrives within ``idle_timeout`` seconds. The
        iteration raises the same errors as `EventConsumer.batches`. A list is decoded without letting other
        tasks run; this takes about a millisecond for 100 records.

        Examples:
            >>> import asyncio
            >>> from cloudevents_kafka import AsyncEventConsumer
            >>> async def main() -> None:
            ...     async with AsyncEventConsumer(consumer) as events:
            ...         async for batch in events.batches(idle_timeout=0.1):
            ...             print(len(batch))
            ...             await events.commit(batch)
            >>> asyncio.run(main())
            2
        """
        self._events.check_open("batches()")
        check_max_records(max_records)
        check_seconds("idle_timeout", idle_timeout)
        idle_since = time.monotonic()
        while not self._events._stopped:
            await self._turn.end()
            self._events.only_loop.check("batches()")
            if not self._source.waiting:
                await self._source.wait(None, max_records, timeout)
            self._source.drop_moved()
            batch = self._gathered.take_batch(max_records)
            if batch:
                yield batch
                idle_since = time.monotonic()
            elif idle_timeout is not None and time.monotonic() - idle_since >= idle_timeout:
                return

    async def seek(self, to: Decoded | Undecodable | Record | TopicPartition) -> None:
        """Continue reading at a record, or at an offset of a partition, as `EventConsumer.seek` does."""
        place = start_of(to)
        await self._source.seek(place)
        self._gathered.discard([place])

    def discard(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Drop records that were fetched but not returned yet; for arguments, see `EventConsumer.discard`."""
        self._gathered.discard(partitions)

    async def commit(
        self, done: Decoded | Undecodable | Record | Iterable[Decoded | Undecodable | Record]
    ) -> None:
        """Commit the offset after a record, or after the last record of each partition of a batch.

        Commits run one after the other; if a task is cancelled during its commit, the commit continues.
        Raises the same errors as `EventConsumer.commit`. With aiokafka, offsets of revoked partitions are not
        committed. During a rebalance, no offset is committed. If offsets are not committed because of a
        revocation or a rebalance, a message is logged, and the group reads the records again.
        """
        if offsets := ends_of(done):
            began = time.monotonic()
            await self._source.commit(offsets)
            if (observers := self._gathered.observers) is not None:
                observers.of_places("committed", offsets, self._source, began)

    def health(self) -> ConsumerHealth:
        """Return the state of the consumer at once, as `EventConsumer.health` does; any thread may call this.

        Examples:
            >>> from cloudevents_kafka import AsyncEventConsumer
            >>> AsyncEventConsumer(consumer).health().records_in_work
            0
        """
        return self._events.health()

    def stop(self) -> None:
        """End all iterations; a signal handler may call `stop`.

        An iteration ends within 0.2 seconds, or within the ``timeout`` of `batches`.
        """
        self._events._stopped = True

    async def close(self) -> None:
        """Stop iterations and close the client, even if this call is cancelled; the client leaves its group.

        A client with a ``group.instance.id`` stays in the group until its session times out, so a restart
        causes no rebalance.

        If an `AsyncEventProcessor` reads, `close` returns at once, and the client is closed when the
        processor's run has ended.
        """
        self.stop()
        self._events._closed = True
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        # A handler must not wait for its run.
        if self._tasks is None or not self._tasks.has(asyncio.current_task()):
            await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._tasks is not None:
            await self._ended.wait()
        try:
            await self._source.close()
        finally:
            self._events.note_close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
