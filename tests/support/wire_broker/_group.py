"""`Group`: the members of one consumer group, its generations and rebalances; `Changes`, its lock.

::

    EMPTY ──join──> PREPARING_REBALANCE ──all have joined, or the time is up──> COMPLETING_REBALANCE
                        ^                                                               │
                        │ a member joins, leaves,                  the leader's assignments
                        │ times out or changes                                          v
                        └────────────────────────────────────────────────────────── STABLE

A rebalance also begins again from COMPLETING_REBALANCE. A group has no thread: callers call
`tick` before they look at it, with the lock held. Methods that wait release it meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from tests.support.wire_broker._errors import ApiError, CloseConnection

_LONG_WAIT: Final = 3600.0


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
        """Wait for some time, or until a condition holds; raise `CloseConnection` once closed."""
        self.wait_for(lambda: self.closed or unless(), seconds)
        if self.closed:
            raise CloseConnection


class State(Enum):
    """The states of a group, named as by Kafka's brokers."""

    EMPTY = auto()
    PREPARING_REBALANCE = auto()
    COMPLETING_REBALANCE = auto()
    STABLE = auto()


class JoinParameters(NamedTuple):
    """The parameters of a JoinGroup request; times in seconds."""

    member_id: str
    instance: str | None
    session_timeout: float
    rebalance_timeout: float
    type: str
    protocols: dict[str, bytes]
    client_id: str = ""


class Member:
    """A member of a group."""

    def __init__(self, parameters: JoinParameters) -> None:
        self.id: Final = parameters.member_id
        self.parameters = parameters
        self.last_heartbeat = time.monotonic()
        self.pending_join: object | None = None
        """The member's JoinGroup request that waits for the generation to begin."""
        self.pending_syncs = 0
        self.assignment = b""


