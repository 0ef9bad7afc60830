"""Setting a group's offsets back to records that must be read again, also if the client commits by itself.

With ``enable.auto.commit`` a client commits the offsets after all records that it has returned: every few
seconds, and when partitions are unassigned. It does not commit offsets of an earlier assignment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.clients._protocols import Consumer, GroupConsumer, is_member

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_COMMITTED_SECONDS: Final = 5.0


class LateClose:
    """Closes a consumer when the current `run` has ended and has committed the records that are done."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may close
        self._threads: frozenset[threading.Thread] = frozenset()
        self._ended: threading.Event | None = None  # set when the current run has ended
        self._asked = False

    @contextmanager
    def during(self, threads: Iterable[threading.Thread], close: Callable[[], object]) -> Iterator[None]:
        """Return the context manager of a run, whose threads must not wait for its end."""
        with self._lock:
            self._threads = frozenset((threading.current_thread(), *threads))
            self._ended = ended = threading.Event()
        try:
            yield
        finally:
            with self._lock:
                self._ended = None
                asked, self._asked = self._asked, False
            try:
                if asked:
                    close()
            finally:
                ended.set()

    def is_left_to_run(self) -> bool:
        """Return whether the current run closes the consumer, after waiting for that if the thread may."""
        with self._lock:
            ended = self._ended
            if ended is None:
                return False
            self._asked = True
        if threading.current_thread() not in self._threads:
            ended.wait()
        return True


def close_before(
    client: Consumer, sought: Sequence[TopicPartition], unread: Sequence[TopicPartition]
) -> None:
    """Close a client so that the group continues at the first unread records.

    They are at the offsets ``unread``, and at those to which partitions were ``sought`` if nothing was read
    after that.
    """
    try:
        if (sought or unread) and is_member(client):
            # After a seek a position is unknown until a record is read.
            left = [place for place in sought if client.position([place])[0].offset < 0]
            _commit_back(client, [*left, *unread])
    finally:
        client.close()


def _commit_back(client: GroupConsumer, unread: Sequence[TopicPartition]) -> None:
    """Commit the offsets of the first unread records if the client has committed later ones."""
    from confluent_kafka import KafkaException

    with suppress(KafkaException):  # the client is leaving; the broker may be away, the partition revoked
        assigned = {(place.topic, place.partition) for place in client.assignment()}
        places = {name: place for place in unread if (name := (place.topic, place.partition)) in assigned}
        _unassign(client)
        committed = client.committed(list(places.values()), timeout=_COMMITTED_SECONDS) if places else ()
        after = [each for each in committed if each.offset > places[each.topic, each.partition].offset]
        if after:
            client.commit(offsets=[places[each.topic, each.partition] for each in after], asynchronous=False)


def hold_back(client: GroupConsumer, places: Sequence[TopicPartition]) -> None:
    """Commit offsets of the client's partitions, and read on from them; it commits nothing after them."""
    from confluent_kafka import KafkaException

    starts = {(place.topic, place.partition): place for place in places}
    with suppress(KafkaException):  # the broker may be away, the partition revoked
        assigned = client.assignment()
        _unassign(client)
        client.commit(offsets=list(places), asynchronous=False)
        _assign(client, [starts.get((place.topic, place.partition), place) for place in assigned])


def _assign(client: GroupConsumer, places: list[TopicPartition]) -> None:
    from confluent_kafka import KafkaException

    try:
        client.assign(places)
    except KafkaException:  # the assignment of the group is cooperative
        client.incremental_assign(places)


def _unassign(client: GroupConsumer) -> None:
    from confluent_kafka import KafkaException

    try:
        client.unassign()
    except KafkaException:  # the assignment of the group is cooperative
        client.incremental_unassign(client.assignment())
