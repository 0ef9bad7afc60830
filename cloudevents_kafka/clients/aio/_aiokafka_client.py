"""`AiokafkaClient`: aiokafka's consumer for the thread of a run, with the methods of confluent-kafka's.

The loop runs the coroutines of the client, and the thread waits for them. As in librdkafka, partitions are
revoked in `poll`: the client's listener waits for that, and the group for the listener. A commit that the
group refuses stands for partitions that are lost, as the listener has no call for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloudevents_kafka.clients._protocols import Message
from cloudevents_kafka.clients.aio._aiokafka_source import AiokafkaSource, partition_of, to_partition

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_TIMED_OUT: Final = -185
_FAILED: Final = -196
T = TypeVar("T")
OnRevoke = Callable[[list["TopicPartition"]], object]


class AiokafkaClient:
    """The client of a run, whose source fetches its messages; ``on_revoke`` is called by `poll`."""

    def __init__(self, client: Any, source: AiokafkaSource, on_revoke: OnRevoke) -> None:
        import aiokafka.errors

        self._client = client
        self._source = source
        self._on_revoke = on_revoke
        self._loop = asyncio.get_running_loop()
        self._fetched: deque[Message] = deque()
        self._revoking: deque[tuple[Collection[Any], asyncio.Future[None]]] = deque()
        self._has_ended = False
        self._client_error: type[Exception] = aiokafka.errors.KafkaError

    async def revoke(self, partitions: Collection[Any]) -> None:
        """Wait until the thread has handed over partitions; called by the client's listener."""
        if partitions and not self._has_ended:
            done = self._loop.create_future()
            self._revoking.append((partitions, done))
            await asyncio.shield(done)

    def end(self) -> None:
        """Let the listener go on, as the thread has ended; called by the loop."""
        self._has_ended = True
        for _, done in self._revoking:
            done.set_result(None)

    def poll(self, timeout: float) -> Message | None:  # noqa: ARG002  # a fetch has its own
        """Return the next message, or None if none arrives in a short time; hand over what is revoked."""
        if not self._fetched and not self._revoking:
            self._fetched += self._wait(self._source.get_many())
        while self._revoking:
            partitions, done = self._revoking[0]
            self._fetched = deque(each for each in self._fetched if partition_of(each) not in partitions)
            self._on_revoke(_places(partitions))
            self._revoking.popleft()
            self._loop.call_soon_threadsafe(done.set_result, None)
        return self._fetched.popleft() if self._fetched else None

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that the client has."""
        return _places(self._client.assignment())

    def seek(self, place: TopicPartition) -> None:
        """Read on from an offset."""
        self._fetched = deque(each for each in self._fetched if partition_of(each) != to_partition(place))
        self._wait(self._source.seek(place))

    def pause(self, places: Iterable[TopicPartition]) -> None:
        """Fetch no messages of partitions."""
        self._client.pause(*map(to_partition, places))

    def resume(self, places: Iterable[TopicPartition]) -> None:
        """Fetch messages of partitions again."""
        self._client.resume(*map(to_partition, places))

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """Return the group's offsets, with their metadata."""
        from confluent_kafka import TopicPartition

        # aiokafka's public method has no metadata.
        ask = self._client._coordinator.fetch_committed_offsets  # noqa: SLF001
        found = self._wait(ask([to_partition(place) for place in places]), timeout)
        return [
            TopicPartition(topic, partition, at.offset, at.metadata)
            for (topic, partition), at in found.items()
        ]

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:  # noqa: ARG002
        """Commit offsets with their metadata."""
        assigned = self._client.assignment()
        places = {to_partition(place): (place.offset, place.metadata or "") for place in offsets}
        left = {place: offset for place, offset in places.items() if place in assigned}
        if left:
            self._wait(self._client.commit(left))

    def _wait(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Return what a coroutine of the client returns; raise its errors as those of confluent-kafka."""
        from confluent_kafka import KafkaError, KafkaException

        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise KafkaException(KafkaError(_TIMED_OUT)) from None
        except self._client_error as error:
            code = getattr(error, "errno", -1)
            raise KafkaException(KafkaError(code if code > 0 else _FAILED, str(error))) from error


def _places(partitions: Iterable[Any]) -> list[TopicPartition]:
    from confluent_kafka import TopicPartition

    return [TopicPartition(*partition) for partition in partitions]
