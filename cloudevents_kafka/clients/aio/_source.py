"""`Source`: gathers a consumer's messages in batches, for any number of tasks that wait for them.

`PolledSource` fetches by confluent-kafka's ``Consumer``, in a thread.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._gathered import check_committed
from cloudevents_kafka.clients._protocols import Consumer, Message

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.consumer import EventConsumer

FETCH_SECONDS: Final = 0.2
"""The longest wait for a message, which delays what waits for a fetch: `seek`, `stop` and `close`."""

_PAUSE_SECONDS: Final = 0.005  # between calls of a client that does not wait, such as a fake


class Source(ABC):
    """Gathers messages by one fetch at a time, on behalf of all tasks that wait.

    A fetch belongs to no task, so a task that is cancelled loses no message: it is in ``waiting`` when the
    next task asks. Nothing is fetched before somebody asks, so the client is
    ahead of what was returned by one batch at most.
    """

    def __init__(self, events: EventConsumer[Any, Any], client: Any, max_records: int) -> None:
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, got {max_records}")
        self.max_records = max_records
        self.events = events
        self.client = client
        self.gathered = events._gathered
        self.waiting = self.gathered.waiting
        self._fetching: asyncio.Future[Sequence[Message]] | None = None
        self._failure: BaseException | None = None

    async def wait(self, timeout: float | None, count: int = 0, seconds: float = 0) -> None:
        """Wait until a fetch has ended, for up to ``timeout`` seconds; raise the error of the client.

        A new fetch ends with the next message, or with ``count`` of them or after ``seconds``.
        """
        if self._fetching is None and self._failure is None:
            fetch = self.fetch(count, seconds) if seconds > 0 else self.fetch(self.max_records, 0)
            self._fetching = asyncio.ensure_future(fetch)
            self._fetching.add_done_callback(self._fetched)
        if self._fetching is not None:
            await asyncio.wait((self._fetching,), timeout=timeout)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    async def idle(self) -> None:
        """Wait until no fetch is under way; its messages are in ``waiting`` then."""
        if self._fetching is not None:
            await asyncio.wait((self._fetching,))

    def _fetched(self, fetch: asyncio.Future[Sequence[Message]]) -> None:
        self._fetching = None
        if fetch.cancelled():
            return
        self._failure = fetch.exception()
        if self._failure is None:
            self.waiting += fetch.result()

    @abstractmethod
    def fetch(self, count: int, seconds: float) -> asyncio.Future[Sequence[Message]]:
        """Begin to wait for up to ``count`` messages, for a short time, and return their future.

        The result is the messages that are there, or the next one, or those that arrive within ``seconds``
        if that is not 0.
        """

    def drop_moved(self) -> None:  # noqa: B027  # a client that moves partitions only in a fetch has none
        """Drop messages of ``waiting`` whose partitions have moved since they were fetched."""

    @abstractmethod
    async def commit(self, offsets: list[TopicPartition]) -> None:
        """Commit offsets, also if the task is cancelled; raise `ConsumeError` if one was not committed."""

    @abstractmethod
    async def seek(self, place: TopicPartition) -> None:
        """Continue at the offset of a partition, after the messages of a pending fetch."""

    @abstractmethod
    async def close(self) -> None:
        """Close the client so that the group continues at the messages of ``waiting``."""


class PolledSource(Source):
    """Fetches, seeks and closes in one thread, and commits in another, which need not wait for a fetch."""

    def __init__(self, events: EventConsumer[Any, Any], client: Any, max_records: int) -> None:
        super().__init__(events, client, max_records)
        self._polling = ThreadPoolExecutor(1, "AsyncEventConsumer")
        self._committing = ThreadPoolExecutor(1, "AsyncEventConsumer-commit")

    def fetch(self, count: int, seconds: float) -> asyncio.Future[Sequence[Message]]:
        """Return the future of the messages for which the thread waits."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._polling, _fetch, self.client, count, seconds)

    async def commit(self, offsets: list[TopicPartition]) -> None:
        """Commit in the thread for commits."""
        commit = partial(self.client.commit, offsets=offsets, asynchronous=False)
        loop = asyncio.get_running_loop()
        check_committed(await asyncio.shield(loop.run_in_executor(self._committing, commit)) or ())

    async def seek(self, place: TopicPartition) -> None:
        """Seek between two fetches."""
        await asyncio.get_running_loop().run_in_executor(self._polling, self.client.seek, place)

    async def close(self) -> None:
        """Close the client after the pending calls of the threads."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._polling, self._close)
        finally:
            self._polling.shutdown(wait=False)

    def _close(self) -> None:
        self._committing.shutdown()
        self.events.close()


def _fetch(client: Consumer, count: int, seconds: float) -> Sequence[Message]:
    """Return the messages of one call: a second one could revoke their partitions."""
    began = time.monotonic()
    messages: Sequence[Message] = client.consume(count, seconds)  # waits until there are as many
    if not messages and not seconds:
        message = client.poll(FETCH_SECONDS)
        messages = () if message is None else (message,)
    if not messages and time.monotonic() - began < _PAUSE_SECONDS:
        time.sleep(_PAUSE_SECONDS)
    return messages
