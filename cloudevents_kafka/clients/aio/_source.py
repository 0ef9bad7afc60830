"""`Source`: gathers a consumer's messages in batches, for any number of tasks that wait for them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.clients._protocols import Message

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.consumer import EventConsumer

FETCH_SECONDS = 0.2
"""The longest wait for a message, which delays what waits for a fetch: `seek`, `stop` and `close`."""


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
    async def commit(self, offsets: list[TopicPartition]) -> Sequence[TopicPartition]:
        """Commit offsets, also if the task is cancelled, and return them, each with its error."""

    @abstractmethod
    async def seek(self, place: TopicPartition) -> None:
        """Continue at the offset of a partition, after the messages of a pending fetch."""

    @abstractmethod
    async def close(self) -> None:
        """Close the client so that the group continues at the messages of ``waiting``."""
