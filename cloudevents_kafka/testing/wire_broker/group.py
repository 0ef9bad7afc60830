"""One consumer group: its members, generations and rebalances.

::

    EMPTY ──join──> JOINING ──all have joined, or time is up──> SYNCING ──leader's assignments──> STABLE
                       ^                                           │                                 │
                       └───────── a member comes, goes, falls silent or changes ────────────────────┘

No thread of its own: whoever looks at a group calls `tick` first, and those who wait
for it wait no longer than until `due`.
"""

from __future__ import annotations

import time
import uuid
from enum import Enum, auto
from typing import Final, NamedTuple

_INFINITE: Final = 3600.0


class State(Enum):
    """Where a group stands."""

    EMPTY = auto()
    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()


class Joining(NamedTuple):
    """What a member says when it joins; times in seconds."""

    member_id: str
    client_id: str
    instance: str | None
    session: float
    rebalance: float
    type: str
    protocols: dict[str, bytes]


class Member:
    """A member, and what its waiting request, if there is one, waits for."""

    def __init__(self, said: Joining) -> None:
        """Begin alive."""
        self.id: Final = said.member_id
        self.said = said
        self.seen = time.monotonic()
        self.waiting: object | None = None
        """The request of the member that waits for the generation to begin."""
        self.syncing = 0
        self.assignment = b""


class Group:
    """A group's members by id, in the order in which they came."""

    def __init__(self, delay: float) -> None:
        """Begin empty; the first rebalance waits ``delay`` seconds for more members."""
        self.state = State.EMPTY
        self.generation = 0
        self.protocol: str | None = None
        self.leader = ""
        self.members: dict[str, Member] = {}
        self.pending: dict[str, float] = {}
        """Member ids that were given out and not used yet, and until when they hold."""
        self._delay: Final = delay
        self._deadline = 0.0
        self._not_before = 0.0

    @property
    def type(self) -> str | None:
        """The members' protocol type, None without members."""
        return next((member.said.type for member in self.members.values()), None)

    def new_id(self, client_id: str) -> str:
        """Give out a member id."""
        return f"{client_id}-{uuid.uuid4()}"

    def by_instance(self, instance: str | None) -> Member | None:
        """Find a static member (KIP-345)."""
        return next(
            (m for m in self.members.values() if instance is not None and m.said.instance == instance), None
        )

    def common(self) -> list[str]:
        """Return the protocols that all members support, as the first of them orders them."""
        everyone = [member.said.protocols for member in self.members.values()]
        return [name for name in everyone[0] if all(name in one for one in everyone)] if everyone else []

    def enter(self, said: Joining) -> Member:
        """Take a member in, or what it says now; begin a rebalance if that changes anything."""
        member = self.members.get(said.member_id)
        changed = member is None or member.said.protocols != said.protocols
        if member is None:
            member = self.members[said.member_id] = Member(said)
            self.pending.pop(said.member_id, None)
        member.said = said
        member.seen = time.monotonic()
        again = self.state is State.STABLE and said.member_id == self.leader
        if changed or again or self.state is State.EMPTY:
            self.rebalance()
        return member

    def remove(self, member_id: str) -> None:
        """Let a member go; the others join again."""
        if self.members.pop(member_id, None) is not None:
            self.rebalance()

    def rebalance(self) -> None:
        """Ask everybody to join again."""
        if self.state is State.JOINING:
            return
        now = time.monotonic()
        self._not_before = now + (self._delay if self.state is State.EMPTY else 0.0)
        self._deadline = now + max((m.said.rebalance for m in self.members.values()), default=0.0)
        self.state = State.JOINING

    def due(self) -> float:
        """Return when time alone will change something (`time.monotonic`)."""
        ends = [m.seen + m.said.session for m in self.members.values() if not self._is_busy(m)]
        if self.state is State.JOINING:
            ends += [self._deadline, *self.pending.values()]
            if self._not_before > time.monotonic():
                ends.append(self._not_before)
        return min(ends, default=time.monotonic() + _INFINITE)

    def tick(self) -> None:
        """Do what is due: members fall out, a rebalance ends."""
        now = time.monotonic()
        self.pending = {id: until for id, until in self.pending.items() if until > now}
        for member in list(self.members.values()):
            if not self._is_busy(member) and member.seen + member.said.session <= now:
                self.remove(member.id)
        if self.state is not State.JOINING or now < self._not_before:
            return
        everyone = all(member.waiting is not None for member in self.members.values())
        if (everyone and not self.pending) or now >= self._deadline:
            self._begin()

    def assign(self, assignments: dict[str, bytes]) -> None:
        """Hand out what the leader assigned; members that it left out get nothing."""
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
            member.seen = time.monotonic()
        self.state = State.STABLE

    def _begin(self) -> None:
        """Begin a generation with those who joined."""
        self.members = {id: m for id, m in self.members.items() if m.waiting is not None}
        self.generation += 1
        self.state = State.SYNCING if self.members else State.EMPTY
        self.protocol = self._chosen() if self.members else None
        if self.leader not in self.members:
            self.leader = next(iter(self.members), "")
        for member in self.members.values():
            member.waiting = None
            member.seen = time.monotonic()
            member.assignment = b""

    def _chosen(self) -> str:
        """Choose the protocol that most members prefer, of those that all support."""
        common = self.common()
        votes = [next(p for p in m.said.protocols if p in common) for m in self.members.values()]
        return max(common, key=votes.count)

    def _is_busy(self, member: Member) -> bool:
        """Whether a request of the member waits here, which is as good as a heartbeat."""
        return member.waiting is not None or member.syncing > 0
