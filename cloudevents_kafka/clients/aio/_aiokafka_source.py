"""`AiokafkaSource`: one task awaits ``getmany`` of aiokafka's consumer, and fetches records."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._gathered import Readable
from cloudevents_kafka.clients._places import places_of
from cloudevents_kafka.clients._protocols import PolledMessage
from cloudevents_kafka.clients._steps import Ask
from cloudevents_kafka.clients.aio._aiokafka_calls import FetchCalls, Found
from cloudevents_kafka.clients.aio._aiokafka_message import AiokafkaFailure, AiokafkaMessage
from cloudevents_kafka.clients.aio._checks import check_deserializers, check_started
from cloudevents_kafka.clients.aio._source import FETCH_SECONDS, Source, end_in_time

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.consumer import OnRebalance

_TIMED_OUT: Final = -185
_FAILED: Final = -196
_COMMIT_SECONDS: Final = 1.0  # for a commit, which the client tries again until the broker answers
_log: Final = logging.getLogger("cloudevents_kafka.consumer")


class AiokafkaSource(Source):
    """Fetches records with aiokafka's ``getmany``, and stops the aiokafka client when the source is closed.

    The client joins its group again in the background, so at each ``await``, partitions may be revoked, or
    assigned again at another offset. If the partition of a fetched record was revoked, or assigned again at
    another offset, the record is dropped, and its offset is not committed. While the client joins its group,
    a running call of ``getmany`` does not return. The group may wait for `revoke` while ``getmany`` runs, so
    `revoke` must not wait for ``getmany``.
    """

    def __init__(self, events: Readable[Any], client: Any, max_records: int) -> None:
        super().__init__(events, client, max_records)
        import aiokafka.errors
        import confluent_kafka  # noqa: F401  # imported now: this takes 100 ms, and the first commit needs it

        check_deserializers(client)
        self._calls = FetchCalls(client)
        self.client_error = self._calls.client_error
        self._moved_error: type[Exception] = aiokafka.errors.CommitFailedError
        self._assigned: Any = None  # the assignment when the client returned the last records

    def subscribe(
        self, topics: Sequence[str], on_assign: OnRebalance | None, on_revoke: OnRebalance | None
    ) -> None:
        """Subscribe to topics, or to a pattern; the event loop calls ``on_assign`` and ``on_revoke``."""
        patterns = [name for name in topics if name.startswith("^")]
        if patterns and len(topics) > 1:
            raise ValueError(
                f"topics must be one pattern or names for aiokafka, got {topics}; join the patterns by |"
            )
        chosen: dict[str, Any] = {"pattern": patterns[0]} if patterns else {"topics": list(topics)}
        self.client.subscribe(**chosen, listener=_listener(self, on_assign, on_revoke))

    async def revoke(self, partitions: Collection[Any]) -> None:
        """In a run, drop fetched records of revoked partitions, and let the run commit finished records."""
        if self.hand_over is not None and partitions:
            places = places_of(partitions)
            self.gathered.discard(places)
            await self.hand_over(places, lost=False)

    def fetch(self, count: int, seconds: float) -> asyncio.Future[Sequence[PolledMessage]]:
        """Return a new task that waits for records."""
        check_started(self.client)
        return asyncio.ensure_future(self._get_many(count, seconds))

    async def _get_many(self, count: int, seconds: float) -> Sequence[PolledMessage]:
        """Add records that arrive to ``waiting``, and return the client's errors as messages."""
        deadline = time.monotonic() + (seconds or FETCH_SECONDS)
        while count > 0:
            try:
                found = await self._calls.collect(count)
                if not any(found.values()):
                    wait = deadline - time.monotonic()
                    if wait <= 0:
                        break
                    found = await self._calls.wait(wait)
            except Exception as error:  # noqa: BLE001  # an error that no record has caused is raised
                messages = await self._calls.find(error, count, self._add)
                failures = [message for message in messages if isinstance(message, AiokafkaFailure)]
                # Added now, because partitions may move before the result of this fetch is added.
                self.waiting += [message for message in messages if message not in failures]
                self.events.note_poll(self.client, failures)
                if failures:
                    await asyncio.sleep(FETCH_SECONDS)  # some errors come at once again, until the user acts
                return failures
            number = self._add(found)
            self.events.note_poll(self.client)
            if number:
                count -= number
                deadline = deadline if seconds else 0.0  # only what has arrived, without another wait
        return ()

    def _add(self, found: Found) -> int:
        """Add records to ``waiting``, and return how many records were added."""
        self._drop_moved({place: each[0].offset for place, each in found.items() if each})
        self._assigned = self.client.assignment()
        messages = [AiokafkaMessage(record) for records in found.values() for record in records]
        self.waiting += messages
        return len(messages)

    def drop_moved(self) -> None:
        """Drop fetched records whose partitions were revoked, or assigned again at another offset."""
        self._drop_moved({})

    def _drop_moved(self, starts: Mapping[Any, int]) -> None:
        """Drop a partition's fetched messages, unless the client's position is the offset after them.

        ``starts`` maps partitions to the offsets of their next records, which the client has just returned.
        """
        messages = self.waiting
        assigned = self.client.assignment()
        if not messages or not self._calls.is_new(self._assigned):
            return
        self._assigned = assigned
        # The partitions of aiokafka are equal to these tuples.
        last = {(each.topic(), each.partition()): each for each in messages if each.error() is None}
        positions = {place: self._calls.position(place) for place in assigned if place in last} | dict(starts)
        for name, message in last.items():
            at, offset = positions.get(name), message.offset() or 0
            # If the client commits by itself, it has committed these: no member would read them again.
            commits = getattr(self.client, "_enable_auto_commit", False)
            if not (commits if at is None else at > offset):
                self.gathered.discard(places_of([name]))

    def get_watermark_offsets(self, place: TopicPartition, *, cached: bool) -> tuple[int, int]:  # noqa: ARG002
        """Return (0, end offset) for a partition; the end offset is -1 if the client does not know it."""
        return 0, self._calls.end(to_partition(place)) or -1

    def position(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the client's position in each partition of ``places``."""
        from confluent_kafka import TopicPartition

        offsets = [self._calls.position(to_partition(place)) for place in places]
        return [
            TopicPartition(place.topic, place.partition, -1 if offset in (None, sys.maxsize) else offset)
            for place, offset in zip(places, offsets, strict=True)
        ]

    async def answer(self, ask: Ask) -> Any:
        """Make a client call of a run, and return its result; raise client errors as ``KafkaException``."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            return await getattr(self, f"_{ask.name}")(*ask.arguments, **ask.options)
        except TimeoutError:
            raise KafkaException(KafkaError(_TIMED_OUT)) from None
        except self.client_error as error:
            code = getattr(error.__cause__ or error, "errno", -1)
            raise KafkaException(KafkaError(code if code > 0 else _FAILED, str(error))) from error

    async def _assignment(self) -> list[TopicPartition]:
        return places_of(self.client.assignment())

    async def _memberid(self) -> object:
        """Return the client's member id in its group; aiokafka has no public name for this id."""
        return getattr(getattr(self.client, "_coordinator", None), "member_id", None)

    async def _stores_offsets(self) -> bool:
        """Return whether the client may commit automatically; the setting has no public name in aiokafka."""
        return bool(getattr(self.client, "_enable_auto_commit", True))

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _seek(self, place: TopicPartition) -> None:
        await self.seek(place)

    async def _pause(self, places: Iterable[TopicPartition]) -> None:
        self.client.pause(*self._held(places))

    async def _resume(self, places: Iterable[TopicPartition]) -> None:
        self.client.resume(*self._held(places))

    def _held(self, places: Iterable[TopicPartition]) -> list[Any]:
        """Remove partitions that are not assigned to the client from a list; return the remaining list.

        When a partition is revoked, aiokafka forgets that the partition was paused.
        """
        assigned = self.client.assignment()
        return [place for place in map(to_partition, places) if place in assigned]

    async def _committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """Return the group's offsets with their metadata; no public method of aiokafka returns both."""
        from confluent_kafka import TopicPartition

        partitions = [to_partition(place) for place in places]
        async with asyncio.timeout(timeout):
            found = await self.client._coordinator.fetch_committed_offsets(partitions)
        known = {partition: (at.offset, at.metadata) for partition, at in found.items()}
        return [TopicPartition(*partition, *known.get(partition, ())) for partition in partitions]

    async def _commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
        async with asyncio.timeout(_COMMIT_SECONDS if asynchronous else None):
            await self.commit_assigned(offsets)

    async def _set_back(self, places: list[TopicPartition]) -> None:
        """Commit the offsets of unfinished records; this commit is enough, because only the run commits."""
        await self.commit_assigned(places)

    async def commit(self, offsets: list[TopicPartition]) -> None:
        """Commit offsets of partitions that are assigned to the client."""
        check_started(self.client)
        await asyncio.shield(asyncio.ensure_future(self._commit_or_log(offsets)))

    async def _commit_or_log(self, places: list[TopicPartition]) -> None:
        try:
            await self.commit_assigned(places)
        except self._moved_error as error:
            reason = type(error.__cause__ or error).__name__
            _log.warning("offsets were not committed, and their records are read again: %s", reason)

    async def commit_assigned(self, places: list[TopicPartition]) -> None:
        """Commit offsets, with their metadata, of partitions that are assigned to the client."""
        offsets = {
            to_partition(place): (place.offset, place.metadata) if place.metadata else place.offset
            for place in places
        }
        gone = offsets.keys() - self.client.assignment()  # without an await before the client's commit
        if gone:
            _log.info("offsets were not committed, because these partitions were revoked: %s", sorted(gone))
        if left := {place: offset for place, offset in offsets.items() if place not in gone}:
            await self.client.commit(left)

    async def seek(self, place: TopicPartition) -> None:
        """Seek at once; aiokafka then drops the records that it has fetched from other offsets."""
        self.client.seek(to_partition(place), place.offset)

    async def close(self) -> None:
        """Seek back to unread records, so that the group reads them again, and stop the client."""
        if self._fetching is not None:  # the fetch may wait for the group
            self._fetching.cancel()
        assigned = self.client.assignment()
        for place in self.gathered.starts():
            if to_partition(place) in assigned:
                self.client.seek(to_partition(place), place.offset)
        await end_in_time(asyncio.ensure_future(self.client.stop()))


def _listener(source: AiokafkaSource, on_assign: OnRebalance | None, on_revoke: OnRebalance | None) -> Any:
    """Return the rebalance listener: the object whose methods aiokafka calls in a rebalance.

    The rebalance of the group waits until these methods return, and the methods wait for running handlers.
    """
    from aiokafka import ConsumerRebalanceListener  # installed, as the client is aiokafka's

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
        async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
            try:
                await source.revoke(revoked)
                if on_revoke is not None:
                    on_revoke(source.client, list(revoked))
            finally:  # after the last commit for these partitions
                source.events.note_revoked(revoked)

        def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
            source.events.vitals.note_rebalance()
            if on_assign is not None:
                on_assign(source.client, list(assigned))

    return Listener()


def to_partition(place: TopicPartition) -> Any:
    """Return a partition as an aiokafka ``TopicPartition``."""
    from aiokafka import TopicPartition as Partition  # installed, as the client is aiokafka's

    return Partition(place.topic, place.partition)
