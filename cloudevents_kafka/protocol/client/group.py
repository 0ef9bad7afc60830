"""Membership of a group: joining, staying alive, joining again (guide, "Group Membership API").

A thread of its own keeps the member alive while the user is busy. It never takes a
partition away by itself: when the group rebalances it waits, still alive, until the
consumer has given up what it reads, and only then joins again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, TypeAlias

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client import offsets
from cloudevents_kafka.protocol.client.assignors import ASSIGNORS
from cloudevents_kafka.protocol.client.batches import TopicAndPartition
from cloudevents_kafka.protocol.client.cluster import Broker, Cluster, worth_another_try
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    DeadlineExceeded,
    Malformed,
    ProtocolError,
)
from cloudevents_kafka.protocol.messages.groups import (
    AssignedTopic,
    Assignment,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    Subscription,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

State: TypeAlias = Literal["joining", "stable", "rebalancing", "failed", "closed"]

MOVED_ON: Final = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS}
)
"""Errors that say the group has moved on without this member: it has to join again."""
_PAUSE: Final = 0.1  # seconds, before a failed step is tried again
_LOOKUP: Final = 3.0  # seconds for topics to come into being
_PATIENCE: Final = 0.5  # seconds for a heartbeat on its way, when the member leaves
_FAREWELL: Final = 2.0  # seconds for leaving; without it the session runs out


class GroupPolicy(NamedTuple):
    """How a group is joined; times in seconds. See `Client.consumer`."""

    group: str
    assignors: tuple[str, ...]
    session_timeout: float
    rebalance_timeout: float
    heartbeat_interval: float
    request_timeout: float


class Membership:
    """One member of a group, for one consumer."""

    def __init__(self, cluster: Cluster, policy: GroupPolicy, topics: tuple[str, ...]) -> None:
        """Begin to join; ``cluster`` is its own from now on."""
        self._cluster: Final = cluster
        self._policy: Final = policy
        self._topics: Final = topics
        self._changed: Final = threading.Condition()
        self._wire: Final = threading.Lock()
        self._broker: Broker | None = None
        self._member_id = ""
        self._protocol = ""
        self.generation = -1
        self.assignment: list[TopicAndPartition] = []
        self.state: State = "joining"
        self.error: ProtocolError | None = None
        self._thread: Final = threading.Thread(target=self._run, name="kafka-group", daemon=True)
        self._thread.start()

    # --- what the consumer does ----------------------------------------------------------

    def rejoin(self) -> None:
        """Join again: what was assigned is not read any more."""
        self._move("joining", only_from="rebalancing")

    def wait(self, deadline: Deadline) -> None:
        """Wait until joining is over, or the deadline."""
        with self._changed:
            while self.state == "joining" and not deadline.over():
                self._changed.wait(deadline.at_most(0.2))

    def commit(self, committed: Mapping[TopicAndPartition, int], deadline: Deadline) -> None:
        """Commit offsets as this member; `BrokerError` where the group has moved on."""

        def tell() -> None:
            with self._asking(deadline) as broker:
                offsets.commit(
                    broker,
                    self._policy.group,
                    committed,
                    deadline,
                    generation=self.generation,
                    member=self._member_id,
                )

        self._cluster.retrying(f"offsets of group {self._policy.group}", tell, deadline)

    def committed(self, places: list[TopicAndPartition], deadline: Deadline) -> dict[TopicAndPartition, int]:
        """Return the group's offsets."""

        def ask() -> dict[TopicAndPartition, int]:
            with self._asking(deadline) as broker:
                return offsets.committed(broker, self._policy.group, places, deadline)

        return self._cluster.retrying(f"offsets of group {self._policy.group}", ask, deadline)

    def close(self, deadline: Deadline) -> None:
        """Leave the group at once, and end."""
        was = self.state
        self._move("closed")
        if was == "joining":
            self._cluster.end()  # the answer may take as long as the slowest member
        self._thread.join(deadline.at_most(_PATIENCE))
        if ended := was == "joining" or self._thread.is_alive():
            self._cluster.end()
            self._thread.join(deadline.at_most(_PATIENCE))
        if was != "failed" and self._member_id:
            self._leave(
                self._cluster.another() if ended else self._cluster, Deadline(deadline.at_most(_FAREWELL))
            )
        self._cluster.close()

    def _leave(self, cluster: Cluster, deadline: Deadline) -> None:
        request = LeaveGroupRequest(group_id=self._policy.group, member_id=self._member_id)
        try:
            offsets.coordinator(cluster, self._policy.group, deadline).request(request, deadline)
        except ProtocolError:
            return  # its session will run out
        finally:
            cluster.close()

    # --- the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        while self.state not in {"closed", "failed"}:
            try:
                if self.state == "joining":
                    self._join()
                else:
                    self._stay()
            except ProtocolError as error:
                self._stumbled(error)

    def _stumbled(self, error: ProtocolError) -> None:
        if isinstance(error, BrokerError) and error.code == ErrorCode.MEMBER_ID_REQUIRED:
            return
        if isinstance(error, BrokerError) and error.code in MOVED_ON:
            if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            if self.state == "stable":
                self._move("rebalancing", only_from="stable")
            else:
                self._rest(_PAUSE)
        elif worth_another_try(error) or isinstance(error, DeadlineExceeded):
            self._cluster.forget()
            self._rest(_PAUSE)
        else:
            self.error = error
            self._move("failed")

    def _join(self) -> None:
        policy = self._policy
        deadline = Deadline(policy.rebalance_timeout + policy.request_timeout)
        with self._asking(deadline) as broker:
            if self.state != "joining":  # closed while there was no connection to abort
                return
            joined = self._joined(broker, deadline)
            found = self._synced(broker, joined, deadline)
            if self.state == "joining":
                self.generation, self.assignment = joined.generation_id, found
        self._move("stable", only_from="joining")

    def _joined(self, broker: Broker, deadline: Deadline) -> JoinGroupResponse:
        policy = self._policy
        wish = frames.encode(Subscription(topics=list(self._topics)), 0)
        request = JoinGroupRequest(
            group_id=policy.group,
            session_timeout_ms=int(policy.session_timeout * 1000),
            rebalance_timeout_ms=int(policy.rebalance_timeout * 1000),
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=wish) for name in policy.assignors],
        )
        answer = broker.request(request, deadline)
        assert isinstance(answer, JoinGroupResponse)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:  # KIP-394: join once more, under this id
            self._member_id = answer.member_id
        self._check(answer.error_code)
        self._member_id = answer.member_id
        return answer

    def _synced(
        self, broker: Broker, joined: JoinGroupResponse, deadline: Deadline
    ) -> list[TopicAndPartition]:
        leads = joined.leader == joined.member_id and not joined.skip_assignment
        request = SyncGroupRequest(
            group_id=self._policy.group,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=self._planned(joined, deadline) if leads else [],
        )
        answer = broker.request(request, deadline)
        assert isinstance(answer, SyncGroupResponse)
        self._check(answer.error_code)
        if not answer.assignment:
            return []
        mine = frames.decode(Assignment, 0, answer.assignment)
        assert isinstance(mine, Assignment)
        return [(topic.topic, partition) for topic in mine.topics for partition in topic.partitions]

    def _planned(self, joined: JoinGroupResponse, deadline: Deadline) -> list[SyncGroupRequestAssignment]:
        """Make the plan, as the group's leader."""
        wishes = {}
        for member in joined.members:
            wish, _ = frames.decode_prefix(Subscription, 0, member.metadata)
            assert isinstance(wish, Subscription)
            wishes[member.member_id] = wish.topics
        if (assign := ASSIGNORS.get(joined.protocol_name or "")) is None:
            raise Malformed(
                f"group {self._policy.group}: the protocol {joined.protocol_name!r} was not offered"
            )
        topics = sorted({topic for wish in wishes.values() for topic in wish})
        # No heartbeats go out meanwhile.
        each = min(_LOOKUP, self._policy.session_timeout / 3) / max(len(topics), 1)
        partitions = {topic: self._partitions(topic, Deadline(deadline.at_most(each))) for topic in topics}
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=_packed(places))
            for member, places in assign(wishes, partitions).items()
        ]

    def _partitions(self, topic: str, deadline: Deadline) -> list[int]:
        """Return a topic's partitions, none where it does not exist: the group reads the others."""
        try:
            return self._cluster.partitions(topic, deadline)
        except DeadlineExceeded as error:
            if (
                isinstance(error.__cause__, BrokerError)
                and error.__cause__.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            ):
                return []
            raise

    def _stay(self) -> None:
        """Send a heartbeat, when it is time for one."""
        self._rest(self._policy.heartbeat_interval)
        if self.state not in {"stable", "rebalancing"}:
            return
        deadline = Deadline(self._policy.request_timeout)
        with self._asking(deadline) as broker:
            request = HeartbeatRequest(
                group_id=self._policy.group, generation_id=self.generation, member_id=self._member_id
            )
            answer = broker.request(request, deadline)
        assert isinstance(answer, HeartbeatResponse)
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._move("rebalancing", only_from="stable")
        else:
            self._check(answer.error_code)

    # --- small parts ---------------------------------------------------------------------

    def _check(self, code: int) -> None:
        if code:
            raise BrokerError(code, f"group {self._policy.group}")

    def _coordinator(self, deadline: Deadline) -> Broker:
        if self._broker is None or self._broker.connection.closed:
            self._broker = offsets.coordinator(self._cluster, self._policy.group, deadline)
        return self._broker

    @contextmanager
    def _asking(self, deadline: Deadline) -> Iterator[Broker]:
        """Give the coordinator's connection, to one thread at a time; after an error it is looked up anew."""
        if not self._wire.acquire(timeout=deadline.at_most(threading.TIMEOUT_MAX)):
            raise DeadlineExceeded("the group is rebalancing, and its connection busy")
        try:
            yield self._coordinator(deadline)
        except ProtocolError:
            self._broker = None
            raise
        finally:
            self._wire.release()

    def _move(self, state: State, *, only_from: State | None = None) -> None:
        with self._changed:
            if self.state != "closed" and only_from in {None, self.state}:
                self.state = state
            self._changed.notify_all()

    def _rest(self, seconds: float) -> None:
        with self._changed:
            before = self.state
            self._changed.wait_for(lambda: self.state != before, seconds)


def _packed(places: list[TopicAndPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    assigned = [AssignedTopic(topic=topic, partitions=some) for topic, some in topics.items()]
    return frames.encode(Assignment(topics=assigned), 0)
