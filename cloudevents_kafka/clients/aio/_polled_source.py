"""`PolledSource`: gathers the messages of confluent-kafka's ``Consumer``, which one thread polls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._protocols import Consumer, Message
from cloudevents_kafka.clients.aio._source import FETCH_SECONDS, Source
from cloudevents_kafka.clients.consumer import EventConsumer

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_PAUSE_SECONDS: Final = 0.005  # between calls of a client that does not wait, such as a fake


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

    async def commit(self, offsets: list[TopicPartition]) -> Sequence[TopicPartition]:
        """Commit in the thread for commits. Return the offsets, each with its error."""
        commit = partial(self.client.commit, offsets=offsets, asynchronous=False)
        return (
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._committing, commit)) or ()
        )

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
