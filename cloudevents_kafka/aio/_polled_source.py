"""`PolledSource`: gathers the messages of confluent-kafka's ``Consumer``, which one thread polls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka._clients import Consumer
from cloudevents_kafka.aio._source import FETCH_SECONDS, Source

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_PAUSE_SECONDS: Final = 0.005  # between calls of a client that does not wait, such as a fake
_COMMITTED_SECONDS: Final = 5.0


class PolledSource(Source):
    """Fetches, seeks and closes in one thread, and commits in another, which need not wait for a fetch."""

    def __init__(self, client: Consumer, max_records: int) -> None:
        super().__init__(max_records)
        self.client = client
        self._polling = ThreadPoolExecutor(1, "AsyncEventConsumer")
        self._committing = ThreadPoolExecutor(1, "AsyncEventConsumer-commit")

    def fetch(self, count: int, seconds: float) -> asyncio.Future[Sequence[Any]]:
        """Return the future of what the thread waits for."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._polling, _fetch, self.client, count, seconds)

    async def commit(self, commit: Callable[[], None]) -> None:
        """Commit in the thread for that. A commit goes on if its task is cancelled."""
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._committing, commit))

    async def seek(self, place: TopicPartition) -> None:
        """Seek between two fetches."""
        client: Any = self.client
        await asyncio.get_running_loop().run_in_executor(self._polling, client.seek, place)

    async def close(self, unread: Sequence[TopicPartition]) -> None:
        """Close the client after what the threads still do."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._polling, self._close, unread)
        finally:
            self._polling.shutdown(wait=False)

    def _close(self, unread: Sequence[TopicPartition]) -> None:
        self._committing.shutdown()
        try:
            if unread and hasattr(self.client, "unassign"):  # a user's client may not have it
                _commit_back(self.client, unread)
        finally:
            self.client.close()


def _fetch(client: Consumer, count: int, seconds: float) -> Sequence[Any]:
    """Return messages of one call, as one that is revoked in a second call would remain."""
    began = time.monotonic()
    messages: Sequence[Any] = client.consume(count, seconds)  # waits until there are as many
    if not messages and not seconds:
        message = client.poll(FETCH_SECONDS)
        messages = () if message is None else (message,)
    if not messages and time.monotonic() - began < _PAUSE_SECONDS:
        time.sleep(_PAUSE_SECONDS)
    return messages


def _commit_back(client: Any, unread: Sequence[TopicPartition]) -> None:
    """Commit the places of the first unread messages, if the client has committed offsets after them.

    With ``enable.auto.commit`` it commits the offsets after all messages that it has returned:
    here, when the partitions are unassigned, and no more when it is closed.
    """
    from confluent_kafka import KafkaException

    with suppress(KafkaException):  # the client is leaving; the broker may be away, the partition revoked
        _unassign(client)
        places = {(place.topic, place.partition): place for place in unread}
        committed = client.committed(list(unread), timeout=_COMMITTED_SECONDS)
        after = [each for each in committed if each.offset > places[each.topic, each.partition].offset]
        if after:
            client.commit(offsets=[places[each.topic, each.partition] for each in after], asynchronous=False)


def _unassign(client: Any) -> None:
    from confluent_kafka import KafkaException

    try:
        client.unassign()
    except KafkaException:  # the assignment of the group is cooperative
        client.incremental_unassign(client.assignment())
