"""The coordinator: what members of groups ask, and which error they get.

All is called with the cluster's lock held; who waits lets go of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.testing.wire_broker.errors import Refused
from cloudevents_kafka.testing.wire_broker.group import Group, Joining, Member, State

if TYPE_CHECKING:
    from cloudevents_kafka.testing.wire_broker.cluster import Cluster


class MemberIdRequired(Refused):
    """A new member is to join again, with the id given here (KIP-394)."""

    def __init__(self, member_id: str) -> None:
        """Keep the id."""
        super().__init__(ErrorCode.MEMBER_ID_REQUIRED)
        self.member_id = member_id


class Joined(NamedTuple):
    """A generation, as one of its members is told of it; only the leader is told the members."""

    member_id: str
    generation: int
    protocol: str
    type: str
    leader: str
    members: list[Member]


class Groups:
    """All groups of a cluster."""

    def __init__(self, cluster: Cluster, session_timeouts: tuple[int, int], delay: int) -> None:
        """Keep the limits, in milliseconds."""
        self._cluster: Final = cluster
        self._least, self._most = (ms / 1000 for ms in session_timeouts)
        self._delay: Final = delay / 1000
        self._groups: Final[dict[str, Group]] = {}

    def find(self, group_id: str) -> Group:
        """Return a group as it stands now; one that nobody joined is empty."""
        group = self._groups.get(group_id) or Group(self._delay)
        self._tick(group)
        return group

    def rebalance(self, group_id: str) -> None:
        """Have all members of a group join again, for no reason at all."""
        group = self.find(group_id)
        if group.members:
            group.rebalance()
            self._cluster.changed.notify_all()

    def join(self, group_id: str, said: Joining, *, id_first: bool) -> Joined:
        """Join and wait until a generation begins; ``id_first`` sends newcomers off with an id."""
        self._check_joining(group_id, said)
        group = self._groups.setdefault(group_id, Group(self._delay))
        self._tick(group)
        self._check_protocols(group, said)
        member = group.enter(self._identified(group, said, id_first=id_first))
        if group.state is State.JOINING:
            self._wait_for_generation(group, member)
        assert group.protocol is not None
        told = list(group.members.values()) if group.leader == member.id else []
        return Joined(member.id, group.generation, group.protocol, member.said.type, group.leader, told)

    def sync(
        self,
        group_id: str,
        member: tuple[str, str | None],
        generation: int,
        protocol: tuple[str | None, str | None],
        assignments: dict[str, bytes],
    ) -> Group:
        """Wait for, or as the leader hand out, the assignments of a generation."""
        group = self.find(group_id)
        found = self._member(group, *member)
        self._check_state(group, generation)
        kind, name = protocol
        if kind not in {None, group.type} or name not in {None, group.protocol}:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        found.seen = time.monotonic()
        if group.state is State.SYNCING and group.leader == found.id:
            group.assign(assignments)
            self._cluster.changed.notify_all()
        self._wait_for_leader(group, found, generation)
        return group

    def heartbeat(self, group_id: str, member: tuple[str, str | None], generation: int) -> None:
        """Note that a member is alive; `Refused` with 27 if it is to join again."""
        group = self.find(group_id)
        self._member(group, *member).seen = time.monotonic()
        self._check_state(group, generation)

    def leave(self, group_id: str, member_id: str, instance: str | None) -> None:
        """Let a member go at once; a static one may leave by its instance alone."""
        group = self.find(group_id)
        static = group.by_instance(instance)
        if static is not None and not member_id:
            member_id = static.id
        if group.pending.pop(member_id, None) is None:
            group.remove(self._member(group, member_id, instance).id)
        self._tick(group)
        self._cluster.changed.notify_all()

    def check_commit(self, group_id: str, member: tuple[str, str | None], generation: int) -> None:
        """Let members of the generation commit, and anybody if there are no members."""
        if not group_id:
            raise Refused(ErrorCode.INVALID_GROUP_ID)
        group = self.find(group_id)
        if generation < 0 and not group.members:
            return
        self._member(group, *member).seen = time.monotonic()
        if generation != group.generation:
            raise Refused(ErrorCode.ILLEGAL_GENERATION)
        if group.state is State.SYNCING:
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)

    def _check_joining(self, group_id: str, said: Joining) -> None:
        if not group_id:
            raise Refused(ErrorCode.INVALID_GROUP_ID)
        if not self._least <= said.session <= self._most:
            raise Refused(ErrorCode.INVALID_SESSION_TIMEOUT)

    @staticmethod
    def _check_protocols(group: Group, said: Joining) -> None:
        if not said.protocols:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
        others = [m.said for m in group.members.values() if m.id != said.member_id]
        if any(other.type != said.type for other in others):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if others and not any(all(name in o.protocols for o in others) for name in said.protocols):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    @staticmethod
    def _identified(group: Group, said: Joining, *, id_first: bool) -> Joining:
        """Give a newcomer its id; a static one takes the place of its instance's last member."""
        if said.member_id:
            if said.member_id not in group.pending:
                Groups._member(group, said.member_id, said.instance)
            return said
        new = said._replace(member_id=group.new_id(said.client_id))
        former = group.by_instance(said.instance)
        if former is not None:
            group.remove(former.id)
        elif id_first and said.instance is None:
            group.pending[new.member_id] = time.monotonic() + said.session
            raise MemberIdRequired(new.member_id)
        return new

    @staticmethod
    def _member(group: Group, member_id: str, instance: str | None) -> Member:
        static = group.by_instance(instance)
        if static is not None and static.id != member_id:
            raise Refused(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in group.members:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        return group.members[member_id]

    @staticmethod
    def _check_state(group: Group, generation: int) -> None:
        """While a rebalance runs that is what members hear, whatever generation they say."""
        if group.state is State.JOINING:
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
        if generation != group.generation:
            raise Refused(ErrorCode.ILLEGAL_GENERATION)

    def _wait_for_generation(self, group: Group, member: Member) -> None:
        mine = member.waiting = object()
        self._tick(group)
        while member.waiting is mine:
            self._cluster.wait(group.due())
            self._tick(group)
        if member.waiting is not None or group.members.get(member.id) is not member:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state is State.JOINING:  # the next rebalance came before this thread did
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)

    def _wait_for_leader(self, group: Group, member: Member, generation: int) -> None:
        member.syncing += 1
        try:
            while group.state is State.SYNCING and group.generation == generation:
                self._cluster.wait(group.due())
                self._tick(group)
        finally:
            member.syncing -= 1
            member.seen = time.monotonic()
        if group.generation != generation or group.state is not State.STABLE:
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)

    def _tick(self, group: Group) -> None:
        before = group.state, group.generation
        group.tick()
        if before != (group.state, group.generation):
            self._cluster.changed.notify_all()