class Group:
    """A group's members by id, in the order in which they joined."""

    def __init__(self, changes: Changes, delay: float) -> None:
        """Begin empty; the first rebalance waits ``delay`` seconds for more members."""
        self._changes: Final = changes
        self.state = State.EMPTY
        self.generation = 0
        self.type: str | None = None
        """The protocol type of the members, also after they have left; None before the first."""
        self.protocol: str | None = None
        self.leader = ""
        self.members: dict[str, Member] = {}
        self.pending_ids: dict[str, float] = {}
        """Member ids that were assigned but not used yet, and when each expires."""
        self._delay: Final = delay
        self._deadline = 0.0
        self._not_before = 0.0

    def static_member(self, instance: str | None) -> Member | None:
        """Return the static member with an instance id (KIP-345), or None."""
        if instance is None:
            return None
        return next((m for m in self.members.values() if m.parameters.instance == instance), None)

    def add_or_update(self, parameters: JoinParameters) -> Member:
        """Add a member, or update its parameters, and return it; a change begins a rebalance."""
        member = self.members.get(parameters.member_id)
        changed = member is None or member.parameters.protocols != parameters.protocols
        if member is None:
            member = self.members[parameters.member_id] = Member(parameters)
            self.pending_ids.pop(parameters.member_id, None)
        member.parameters = parameters
        self.type = parameters.type
        member.last_heartbeat = time.monotonic()
        leader_again = self.state is State.STABLE and parameters.member_id == self.leader
        if changed or leader_again or self.state is State.EMPTY:
            self.rebalance()
        return member

    def remove(self, member_id: str) -> None:
        """Remove a member; the others must join again."""
        if self.members.pop(member_id, None) is not None:
            self.rebalance()

    def rebalance(self) -> None:
        """Make all members join again."""
        if self.state is State.PREPARING_REBALANCE:
            return
        now = time.monotonic()
        self._not_before = now + (self._delay if self.state is State.EMPTY else 0.0)
        timeouts = (member.parameters.rebalance_timeout for member in self.members.values())
        self._deadline = now + max(timeouts, default=0.0)
        self.state = State.PREPARING_REBALANCE

    def wait_for_generation(self, member: Member) -> None:
        """Wait until the next generation begins; raise `ApiError` if it begins without the member."""
        join = member.pending_join = object()
        self.tick()
        self._wait_while(lambda: member.pending_join is join)
        if member.pending_join is not None or self.members.get(member.id) is not member:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if self.state is State.PREPARING_REBALANCE:  # the next rebalance began before this thread woke
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def wait_for_leader(self, member: Member) -> None:
        """Wait until the leader has sent the assignments; raise `ApiError` if a rebalance begins before."""
        generation = self.generation
        member.pending_syncs += 1
        try:
            self._wait_while(
                lambda: self.state is State.COMPLETING_REBALANCE and self.generation == generation
            )
        finally:
            member.pending_syncs -= 1
            member.last_heartbeat = time.monotonic()
        if self.generation != generation or self.state is not State.STABLE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _wait_while(self, is_waiting: Callable[[], bool]) -> None:
        while is_waiting():
            if not self._changes.closed:
                self._changes.wait(max(0.0, self._next_deadline() - time.monotonic()))
            if self._changes.closed:
                raise CloseConnection
            self.tick()

    def _next_deadline(self) -> float:
        """Return when time alone changes the group next (`time.monotonic`)."""
        ends = [self._session_end(m) for m in self.members.values() if not self._has_pending_request(m)]
        if self.state is State.PREPARING_REBALANCE:
            ends += [self._deadline, *self.pending_ids.values()]
            if self._not_before > time.monotonic():
                ends.append(self._not_before)
        return min(ends, default=time.monotonic() + _LONG_WAIT)

    def tick(self) -> None:
        """Apply what is due: expire members and ids, end a rebalance."""
        now, before = time.monotonic(), (self.state, self.generation)
        self.pending_ids = {id: end for id, end in self.pending_ids.items() if end > now}
        for member in list(self.members.values()):
            # S4-B2: without "at least one heartbeat" it "will be removed from the group"
            if not self._has_pending_request(member) and self._session_end(member) <= now:
                self.remove(member.id)
        if self.state is State.PREPARING_REBALANCE and now >= self._not_before:
            all_joined = all(member.pending_join is not None for member in self.members.values())
            if (all_joined and not self.pending_ids) or now >= self._deadline:
                self._begin_generation()
        if before != (self.state, self.generation):
            self._changes.notify_all()

    def assign(self, assignments: dict[str, bytes]) -> None:
        """Set the leader's assignments; members that it left out are assigned nothing."""
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
            member.last_heartbeat = time.monotonic()
        self.state = State.STABLE
        self._changes.notify_all()

    def _begin_generation(self) -> None:
        """Begin a generation with the members that have joined."""
        self.members = {id: m for id, m in self.members.items() if m.pending_join is not None}
        self.generation += 1  # S4-B6: "upon every completion of the join group phase"
        self.state = State.COMPLETING_REBALANCE if self.members else State.EMPTY
        self.protocol = self._elected_protocol() if self.members else None
        if self.leader not in self.members:
            self.leader = next(iter(self.members), "")
        for member in self.members.values():
            member.pending_join = None
            member.last_heartbeat = time.monotonic()
            member.assignment = b""

    def _elected_protocol(self) -> str:
        """Return the protocol that most members prefer, of those that all support."""
        supported = [member.parameters.protocols for member in self.members.values()]
        # S4-B5: "The coordinator chooses a single protocol which all members support"
        common = [name for name in supported[0] if all(name in one for one in supported)]
        votes = [next(name for name in one if name in common) for one in supported]
        return max(common, key=votes.count)

    @staticmethod
    def _session_end(member: Member) -> float:
        return member.last_heartbeat + member.parameters.session_timeout

    @staticmethod
    def _has_pending_request(member: Member) -> bool:
        """Return whether a request of the member waits here, which counts as a heartbeat."""
        return member.pending_join is not None or member.pending_syncs > 0
