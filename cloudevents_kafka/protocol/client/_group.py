"""`GroupMember`: joins a group, sends heartbeats, and joins again after a rebalance.

The section "Group Membership API" in "A Guide to the Kafka Protocol" describes the requests of group members.
A thread sends heartbeats while the user is busy. The thread never revokes partitions: when the group
rebalances, the thread continues to send heartbeats until the consumer has stopped reading and calls `rejoin`.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final, Literal, TypeAlias

from cloudevents_kafka.protocol.client._assignors import (
    ASSIGNORS,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._message import PartitionId
from cloudevents_kafka.protocol.client._offsets import GroupOffsets
from cloudevents_kafka.protocol.client._retry import Deadline, is_retriable
from cloudevents_kafka.protocol.client._settings import ConsumerSettings
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, Malformed, ProtocolError
from cloudevents_kafka.protocol.messages import groups

State: TypeAlias = Literal["joining", "stable", "rebalancing", "failed", "closed"]

REJOIN_ERRORS: Final = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS}
)
"""The errors after which this member must join the group again."""

_RETRY_PAUSE: Final = 0.1  # seconds, before a failed step is repeated
_LOOKUP_TIMEOUT: Final = 3.0  # seconds for new topics to get leaders
_HEARTBEAT_TIMEOUT: Final = 0.5  # seconds for a heartbeat in flight when the member leaves
_LEAVE_TIMEOUT: Final = 2.0  # seconds for leaving; a member that does not leave expires with its session


class GroupMember:
    """The membership of one consumer in its group."""

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, group: str, topics: tuple[str, ...]
    ) -> None:
        """Start the thread, which joins the group and owns ``cluster`` from now on."""
        self._cluster: Final = cluster
        self._settings: Final = settings
        self._group: Final = group
        self._topics: Final = topics
        self._changed: Final = threading.Condition()
        self.offsets: Final = GroupOffsets(cluster, group, committed_only=settings.committed_only)
        self.assignment: list[PartitionId] = []
        self._led: dict[str, list[int]] = {}
        """The partitions that this member, as the group's leader, has assigned to all members."""
        self.state: State = "joining"
        self.error: ProtocolError | None = None
        self._thread: Final = threading.Thread(target=self._run, name="kafka-group", daemon=True)
        self._thread.start()

    def rejoin(self) -> None:
        self._set_state("joining", only_from="rebalancing")

    def wait(self, deadline: Deadline) -> None:
        """Wait until the member is no longer joining, or until the deadline."""
        with self._changed:
            while self.state == "joining" and not deadline.expired():
                self._changed.wait(deadline.at_most(0.2))

    def close(self, deadline: Deadline) -> None:
        last_state = self.state
        self._set_state("closed")
        if last_state == "joining":
            self._cluster.abort()  # the response may take as long as the slowest member
        self._thread.join(deadline.at_most(_HEARTBEAT_TIMEOUT))
        if aborted := last_state == "joining" or self._thread.is_alive():
            self._cluster.abort()
            self._thread.join(deadline.at_most(_HEARTBEAT_TIMEOUT))
        if last_state != "failed" and self.offsets.member_id:
            cluster = self._cluster.clone() if aborted else self._cluster
            self._leave(cluster, Deadline(deadline.at_most(_LEAVE_TIMEOUT)))
        self._cluster.close()

    def _leave(self, cluster: Cluster, deadline: Deadline) -> None:
        request = groups.LeaveGroupRequest(group_id=self._group, member_id=self.offsets.member_id)
        try:
            with GroupOffsets(cluster, self._group, committed_only=False).coordinator(deadline) as broker:
                broker.request(request, deadline)
        except ProtocolError:
            return  # the session will expire
        finally:
            cluster.close()

    def _run(self) -> None:
        while self.state not in {"closed", "failed"}:
            try:
                if self.state == "joining":
                    self._join()
                else:
                    self._heartbeat()
            except ProtocolError as error:
                self._handle_error(error)

    def _handle_error(self, error: ProtocolError) -> None:
        code = error.code if isinstance(error, BrokerError) else None
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            return
        if code in REJOIN_ERRORS:
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.offsets.member_id = ""  # S4-B1: "the memberId will be empty"
            if not self._set_state("rebalancing", only_from="stable"):
                self._sleep(_RETRY_PAUSE)
        elif is_retriable(error):
            self._cluster.invalidate()
            self._sleep(_RETRY_PAUSE)
        else:
            self.error = error
            self._set_state("failed")

    def _join(self) -> None:
        settings = self._settings
        deadline = Deadline(settings.rebalance_timeout + settings.request_timeout)
        with self.offsets.coordinator(deadline) as broker:
            if self.state != "joining":  # closed before there was a connection to abort
                return
            joined = self._join_group(broker, deadline)
            assignment = self._sync_group(broker, joined, deadline)
            if self.state == "joining":
                self.offsets.generation, self.assignment = joined.generation_id, assignment
        self._set_state("stable", only_from="joining")

    def _join_group(self, broker: Connection, deadline: Deadline) -> groups.JoinGroupResponse:
        settings = self._settings
        metadata = compiler.encode(groups.Subscription(topics=list(self._topics)), 0)
        request = groups.JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=int(settings.session_timeout * 1000),
            # S4-B3: each member has "up to this duration to rejoin"; version 0 uses the session timeout
            rebalance_timeout_ms=int(settings.rebalance_timeout * 1000),
            member_id=self.offsets.member_id,
            protocol_type="consumer",
            protocols=[  # S4-B5: the coordinator chooses one "which all members support"
                groups.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in settings.assignors
            ],
        )
        response: groups.JoinGroupResponse = broker.request(request, deadline)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:  # KIP-394: join again with this id
            self.offsets.member_id = response.member_id
        self._check(response.error_code)
        self.offsets.member_id = response.member_id
        return response

    def _sync_group(
        self, broker: Connection, joined: groups.JoinGroupResponse, deadline: Deadline
    ) -> list[PartitionId]:
        leads = joined.leader == joined.member_id and not joined.skip_assignment
        self._led = {}
        request = groups.SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=self.offsets.member_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=self._assignments(joined, deadline) if leads else [],
        )
        response: groups.SyncGroupResponse = broker.request(request, deadline)
        self._check(response.error_code)
        return decode_assignment(response.assignment)

    def _assignments(
        self, joined: groups.JoinGroupResponse, deadline: Deadline
    ) -> list[groups.SyncGroupRequestAssignment]:
        """Return the partitions that this member, as the group's leader, assigns to each member."""
        subscriptions = {member.member_id: decode_subscription(member.metadata) for member in joined.members}
        if (assign := ASSIGNORS.get(joined.protocol_name or "")) is None:
            offered = ", ".join(self._settings.assignors)
            raise Malformed(
                f"group {self._group}: the protocol must be one of {offered}, got {joined.protocol_name!r}"
            )
        topics = sorted({topic for subscribed in subscriptions.values() for topic in subscribed})
        # No heartbeats are sent during these requests.
        share = min(_LOOKUP_TIMEOUT, self._settings.session_timeout / 3) / max(len(topics), 1)
        with suppress(ProtocolError):  # the group's former leader may have seen new partitions
            self._cluster.fetch_metadata(topics, Deadline(deadline.at_most(share)))
        partitions = {topic: self._partitions(topic, Deadline(deadline.at_most(share))) for topic in topics}
        self._led = partitions
        return [
            groups.SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(assigned))
            for member, assigned in assign(subscriptions, partitions).items()
        ]

    def _partitions(self, topic: str, deadline: Deadline) -> list[int]:
        """Return a topic's partitions, or [] for a missing topic.

        A missing topic does not stop the group, which reads its other topics.
        """
        try:
            return self._cluster.partitions(topic, deadline)
        except DeadlineExceeded as error:
            cause = error.__cause__
            if isinstance(cause, BrokerError) and cause.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return []
            raise

    def _heartbeat(self) -> None:
        # S4-B2: without a heartbeat "before expiration of the session timeout" the member is removed
        self._sleep(self._settings.heartbeat_interval)
        if self.state not in {"stable", "rebalancing"}:
            return
        # The deadline leaves time to repeat a heartbeat: 0.9 loses requests that it reads together with an
        # unknown request, such as the ApiVersions request of any client that connects.
        deadline = Deadline(min(self._settings.request_timeout, self._settings.session_timeout / 3))
        with self.offsets.coordinator(deadline) as broker:
            request = groups.HeartbeatRequest(
                group_id=self._group, generation_id=self.offsets.generation, member_id=self.offsets.member_id
            )
            response: groups.HeartbeatResponse = broker.request(request, deadline)
            must_assign = not response.error_code and self._has_new_partitions(deadline)
        self._check(response.error_code)
        if must_assign:
            self._set_state("rebalancing", only_from="stable")

    def _has_new_partitions(self, deadline: Deadline) -> bool:
        """Return whether a topic has new partitions that this member, as the leader, has not assigned."""
        if not self._led:
            return False
        try:
            found = self._cluster.known_partitions(list(self._led), deadline)
        except ProtocolError:
            return False
        # If a broker knows fewer partitions, or none for a moment, nothing changes.
        return any(set(found[topic]) - set(assigned) for topic, assigned in self._led.items())

    def _check(self, code: int) -> None:
        if code:
            raise BrokerError(code, f"group {self._group}")

    def _set_state(self, state: State, *, only_from: State | None = None) -> bool:
        """Change the state unless the member is closed, and return whether the state has changed.

        If ``only_from`` is passed, the state changes only if ``only_from`` is the current state.
        """
        with self._changed:
            if self.state == "closed" or only_from not in {None, self.state}:
                return False
            self.state = state
            self._changed.notify_all()
            return True

    def _sleep(self, seconds: float) -> None:
        """Wait for some seconds, or until the state changes."""
        with self._changed:
            before = self.state
            self._changed.wait_for(lambda: self.state != before, seconds)
