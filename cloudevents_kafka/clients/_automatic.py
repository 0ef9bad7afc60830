"""`Automatic`: detects a Kafka client that commits offsets automatically; `run` refuses such a client.

While a record is unfinished, the group's committed offset must not be after this record, because the record
would be lost if the process crashed. A Kafka client that this library has created from settings never commits
automatically. A Kafka client that the user has passed may commit automatically if it stores the offsets of
the records that it returns. Such a client does not show whether it commits. Therefore, the group's committed
offsets are requested while any record is unfinished. The group's offset is set back at once if a new
committed offset is after an unfinished record and its metadata does not show that a run has committed it. If
the group accepts the earlier offset, the partition belongs to this member, and an error is raised. The error
may be wrong in one case: another member owned the partition for less than a second, and the client was not
subscribed by this library. A run logs a warning if the client was not subscribed by this library. Before the
error is raised, the client's partitions are assigned again, so that the client forgets the offsets of its
next automatic commit.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from cloudevents_kafka.clients._errors import ConsumeError
from cloudevents_kafka.clients._schedule import Schedule
from cloudevents_kafka.clients._steps import Ask, Steps

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition


class Automatic:
    """Compares the offsets of the group with the unfinished records of a schedule."""

    def __init__(self, schedule: Schedule, lock: AbstractContextManager[object], *, is_passed: bool) -> None:
        self._schedule = schedule
        self._lock = lock
        self.may_commit = is_passed
        """Whether the client may commit offsets automatically."""

    def begin(self) -> Steps[None]:
        """Yield the client call that shows whether a client of the user may commit automatically."""
        if self.may_commit:
            self.may_commit = yield Ask("stores_offsets")

    def check(self, committed: list[TopicPartition]) -> Steps[None]:
        """Yield the client calls that set the group's offset back if an unfinished record was committed.

        Raises `ConsumeError` after the group's offset was set back. If the commit that sets the offset back
        raises an error, the caller receives this error. If the group refuses this commit for a partition, no
        error is raised, and the next check repeats the commit.
        """
        if not self.may_commit:
            return
        with self._lock:
            foreign = self._schedule.find_foreign(committed)
            places = self._schedule.done(again=True)
        if foreign is None:
            return
        done = (yield Ask("commit", offsets=places, asynchronous=False)) or ()
        if any(place.error is not None for place in done):
            return  # the next answer of the group shows the offset again
        yield Ask("set_back", places)
        raise _refusal(foreign, next(place for place in places if _name(place) == _name(foreign)))


def _name(place: TopicPartition) -> tuple[str, int]:
    return place.topic, place.partition


def _refusal(foreign: TopicPartition, in_work: TopicPartition) -> ConsumeError:
    return ConsumeError(
        "enable.auto.commit must be False for run(), but the client or other code has committed offset "
        f"{foreign.offset} while record {in_work.offset} is unfinished; create the Consumer with "
        "enable.auto.commit False, and do not commit in the handler",
        f"{foreign.topic}[{foreign.partition}]",
    )
