"""The commits of `EventConsumer.run`, and how it finds those of a client that commits by itself.

While a record is unfinished, the group's offset of its partition must not be after it: a crash would lose
the record. So each second, also while no record is read, the offsets of the group are compared with the
unfinished records. An offset after an unfinished record is an error, except in three cases:

* It has the mark that `EventConsumer.run` puts in the metadata of its commits, which automatic commits do
  not have: it is of this run, or of another member, which has the partition now.
* It has not changed since the last check, or since the partition was assigned, which is before its first
  record is handled: an earlier process committed it, before a seek back.
* The group does not accept the offset before the record from this client, or the client has another id in
  the group since the last check: the process was stopped, the group has expelled it, and any other member
  may have moved on.

Before the error is raised, the group is set back to the unfinished records, and the client is assigned its
partitions again, which makes it forget what it would commit next: a crash from then on loses nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._errors import ConsumeError
from cloudevents_kafka.clients._protocols import suppress_client_errors
from cloudevents_kafka.clients._schedule import PartitionName, Schedule
from cloudevents_kafka.clients._steps import Ask, Steps

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.observing.calls import Observers

_REBALANCE_IN_PROGRESS: Final = 27
_log: Final = logging.getLogger("cloudevents_kafka.run")


class Commits:
    """Commits what a run has done, by steps of its client; ``lock`` is that of the schedule."""

    def __init__(
        self, schedule: Schedule, lock: AbstractContextManager[object], observers: Observers | None, ends: Any
    ) -> None:
        self._schedule = schedule
        self._lock = lock
        self._observers = observers
        self._ends = ends  # what observers ask for the ends of partitions
        self._member: object = None  # the id of the client in its group, at the last check

    def look(self, assigned: list[TopicPartition], seconds: float) -> Steps[None]:
        """Yield the calls that store the group's offsets of partitions, if it answers within ``seconds``."""
        self._member = yield Ask("memberid")
        with suppress_client_errors():  # what the group answers later is compared from then on
            committed = yield Ask("committed", assigned, timeout=seconds)
            with self._lock:
                self._schedule.note(committed)

    def commit(
        self, seconds: float, *, last: bool = False, names: Collection[PartitionName] | None = None
    ) -> Steps[bool]:
        """Yield the calls that commit what is done, if the group answers within ``seconds``.

        Return whether it has not failed.

        The group's offsets are requested first. They show whether the client commits by itself, which
        raises `ConsumeError`. And no commit is begun while the broker is away: a client with a pending
        commit is closed 45 seconds later, or never (librdkafka 2.16). With ``last`` all offsets are
        committed again, and with ``names`` those of partitions that are revoked, without an error.
        """
        from confluent_kafka import KafkaException

        is_final = last or names is not None
        with self._lock:
            asked = self._schedule.left(names) or self._schedule.done(names, again=is_final)
        if not asked:
            return True
        places: list[TopicPartition] = []
        try:
            committed = yield Ask("committed", asked, timeout=seconds)
            if not is_final:
                yield from self._check(committed)
            with self._lock:
                places = self._schedule.done(names, again=is_final)
                self._schedule.commit(places)
            began, deadline = time.monotonic(), time.monotonic() + seconds if is_final else 0.0
            done = (yield from self._commit(places, deadline)) if places else ()
            if self._observers is not None:
                self._observers.of_places("committed", done or places, self._ends, began)
            failed: list[object] = [place.error for place in done or () if place.error is not None]
        except KafkaException as error:  # the broker is away, or moves the group
            failed = [error]
            with self._lock:
                self._schedule.commit(places, failed=True)
        for reason in failed:
            _log.warning("offsets were not committed: %s", reason)
        return not failed

    def _commit(self, places: list[TopicPartition], deadline: float) -> Steps[list[TopicPartition] | None]:
        """Commit, up to a deadline if it is not 0; again while the members of the group join again."""
        from confluent_kafka import KafkaException

        while True:
            try:
                done: list[TopicPartition] | None = yield Ask(
                    "commit", offsets=places, asynchronous=not deadline
                )
            except KafkaException as error:
                if error.args[0].code() != _REBALANCE_IN_PROGRESS or time.monotonic() >= deadline:
                    raise
            else:
                return done
            yield Ask("sleep", 0.1)

    def _check(self, committed: list[TopicPartition]) -> Steps[None]:
        """Raise `ConsumeError` if something else has committed an unfinished record of this member."""
        with self._lock:
            foreign = self._schedule.find_foreign(committed)
            places = [] if foreign is None else self._schedule.done(again=True)
        member, self._member = self._member, (yield Ask("memberid"))
        if foreign is None:
            return
        if member != self._member or not (yield from self._is_accepted(places, foreign)):
            with self._lock:
                self._schedule.note(committed)
            return
        yield Ask("set_back", places)
        raise _refusal(foreign, next(place for place in places if _name(place) == _name(foreign)))

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
