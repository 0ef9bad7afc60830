"""The client calls of a run, except the calls that read, for loops with threads and with asyncio.

`Progress` decides four things: when to commit, which partitions to pause, what to do with new and revoked
partitions, and what to do at the end of a run. The methods of `Progress` are generators that yield calls of
the client. A loop makes the client calls that the methods yield (see `_steps`). The loops in `_thread_run`
and `aio._task_run` read records and wait. An offset is committed when all records before this offset are
done. Therefore, if a record was unfinished when the process ended, the next process handles the record again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._commits import Commits
from cloudevents_kafka.clients._places import PartitionName, places_of
from cloudevents_kafka.clients._policy import fields_of
from cloudevents_kafka.clients._protocols import suppress_client_errors
from cloudevents_kafka.clients._steps import Ask, Steps
from cloudevents_kafka.clients._workers import Workers
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_COMMIT_SECONDS: Final = 1.0  # between two commits
_REVOKE_SECONDS: Final = 10.0  # for the commit of partitions that are revoked
_log: Final = logging.getLogger("cloudevents_kafka.run")


class Progress:
    """Decides which partitions a run pauses, and commits the records that the run has handled.

    ``ends`` is an object whose method ``get_watermark_offsets`` is called by observers. ``is_passed`` says
    whether the user has passed a client instead of settings for a client.
    """

    def __init__(self, workers: Workers, ends: Any, *, is_subscribed: bool, is_passed: bool) -> None:
        self._workers = workers
        self._policy = workers.policy
        self._schedule = workers.schedule
        observers = workers.policy.observed
        self._commits = Commits(workers.schedule, workers.lock, observers, ends, is_passed=is_passed)
        self._assigned: list[TopicPartition] = []
        self._paused: set[PartitionName] = set()  # librdkafka returns no list of paused partitions
        self._has_warned = is_subscribed
        self._committed = 0.0
        self.idle_since = 0.0
        """The last time at which a record was read or was unfinished."""
        self.left: list[TopicPartition] = []
        """After the run: the offset of the first unfinished record of each partition."""
        self.is_away = False
        """Whether the group has not confirmed the last commit of the run."""

    @property
    def is_idle(self) -> bool:
        """Whether all records that the run has read are done."""
        return self._schedule.is_idle

    def may_read(self) -> bool:
        """Return whether the run continues to read, because some partition has not reached its limits."""
        return self._schedule.may_read(len(self._assigned))

    def is_over(self, now: float) -> bool:
        """Return whether the run ends, because for ``idle_timeout`` seconds nothing was read or handled."""
        timeout = self._policy.idle_timeout
        return timeout is not None and self.is_idle and now - self.idle_since >= timeout

    def begin(self) -> Steps[None]:
        """Yield the client calls that check the assigned partitions before the first record is read.

        Raises `ValueError` if the consumer reads its own dead letters.
        """
        self.idle_since = self._committed = time.monotonic()
        self._policy.check_topics((yield Ask("assignment")))
        yield from self._commits.begin()

    def look(self) -> Steps[None]:
        """Yield the client calls that a new partition needs before its first record is handled.

        Raises `ValueError` if the consumer reads its own dead letters.

        At the time of these calls, the run has not committed an offset of the new partition yet. Therefore,
        the committed offset of the group is from another member, or from an earlier run.
        """
        yield from self._divide()
        yield from self._commits.look(self._assigned)
        if not self._has_warned and (yield Ask("memberid")):
            self._has_warned = True
            _log.warning("%s", _NOT_SUBSCRIBED)

    def _divide(self) -> Steps[None]:
        self._assigned = yield Ask("assignment")
        self._policy.check_topics(self._assigned)
        with self._workers.lock:
            self._schedule.divide(len(self._assigned))

    def pause(self) -> Steps[None]:
        """Yield the client calls that pause full partitions, and resume partitions that are not full."""
        if not self._schedule.full and not self._paused:
            return
        with self._workers.lock:
            full = set(self._schedule.full)
        more, less = full - self._paused, self._paused - full
        self._paused = full
        if more:
            yield Ask("pause", places_of(more))
        if less:
            with suppress_client_errors():  # the partition was revoked
                yield Ask("resume", places_of(less))

    def is_due(self, now: float) -> bool:
        """Return whether it is time for the next commit.

        If it is time, the loop also polls, even if no partition may be read.
        """
        return now - self._committed >= _COMMIT_SECONDS

    def commit(self, now: float) -> Steps[None]:
        """Yield the client calls that commit the records that are done.

        Raises `ConsumeError` if the client or other code commits unfinished records, and `ValueError` if the
        consumer reads its own dead letters.
        """
        self._committed = now
        yield from self._divide()
        before = -1.0 if self._policy.max_age is None else now - self._policy.max_age
        with self._workers.lock:
            self._schedule.keep(self._assigned)
            old = list(self._schedule.find_old(before))
        for task in old:
            _log.warning(
                "%s is unfinished after %.0f s, in try %d; offsets after it are not committed",
                *(task.item.record.where, now - task.began, task.attempt),
                extra=fields_of(task.item, task.attempt),
            )
        yield from self._commits.commit()

    def close(self, places: Iterable[TopicPartition]) -> set[PartitionName]:
        """Stop passing records of revoked partitions to the handler; return the names of the partitions."""
        names: set[PartitionName] = {(place.topic, place.partition) for place in places}
        with self._workers.lock:
            self._schedule.close(names)
        return names

    def is_at_work(self, names: set[PartitionName]) -> bool:
        """Return whether the handler is handling a record of a partition in ``names``."""
        return self._schedule.working(names) > 0

    def hand_over(self, names: set[PartitionName], *, lost: bool) -> Steps[None]:
        """Yield the calls that commit finished records of closed partitions; forget these partitions.

        Nothing is committed for partitions that are ``lost``, because another member already has their
        records.
        """
        if lost:
            self._commits.lose(names)
        else:
            yield from self._commits.commit_all(_REVOKE_SECONDS, names)
        with self._workers.lock:
            self._schedule.forget(names)
        yield from self.pause()  # resumes: the client would keep the pause for the next assignment

    def keep(self) -> Steps[None]:
        """Yield the call that requests the assigned partitions; close and forget all other partitions."""
        assigned = yield Ask("assignment")
        with self._workers.lock:
            self._schedule.keep(assigned)

    def commit_last(self, seconds: float) -> Steps[None]:
        """Yield the client calls that commit all records that are done.

        While the members of a group join again, a broker answers late. Therefore, ``seconds`` limits the time
        of the calls.
        """
        self.is_away = True
        self.is_away = not (yield from self._commits.commit_all(seconds * 0.8))

    def go_back(self) -> Steps[None]:
        """Yield the client calls that seek back to unfinished records, so that these records are read again.

        The unfinished records are read again by this consumer, or later by another member of the group.
        """
        with self._workers.lock:
            self.left = self._schedule.left()
        for place in self.left:
            with suppress_client_errors():  # the partition was revoked
                yield Ask("seek", place)
        if self._paused:
            with suppress_client_errors():
                yield Ask("resume", places_of(self._paused))


def still_in_work(number: int) -> RuntimeError:
    """Return the error for a new run that begins before the handlers of an earlier run have returned."""
    return RuntimeError(
        "the handlers of an earlier run must return before the next run begins, got "
        f"{pluralize(number, 'record')} still being handled; limit the handler's time, or end the process"
    )


_NOT_SUBSCRIBED: Final = (
    "the consumer was subscribed with a method of its client, so two members may handle the same records "
    "after a rebalance; subscribe by EventConsumer(…, topics=[…]) or events.subscribe([…])"
)
