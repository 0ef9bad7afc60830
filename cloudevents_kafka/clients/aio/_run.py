"""`RunOfTasks`: a run whose handlers are tasks of the event loop; a thread reads and commits.

The thread is that of `clients._run`, for either kind of client: aiokafka's is used through `AiokafkaClient`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cloudevents_kafka.clients._gathered import Gathered, start_of
from cloudevents_kafka.clients._policy import RunOptions, RunPolicy, RunResult
from cloudevents_kafka.clients._run import Run, stop_at_sigterm
from cloudevents_kafka.clients._schedule import Item
from cloudevents_kafka.clients.aio._aiokafka_client import AiokafkaClient
from cloudevents_kafka.clients.aio._aiokafka_source import AiokafkaSource
from cloudevents_kafka.clients.aio._source import Source
from cloudevents_kafka.clients.aio._tasks import Tasks

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.aio.producer import AsyncEventProducer


T = TypeVar("T")


class Consumer(Protocol):
    """The attributes of `AsyncEventConsumer` that a run uses."""

    consumer: Any
    is_subscribed: bool

    @property
    def stopped(self) -> bool:
        """Whether the run is to end."""

    def stop(self) -> None:
        """End the run."""


class _Reader:
    """The records of a consumer for the thread of a run."""

    def __init__(self, consumer: Consumer, client: Any, gathered: Gathered[Any]) -> None:
        self.is_subscribed = consumer.is_subscribed
        self.stop = consumer.stop
        self._consumer = consumer
        self._client = client
        self._gathered = gathered

    @property
    def stopped(self) -> bool:
        """Whether the run is to end."""
        return self._consumer.stopped

    def poll(self, timeout: float) -> Item | None:
        """Return the next record, or None."""
        waiting = self._gathered.waiting
        message = waiting.pop(0) if waiting else self._client.poll(timeout)
        if message is None or not (message.error() is None or self._gathered.is_record(message)):
            return None
        item: Item = self._gathered.read(message)
        return item

    def seek(self, to: TopicPartition) -> None:
        """Read on from an offset."""
        place = start_of(to)
        self._client.seek(place)
        self._gathered.discard([place])


class RunOfTasks:
    """One call of `AsyncEventConsumer.run`."""

    def __init__(  # noqa: PLR0917  # what the consumer has, and the arguments of `run`
        self,
        consumer: Consumer,
        source: Source,
        gathered: Gathered[Any],
        handler: Callable[[Any], Awaitable[object]],
        producer: AsyncEventProducer[Any] | None,
        settings: Mapping[str, Any] | None,
        options: RunOptions,
    ) -> None:
        check_coroutine(handler)
        policy = RunPolicy(read=gathered.read_item, settings=settings, **options)
        self.ended = asyncio.Event()
        self._consumer = consumer
        self._gathered = gathered
        self._aiokafka: AiokafkaClient | None = None
        client = consumer.consumer
        if isinstance(source, AiokafkaSource):
            if getattr(client, "_enable_auto_commit", False):
                raise ValueError("enable_auto_commit must be False for run(), got True; create the client so")
            client = self._aiokafka = AiokafkaClient(client, source, self._revoke_now)
        if producer is not None:
            producer.count_sends()
        policy.check_topics(client.assignment())
        self._tasks = Tasks(policy, handler, counts_sends=producer is not None)
        self._run = Run(_Reader(consumer, client, gathered), client, self._tasks)

    async def handle_all(self) -> RunResult:
        """Handle records until the end of the run, and return the counts."""
        try:
            return await run_in_thread(self._run.handle_all, self._consumer.stop)
        finally:
            self._tasks.cancel_all()
            if self._aiokafka is not None:
                self._aiokafka.end()

    def is_handling(self) -> bool:
        """Return whether the current task is one that handles a record of the run."""
        return self._tasks.has(asyncio.current_task())

    def revoke(self, partitions: Collection[Any], *, lost: bool) -> Awaitable[None] | None:
        """Return None when revoked partitions are handed over, or an awaitable of that for aiokafka."""
        if self._aiokafka is not None:
            return self._aiokafka.revoke(partitions)
        self._gathered.discard(partitions)
        self._run.revoke(partitions, lost=lost)
        return None

    def _revoke_now(self, places: list[TopicPartition]) -> None:
        self._gathered.discard(places)
        self._run.revoke(places, lost=False)


def check_coroutine(handler: object) -> None:
    """Raise `TypeError` unless a handler is a coroutine function, or an object whose call is one."""
    call = getattr(handler, "__call__", None)  # noqa: B004  # it is inspected
    if not any(map(inspect.iscoroutinefunction, (handler, call))):
        raise TypeError(f"handler must be a coroutine function, got {type(handler).__name__}")


async def run_in_thread(run: Callable[[], T], stop: Callable[[], object]) -> T:
    """Return what a run returns in a thread; stop it at SIGTERM, or if the task is cancelled."""
    loop = asyncio.get_running_loop()
    with stop_at_sigterm(stop, loop):
        running = loop.run_in_executor(None, run)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop()
            with suppress(Exception):  # the cancellation is raised
                await running
            raise
