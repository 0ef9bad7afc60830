"""`GroupCoordinator`: the requests of group members, and the errors they are answered with.

Its methods are called with the cluster's lock held; methods that wait release it meanwhile.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.testing.wire_broker._errors import ApiError, CloseConnection
from cloudevents_kafka.testing.wire_broker._group import Group, JoinParameters, Member, State


class Changes(threading.Condition):
    """The lock of a cluster's state, which is notified of each change, and can be closed for good."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def close(self) -> None:
        """Wake all waiting threads; each raises `CloseConnection`."""
        with self:
            self.closed = True
            self.notify_all()

    def sleep(self, seconds: float, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait for some time, or until a condition holds; `CloseConnection` once closed."""
        self.wait_for(lambda: self.closed or unless(), seconds)
        if self.closed:
            raise CloseConnection

    def wait_until(self, end: float) -> None:
        """Wait for a change, until ``end`` (`time.monotonic`) at most; `CloseConnection` once closed."""
        if not self.closed:
            self.wait(max(0.0, end - time.monotonic()))
        if self.closed:
            raise CloseConnection


class GroupCoordinator:
    """All groups of a cluster."""

    def __init__(self, changes: Changes, session_timeouts: tuple[int, int], delay: int) -> None:
        """Begin without groups; ``session_timeouts`` (least and most) and ``delay`` are in milliseconds."""
        self._changes: Final = changes
        self._min_session, self._max_session = (ms / 1000 for ms in session_timeouts)
        self._delay: Final = delay / 1000
        self._groups: Final[dict[str, Group]] = {}

    def find(self, group_id: str) -> Group:
        """Return a group in its present state; a group that nobody joined is empty."""
        group = self._groups.get(group_id) or Group(self._delay)
        self._tick(group)
        return group

    def rebalance(self, group_id: str) -> None:
        """Make all members of a group join again."""
        group = self.find(group_id)
        if group.members:
            group.rebalance()
            self._changes.notify_all()

    def join(self, group_id: str, parameters: JoinParameters, *, id_first: bool) -> tuple[Group, Member]:
        """Join, and return the group in its next generation, and the member.

        With ``id_first`` new members receive an id and must join again with it (KIP-394).
        """
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        if not self._min_session <= parameters.session_timeout <= self._max_session:
            raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
        group = self._groups.setdefault(group_id, Group(self._delay))
        self._tick(group)
        self._check_protocols(group, parameters)
        member = group.add_or_update(self._with_member_id(group, parameters, id_first=id_first))
        if group.state is State.PREPARING_REBALANCE:
            self._wait_for_generation(group, member)
        return group, member

    def sync(
        self,
        group_id: str,
        member: tuple[str, str | None],
        generation: int,
        protocol: tuple[str | None, str | None],
        assignments: dict[str, bytes],
    ) -> Group:
        """Set the assignments of a generation as its leader, or wait for them; return the group.

        ``member`` is an id and an instance id, ``protocol`` a type and a name.
        """
        group = self.find(group_id)
        found = self._member(group, *member)
        self._check_state(group, generation)
        kind, name = protocol
        if kind not in {None, group.type} or name not in {None, group.protocol}:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        found.last_heartbeat = time.monotonic()
        if group.state is State.COMPLETING_REBALANCE and group.leader == found.id:
            group.assign(assignments)
            self._changes.notify_all()
        self._wait_for_leader(group, found, generation)
        return group

    def heartbeat(self, group_id: str, member: tuple[str, str | None], generation: int) -> None:
        """Record that a member is alive; `ApiError` if it must join again."""
        group = self.find(group_id)
        self._member(group, *member).last_heartbeat = time.monotonic()
        self._check_state(group, generation)

    def leave(self, group_id: str, member_id: str, instance: str | None) -> None:
        """Remove a member at once; a static member may leave by its instance id alone."""
        group = self.find(group_id)
        static = group.static_member(instance)
        if static is not None and not member_id:
            member_id = static.id
        if group.pending_ids.pop(member_id, None) is None:
            group.remove(self._member(group, member_id, instance).id)
        self._tick(group)
        self._changes.notify_all()

    def check_commit(self, group_id: str, member: tuple[str, str | None], generation: int) -> None:
        """Raise `ApiError` unless members of this generation, or all clients, may commit."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        group = self.find(group_id)
        if generation < 0 and not group.members:
            return
        self._member(group, *member).last_heartbeat = time.monotonic()
        if generation != group.generation:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        if group.state is State.COMPLETING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    @staticmethod
    def _check_protocols(group: Group, parameters: JoinParameters) -> None:
        if not parameters.protocols:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        others = [m.parameters for m in group.members.values() if m.id != parameters.member_id]
        if any(other.type != parameters.type for other in others):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if others and not any(all(name in o.protocols for o in others) for name in parameters.protocols):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    @staticmethod
    def _with_member_id(group: Group, parameters: JoinParameters, *, id_first: bool) -> JoinParameters:
        """Return the parameters with an id; a static member replaces the last one of its instance."""
        if parameters.member_id:
            if parameters.member_id not in group.pending_ids:
                GroupCoordinator._member(group, parameters.member_id, parameters.instance)
            return parameters
        new = parameters._replace(member_id=f"{parameters.client_id}-{uuid.uuid4()}")
        former = group.static_member(parameters.instance)
        if former is not None:
            group.remove(former.id)
        elif id_first and parameters.instance is None:
            group.pending_ids[new.member_id] = time.monotonic() + parameters.session_timeout
            raise ApiError(ErrorCode.MEMBER_ID_REQUIRED, member_id=new.member_id)
        return new

    @staticmethod
    def _member(group: Group, member_id: str, instance: str | None) -> Member:
        static = group.static_member(instance)
        if static is not None and static.id != member_id:
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in group.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group.members[member_id]

    @staticmethod
    def _check_state(group: Group, generation: int) -> None:
        """Raise `ApiError` during a rebalance, of any generation, and for another generation."""
        if group.state is State.PREPARING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        if generation != group.generation:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)

    def _wait_for_generation(self, group: Group, member: Member) -> None:
        join = member.pending_join = object()
        self._tick(group)
        while member.pending_join is join:
            self._changes.wait_until(group.next_deadline())
            self._tick(group)
        if member.pending_join is not None or group.members.get(member.id) is not member:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state is State.PREPARING_REBALANCE:  # the next rebalance began before this thread woke
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _wait_for_leader(self, group: Group, member: Member, generation: int) -> None:
        member.pending_syncs += 1
        try:
            while group.state is State.COMPLETING_REBALANCE and group.generation == generation:
                self._changes.wait_until(group.next_deadline())
                self._tick(group)
        finally:
            member.pending_syncs -= 1
            member.last_heartbeat = time.monotonic()
        if group.generation != generation or group.state is not State.STABLE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _tick(self, group: Group) -> None:
        before = group.state, group.generation
        group.tick()
        if before != (group.state, group.generation):
            self._changes.notify_all()
