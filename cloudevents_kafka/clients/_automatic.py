"""`Automatic`: finds a client that commits by itself, which a run must not have.

While a record is unfinished, the group's offset must not be after it: a crash would lose the record. A client
that stores the offsets of what it returns may commit them, and does not say whether. So for such a client the
group is asked while any record is unfinished. An offset after one is an error, except if:

* It has the mark of the commits of `EventConsumer.run`, which automatic ones do not have.
* The group had it before the first record was handled: an earlier process committed it, before a seek back.
* The group refuses to set it back, or the client has joined again since: another member has the partition,
  or had it.

Before the error is raised, the group is set back to the unfinished records, and the client is assigned its
partitions again, so it forgets what it would commit next: a crash from then on loses nothing.
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

    def __init__(self, schedule: Schedule, lock: AbstractContextManager[object]) -> None:
        self._schedule = schedule
        self._lock = lock
        self._member: object = None  # the id of the client in its group, when it was assigned a partition
        self.may_commit = True
        """Whether the client may commit by itself."""

    def begin(self) -> Steps[None]:
        """Yield the call that shows whether the client may commit by itself."""
        self.may_commit = yield Ask("stores_offsets")

    def look(self) -> Steps[None]:
        """Yield the call for a new partition."""
        self._member = yield Ask("memberid")

    def check(self, committed: list[TopicPartition]) -> Steps[None]:
        """Yield calls that find out if something else has committed an unfinished record of this member.

        Raises `ConsumeError` if so.
        """
        if not self.may_commit:
            return
        with self._lock:
            foreign = self._schedule.find_foreign(committed)
            places = [] if foreign is None else self._schedule.done(again=True)
        if foreign is None:
            return
        member, self._member = self._member, (yield Ask("memberid"))
        if member == self._member and (yield from self._is_accepted(places, foreign)):
            yield Ask("set_back", places)
            raise _refusal(foreign, next(place for place in places if _name(place) == _name(foreign)))
        with self._lock:
            self._schedule.note(committed)
            self._schedule.commit([foreign], failed=True)

    def _is_accepted(self, places: list[TopicPartition], foreign: TopicPartition) -> Steps[bool]:
        """Commit offsets, and return whether the group accepts that for a partition of this member."""
        done = (yield Ask("commit", offsets=places, asynchronous=False)) or ()
        failed = any(place.error is not None for place in done if _name(place) == _name(foreign))
        assigned = map(_name, (yield Ask("assignment")))
        return not failed and self._member == (yield Ask("memberid")) and _name(foreign) in assigned


def _name(place: TopicPartition) -> tuple[str, int]:
    return place.topic, place.partition


def _refusal(foreign: TopicPartition, in_work: TopicPartition) -> ConsumeError:
    return ConsumeError(
        f"enable.auto.commit must be False for run(), but offset {foreign.offset} was committed, not by "
        f"run(), while record {in_work.offset} is unfinished; create the Consumer with enable.auto.commit "
        "False, and do not commit in the handler",
        f"{foreign.topic}[{foreign.partition}]",
    )
