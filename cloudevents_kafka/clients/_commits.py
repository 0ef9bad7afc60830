"""The commits of `EventConsumer.run`.

Only the group coordinator's answers show which offsets are committed. Each second, a run requests the
committed offsets of those partitions in which a commit is needed or not confirmed yet. A run does not wait
until a commit is finished: the commit is confirmed when a later answer contains the committed offset. If the
answer contains a different offset, a warning is logged, and the offset is committed again. No commit begins
while the broker does not answer. With a pending commit, the client's ``close`` would take 45 seconds longer,
or would never return (librdkafka 2.16).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._automatic import Automatic
from cloudevents_kafka.clients._places import MARK, PartitionName
from cloudevents_kafka.clients._protocols import code_of, suppress_client_errors
from cloudevents_kafka.clients._schedule import Schedule
from cloudevents_kafka.clients._steps import Ask, Steps

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.observing.calls import Observers

_ANSWER_SECONDS: Final = 1.0  # if the answer takes longer, the request is repeated
_METADATA_TOO_LONG: Final = 12
_REBALANCE_IN_PROGRESS: Final = 27
_log: Final = logging.getLogger("cloudevents_kafka.run")


class Commits:
    """Commits the records that a run has handled; ``lock`` protects the schedule of the run."""

    def __init__(
        self,
        schedule: Schedule,
        lock: AbstractContextManager[object],
        observers: Observers | None,
        ends: Any,
        *,
        is_passed: bool,
    ) -> None:
        self._schedule = schedule
        self._lock = lock
        self._observers = observers
        self._ends = ends  # observers ask this object for the ends of partitions
        self._automatic = Automatic(schedule, lock, is_passed=is_passed)

    def begin(self) -> Steps[None]:
        """Yield the client call that shows whether the client may commit offsets automatically."""
        yield from self._automatic.begin()

    def look(self, assigned: list[TopicPartition]) -> Steps[None]:
        """Yield the client call that requests the committed offsets of partitions; store the answer."""
        with suppress_client_errors():  # `commit` requests these offsets again
            committed = yield Ask("committed", assigned, timeout=_ANSWER_SECONDS)
            with self._lock:
                self._schedule.note(committed)

    def commit(self) -> Steps[None]:
        """Yield the client calls that confirm the last commits, and then commit the records that are done.

        Raises `ConsumeError` if the client or other code commits unfinished records.
        """
        from confluent_kafka import KafkaException

        with self._lock:
            asked = self._schedule.asked(unfinished=self._automatic.may_commit)
        if not asked:
            return
        places: list[TopicPartition] = []
        try:
            committed = yield Ask("committed", asked, timeout=_ANSWER_SECONDS)
            yield from self._automatic.check(committed)
            with self._lock:
                refused = self._schedule.confirm(committed)
                places = self._schedule.done()
                self._schedule.commit(places)
            for place in refused:
                where = f"{place.topic}[{place.partition}]"
                _log.warning(
                    "offsets were not committed: the group has the offset %d for %s", place.offset, where
                )
            if places:
                began = time.monotonic()
                yield Ask("commit", offsets=places, asynchronous=True)
                self._note(places, began)
        except KafkaException as error:  # the broker is away, or the group is moving to another broker
            _log.warning("offsets were not committed: %s", error)
            with self._lock:
                self._schedule.commit(places, failed=True)

    def commit_all(self, seconds: float, names: Collection[PartitionName] | None = None) -> Steps[bool]:
        """Yield the client calls that commit the records that are done, in some or all partitions.

        Return whether all commits have succeeded. While the members of the group join again, the
        calls are repeated for up to ``seconds``.
        """
        from confluent_kafka import KafkaException

        with self._lock:
            places = self._schedule.done(names, again=True)
        if not places:
            return True
        began = time.monotonic()
        try:
            yield Ask("committed", places, timeout=seconds)  # this fails if the broker is away
            with self._lock:
                places = self._schedule.done(names, again=True)
            done = yield from self._commit(places, time.monotonic() + seconds)
            self._note(done or places, began)
            failed: list[object] = [place.error for place in done or () if place.error is not None]
            with self._lock:
                self._schedule.commit(places, failed=bool(failed))
                self._schedule.confirm(places)
        except KafkaException as error:
            failed = [error]
        for reason in failed:
            _log.warning("offsets were not committed: %s", reason)
        return not failed

    def lose(self, names: Collection[PartitionName]) -> None:
        """Log each partition that the group has moved to another member before its records were committed."""
        with self._lock:
            places = self._schedule.asked(unfinished=False)
        for place in places:
            if (place.topic, place.partition) in names:
                _log.warning(
                    "offsets were not committed: the group has moved %s[%d]", place.topic, place.partition
                )

    def _note(self, places: list[TopicPartition], began: float) -> None:
        if self._observers is not None:
            self._observers.of_places("committed", places, self._ends, began)

    def _commit(self, places: list[TopicPartition], deadline: float) -> Steps[list[TopicPartition] | None]:
        """Commit offsets; while the members of the group join again, repeat the commit until a deadline.

        If a broker refuses offsets because their metadata is too long, the offsets are committed without the
        list of finished records.
        """
        from confluent_kafka import KafkaException, TopicPartition

        plain = [TopicPartition(place.topic, place.partition, place.offset, MARK) for place in places]
        while True:
            try:
                done: list[TopicPartition] | None = yield Ask("commit", offsets=places, asynchronous=False)
                code = next((code_of(place.error) for place in done or () if place.error is not None), None)
                if code != _METADATA_TOO_LONG or places is plain:
                    return done
            except KafkaException as error:
                code = error.args[0].code()
                is_long = code == _METADATA_TOO_LONG and places is not plain
                if time.monotonic() >= deadline or not (is_long or code == _REBALANCE_IN_PROGRESS):
                    raise
            if code == _METADATA_TOO_LONG:
                places = plain
            else:
                yield Ask("sleep", 0.1)
