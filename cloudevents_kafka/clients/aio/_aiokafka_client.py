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
from cloudevents_kafka.clients._schedule import places_of
from cloudevents_kafka.clients.aio._aiokafka_source import AiokafkaSource, to_partition

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.consumer import OnRebalance

_TIMED_OUT: Final = -185
_FAILED: Final = -196
T = TypeVar("T")


class AiokafkaClient:
    """The client of a run; ``source`` fetches its messages, which `poll` returns.

    ``on_assign`` and ``on_revoke`` are the functions of the user, which the loop calls.
    """

    source: AiokafkaSource

    def __init__(self, client: Any) -> None:
        self.on_assign: OnRebalance | None = None
        self.on_revoke: OnRebalance | None = None
        self._client = client
        self._loop: asyncio.AbstractEventLoop | None = None  # of the last run
        self._is_running = False
        self._hand_over: Callable[..., object]
        self._fetched: list[Message] = []
        self._revoking: deque[tuple[Collection[Any], asyncio.Future[None]]] = deque()

    def subscribe(self, topics: list[str], *, on_revoke: Callable[..., object], on_lost: object) -> None:  # noqa: ARG002  # see above
        """Subscribe to topics, or to a pattern; `poll` calls ``on_revoke``."""
        patterns = [name for name in topics if name.startswith("^")]
        if patterns and len(topics) > 1:
            raise ValueError(
                f"topics must be one pattern or names for aiokafka, got {topics}; join the patterns by |"
            )
        from aiokafka import ConsumerRebalanceListener  # installed, as the client is aiokafka's

        ConsumerRebalanceListener.register(AiokafkaClient)
        self._hand_over = on_revoke
        chosen = {"pattern": patterns[0]} if patterns else {"topics": topics}
        self._client.subscribe(**chosen, listener=self)

    def begin(self) -> None:
        """Begin a run; called by the loop."""
        if getattr(self._client, "_enable_auto_commit", False):
            raise ValueError("enable_auto_commit must be False for run(), got True; create the client so")
        self._loop, self._is_running = asyncio.get_running_loop(), True

    async def on_partitions_revoked(self, partitions: Collection[Any]) -> None:
        """Wait until the thread of a run has handed over partitions, and call the function of the user."""
        if partitions and self._is_running:
            done = asyncio.get_running_loop().create_future()
            self._revoking.append((partitions, done))
            await asyncio.shield(done)
        if self.on_revoke is not None:
            self.on_revoke(self._client, list(partitions))

    def on_partitions_assigned(self, partitions: Collection[Any]) -> None:
        """Call the function of the user."""
        if self.on_assign is not None:
            self.on_assign(self._client, list(partitions))

    def end(self) -> None:
        """Let the listener go on, as the thread has ended, and leave what was fetched; called by the loop."""
        self._is_running = False
        self.source.waiting[:0] = self._fetched
        self._fetched.clear()
        while self._revoking:
            self._revoking.popleft()[1].set_result(None)

    def poll(self, timeout: float = 0) -> Message | None:
        """Return the next message, or None if none arrives in a short time; hand over what is revoked."""
        return next(iter(self.consume(1, timeout)), None)

    def consume(self, num_messages: int = 1, timeout: float = 0) -> list[Message]:  # noqa: ARG002  # a fetch has its own
        """Return messages as `poll` does."""
        fetched, waiting = self._fetched, self.source.waiting
        if not fetched and not self._revoking:
            self._wait(self.source.wait(None))
            # The consumer returns messages of ``waiting`` without a look at what is revoked.
            fetched[:], waiting[:] = waiting, ()
        while self._revoking:
            partitions, done = self._revoking[0]
            self._drop(partitions)
            self._hand_over(self, places_of(partitions))
            self._revoking.popleft()
            assert self._loop is not None
            self._loop.call_soon_threadsafe(done.set_result, None)
        taken = fetched[:num_messages]
        del fetched[:num_messages]
        return taken

    def _drop(self, partitions: Collection[Any]) -> None:
        self._fetched[:] = [
            each for each in self._fetched if (each.topic(), each.partition()) not in partitions
        ]

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that the client has."""
        return places_of(self._client.assignment())

    def seek(self, place: TopicPartition) -> None:
        """Read on from an offset."""
        self._drop([(place.topic, place.partition)])
        self._wait(self.source.seek(place))

    def pause(self, places: Iterable[TopicPartition]) -> None:
        """Fetch no messages of partitions."""
        self._client.pause(*map(to_partition, places))

    def resume(self, places: Iterable[TopicPartition]) -> None:
        """Fetch messages of partitions again; aiokafka forgets the pauses of those that it has left."""
        assigned = self._client.assignment()
        self._client.resume(*(place for place in map(to_partition, places) if place in assigned))

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """Return the group's offsets, with their metadata."""
        from confluent_kafka import TopicPartition

        # aiokafka's public method has no metadata.
        ask = self._client._coordinator.fetch_committed_offsets
        found = self._wait(ask([to_partition(place) for place in places]), timeout)
        return [
            TopicPartition(topic, partition, at.offset, at.metadata)
            for (topic, partition), at in found.items()
        ]

    def get_watermark_offsets(self, place: TopicPartition, *, cached: bool) -> tuple[int, int]:  # noqa: ARG002
        """Return the end of a partition, as the client knows it."""
        return 0, self._client.highwater(to_partition(place)) or -1

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:  # noqa: ARG002
        """Commit offsets with their metadata."""
        self._wait(self.source.commit_assigned(offsets))

    def close(self) -> None:
        """Stop the client."""
        self._wait(self._client.stop())

    def _wait(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Return what a coroutine of the client returns; raise its errors as those of confluent-kafka."""
        from confluent_kafka import KafkaError, KafkaException

        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise KafkaException(KafkaError(_TIMED_OUT)) from None
        except self.source.client_error as error:
            code = getattr(error, "errno", -1)
            raise KafkaException(KafkaError(code if code > 0 else _FAILED, str(error))) from error
