"""Set the offsets of a group back so that records are read again, even if the client commits automatically.

With ``enable.auto.commit``, a client commits the offset after the last record that it has returned from a
partition. It commits every few seconds, and when its partitions are unassigned. The client does not commit
offsets of an earlier assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._protocols import is_static, suppress_client_errors

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_COMMITTED_SECONDS: Final = 5.0
_LEAVE_SECONDS: Final = 0.1  # the wait for a rebalance that is under way
_AWAY_SECONDS: Final = 1.0  # the wait for a broker that did not answer before


def close_before(
    client: Any,
    sought: Sequence[TopicPartition],
    unread: Callable[[], Sequence[TopicPartition]],
    *,
    is_away: bool = False,
) -> None:
    """Close a client in such a way that its group continues at the first unread records.

    ``unread`` is a function that returns the offset of the first unread record of each partition. ``sought``
    lists the offsets to which ``seek`` has moved the client. An offset in ``sought`` is used only if no
    record of its partition was read after the ``seek``. If ``is_away`` is true, the broker has not answered
    an earlier request. The client then waits only one second for the next answer, instead of five.
    """
    close = leave
    try:
        if hasattr(client, "unassign"):  # a client of a user's class may have no group
            # After a seek, the position is unknown until a record is read.
            left = [place for place in sought if client.position([place])[0].offset < 0]
            if places := [*left, *unread()]:
                close = _close  # a client that was unassigned hangs if it is unsubscribed, too
                set_back(client, places, seconds=_AWAY_SECONDS if is_away else _COMMITTED_SECONDS)
    finally:
        close(client)


def _close(client: Any) -> None:
    client.close()


def leave(client: Any) -> None:
    """Make a client leave its group, and close the client.

    A static member does not leave its group.

    If a subscribed librdkafka client is closed during a rebalance, the client stays a member of the group
    until its session times out. Until then, by default for 45 seconds, the partitions of the client are not
    assigned to another member.
    """
    try:
        _unsubscribe(client)
    finally:  # a function of the user that is called in the rebalance may raise any error
        client.close()


def _unsubscribe(client: Any) -> None:
    if not all(hasattr(client, name) for name in ("assignment", "pause", "unsubscribe")):
        return  # a user's class may have no group
    if is_static(client):  # it would leave, and each restart would cause two rebalances
        return
    with suppress_client_errors():
        try:
            client.pause(client.assignment())  # so that `poll` returns no record, and commits no record
        except RuntimeError:  # the client is closed already
            return
        client.unsubscribe()
    client.poll(_LEAVE_SECONDS)


def set_back(
    client: Consumer,
    unread: Sequence[TopicPartition],
    *,
    stays: bool = False,
    seconds: float = _COMMITTED_SECONDS,
) -> None:
    """Unassign a client's partitions, and set the group's committed offsets back to the unread records.

    The offset of an unread record is committed only if the group's committed offset is after this record.
    After this call, the client commits nothing automatically. With ``stays``, the partitions are then
    assigned to the client again, and the client continues at the unread records.
    """
    starts = {(place.topic, place.partition): place for place in unread}
    with suppress_client_errors():  # the broker may be away, or the partition revoked
        assigned = client.assignment()
        asked = [place for place in assigned if (place.topic, place.partition) in starts]
        _either(client.unassign, lambda: client.incremental_unassign(assigned))
        committed = client.committed(asked, timeout=seconds) if asked else ()
        pairs = [(each, starts[each.topic, each.partition]) for each in committed]
        if after := [start for each, start in pairs if each.offset > start.offset]:
            client.commit(offsets=after, asynchronous=False)
        if stays:
            places = [starts.get((place.topic, place.partition), place) for place in assigned]
            _either(lambda: client.assign(places), lambda: client.incremental_assign(places))


def _either(eager: Callable[[], object], cooperative: Callable[[], object]) -> None:
    """Call ``eager``; if the group of the client rebalances cooperatively, call ``cooperative`` instead."""
    from confluent_kafka import KafkaException

    try:
        eager()
    except KafkaException:
        cooperative()
