"""Consumer groups: generations, rebalances and error codes."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.groups import (
    HeartbeatRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.support.wire import Wire, eventually, join, meanwhile, only
from tests.support.wire_broker import Settings, WireBroker

QUICK = Settings(session_timeouts=(10, 60_000))


@pytest.fixture
def broker():
    with WireBroker("4.3", settings=QUICK) as broker:
        yield broker


@pytest.fixture
def wires(broker):
    with ExitStack() as stack:
        yield [stack.enter_context(Wire(broker.nodes[0])) for _ in range(3)]


def sync(member_id, generation=1, assignments=None, **more):
    return SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=id, assignment=data)
            for id, data in (assignments or {}).items()
        ],
        **more,
    )


def beat(wire, member_id, generation=1, **more):
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id, **more)
    return wire.ask(request, 3).error_code


def alone(wire, **more):
    """Join an empty group and hand oneself an assignment; return the member's id."""
    joined = wire.ask(join(**more), 1)
    assert joined.error_code == ErrorCode.NONE
    assert joined.leader == joined.member_id
    synced = wire.ask(sync(joined.member_id, joined.generation_id, {joined.member_id: b"mine"}), 0)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"mine")
    return joined.member_id


@pytest.mark.parametrize("version", range(10))
def test_a_single_member_is_the_leader(wires, version):
    """A member joins in each version; from version 4 on it receives an id first."""
    joined = wires[0].ask(join(), version)
    if version >= 4:
        assert (joined.error_code, joined.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
        joined = wires[0].ask(join(joined.member_id), version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert joined.leader == joined.member_id
    assert joined.member_id.startswith("test-")
    assert (only(joined.members).member_id, only(joined.members).metadata) == (joined.member_id, b"r")
    assert joined.protocol_type == ("consumer" if version >= 7 else None)


def test_a_second_member_starts_a_rebalance(broker, wires):
    """The first member joins again and leads; only the leader receives the members."""
    one, two, extra = wires
    first = alone(one)
    assert beat(extra, first) == ErrorCode.NONE
    with meanwhile(lambda: two.ask(join(), 1)) as second:
        assert eventually(lambda: beat(extra, first) == ErrorCode.REBALANCE_IN_PROGRESS)
        assert beat(extra, first, 77) == ErrorCode.REBALANCE_IN_PROGRESS
        leading = one.ask(join(first), 1)
    following = only(second)
    assert leading.generation_id == following.generation_id == 2
    assert leading.leader == following.leader == first
    assert {member.member_id for member in leading.members} == {first, following.member_id}
    assert following.members == []
    with meanwhile(lambda: two.ask(sync(following.member_id, 2), 0)) as responses:
        time.sleep(0.02)
        assert responses == []
        assert one.ask(sync(first, 2, {following.member_id: b"yours"}), 0).assignment == b""
    assert (only(responses).error_code, only(responses).assignment) == (0, b"yours")
    assert broker.group("g").generation == 2


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (join(group=""), ErrorCode.INVALID_GROUP_ID),
        (join(session_ms=9), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join(session_ms=60_001), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join("who"), ErrorCode.UNKNOWN_MEMBER_ID),
        (join(protocols={}), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (join(protocols={"other": b""}), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (join(type="connect"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
    ids=["group", "short", "long", "member", "none", "protocol", "type"],
)
def test_invalid_joins_are_refused(wires, request_, code):
    """Each mistake has its error code, with generation -1 and the member's id."""
    alone(wires[0])
    got = wires[1].ask(request_, 1)
    assert (got.error_code, got.generation_id, got.member_id) == (code, -1, request_.member_id)


def test_members_and_generations_are_checked(wires):
    """Heartbeat and SyncGroup refuse an unknown member and another generation."""
    member = alone(wires[0])
    assert [beat(wires[0], member), beat(wires[0], "x"), beat(wires[0], member, 2)] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    ]
    assert [wires[0].ask(sync(id, n), 0).error_code for id, n in ((member, 1), ("x", 1), (member, 2))] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    ]
    got = [
        wires[0].ask(sync(member, 1, protocol_type=kind, protocol_name=name), 5).error_code
        for kind, name in (("consumer", "range"), ("connect", "range"), ("consumer", "rr"), (None, None))
    ]
    assert got == [
        ErrorCode.NONE,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ]


def test_the_protocol_is_one_that_all_support(broker, wires):
    """The group uses the common protocol that most members list first."""
    one, two, three = wires
    first = alone(one, protocols={"a": b"1", "b": b"2", "c": b"3"})
    preferring_c = join(protocols={"c": b"x", "b": b"y"})
    with (
        meanwhile(lambda: two.ask(preferring_c, 1)) as second,
        meanwhile(lambda: three.ask(preferring_c, 1)) as third,
    ):
        assert eventually(lambda: len(broker.group("g").members) == 3)
        joined = one.ask(join(first, protocols={"a": b"1", "b": b"2", "c": b"3"}), 1)
    assert joined.protocol_name == only(second).protocol_name == only(third).protocol_name == "c"
    assert sorted(member.metadata for member in joined.members) == [b"3", b"x", b"x"]


def test_waiting_members_do_not_expire(broker, wires):
    """A member that waits for the others, or for the leader, stays in the group."""
    one, two, _ = wires
    first = alone(one, rebalance_ms=5000)
    with meanwhile(lambda: two.ask(join(session_ms=40), 1)) as second:
        time.sleep(0.1)
        assert len(broker.group("g").members) == 2
        one.ask(join(first), 1)
    follower = only(second).member_id
    with meanwhile(lambda: two.ask(sync(follower, 2), 0)) as responses:
        time.sleep(0.1)
        one.ask(sync(first, 2, {follower: b"yours"}), 0)
    assert only(responses).assignment == b"yours"


def test_only_the_leader_starts_a_rebalance_by_joining_again(wires):
    """A follower that joins with the same protocols gets the current generation."""
    one, two, extra = wires
    first = alone(one)
    with meanwhile(lambda: two.ask(join(), 1)) as second:
        assert eventually(lambda: beat(extra, first) == ErrorCode.REBALANCE_IN_PROGRESS)
        one.ask(join(first), 1)
    follower = only(second).member_id
    one.ask(sync(first, 2, {}), 0)
    assert two.ask(join(follower), 1).generation_id == 2
    assert beat(extra, first, 2) == ErrorCode.NONE
    with meanwhile(lambda: one.ask(join(first), 1)) as again:
        assert eventually(lambda: beat(extra, follower, 2) == ErrorCode.REBALANCE_IN_PROGRESS)
        two.ask(join(follower), 1)
    assert only(again).generation_id == 3


def test_a_silent_member_expires(wires):
    """After its session timeout a member is unknown, and the next one leads a new generation."""
    member = alone(wires[0], session_ms=300)
    assert beat(wires[0], member) == ErrorCode.NONE
    time.sleep(0.32)
    assert beat(wires[0], member) == ErrorCode.UNKNOWN_MEMBER_ID
    assert wires[1].ask(join(), 1).generation_id > 1


def test_members_that_do_not_rejoin_in_time_are_removed(wires):
    """A rebalance ends after the longest rebalance timeout of the members."""
    first = alone(wires[0], rebalance_ms=60)
    began = time.monotonic()
    joined = wires[1].ask(join(rebalance_ms=30), 1)
    assert 0.05 < time.monotonic() - began < 2
    assert joined.leader == joined.member_id != first
    assert beat(wires[0], first, 2) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("version", "rebalance_ms", "least"), [(0, 30_000, 0.15), (1, 600, 0.5)])
def test_what_a_rebalance_waits_for(wires, version, rebalance_ms, least):
    """Members must join again within the session timeout in version 0, the rebalance timeout from 1 on.

    Heartbeats do not extend it.
    """
    timeouts = {"session_ms": 200, "rebalance_ms": rebalance_ms}
    one, two, extra = wires
    first = one.ask(join(**timeouts), version).member_id
    one.ask(sync(first, 1, {first: b""}), 0)
    began = time.monotonic()
    with meanwhile(lambda: two.ask(join(**timeouts), version)) as second:
        assert eventually(
            lambda: second or beat(extra, first) not in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
        )
    assert least < time.monotonic() - began < 4
    assert (only(second).generation_id, only(second).leader) == (2, only(second).member_id)
    assert beat(extra, first) == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_are_due_while_others_join(wires):
    """A silent member expires after its session timeout, also during a longer rebalance."""
    first = alone(wires[0], session_ms=400, rebalance_ms=30_000)
    began = time.monotonic()
    joined = wires[1].ask(join(rebalance_ms=30_000), 1)
    assert time.monotonic() - began < 5
    assert joined.leader == joined.member_id != first


def test_a_leader_that_never_syncs_is_replaced(wires):
    """Members that wait for assignments get error 27 once the leader's session is over."""
    one, two, extra = wires
    first = alone(one, session_ms=400)
    with meanwhile(lambda: two.ask(join(), 1)) as second:
        assert eventually(lambda: beat(extra, first) == ErrorCode.REBALANCE_IN_PROGRESS)
        one.ask(join(first, session_ms=400), 1)
    assert two.ask(sync(only(second).member_id, 2), 0).error_code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("version", range(6))
def test_a_leaving_member_is_removed_at_once(broker, wires, version):
    """The others join again; from version 3 on several members leave, each with an error code."""
    member = alone(wires[0])
    if version < 3:
        assert (
            wires[0].ask(LeaveGroupRequest(group_id="g", member_id="x"), version).error_code
            == ErrorCode.UNKNOWN_MEMBER_ID
        )
        assert (
            wires[0].ask(LeaveGroupRequest(group_id="g", member_id=member), version).error_code
            == ErrorCode.NONE
        )
    else:
        leaving = [MemberIdentity(member_id="x"), MemberIdentity(member_id=member)]
        got = wires[0].ask(LeaveGroupRequest(group_id="g", members=leaving), version)
        assert [got.error_code, *(row.error_code for row in got.members)] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
        ]
    assert beat(wires[0], member) == ErrorCode.UNKNOWN_MEMBER_ID
    assert broker.group("g").members == {}


def test_a_pending_member_id_may_leave(broker, wires):
    """A new member that leaves before it joins with its id delays no rebalance."""
    new_id = wires[0].ask(join(), 4).member_id
    assert wires[0].ask(LeaveGroupRequest(group_id="g", member_id=new_id), 2).error_code == ErrorCode.NONE
    assert wires[0].ask(join(new_id), 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert broker.group("g").pending_ids == {}


def test_a_static_member_replaces_itself(wires):
    """The same instance joins with a new id, and the old id is fenced (82)."""
    first = wires[0].ask(join(group_instance_id="i"), 5)
    assert first.error_code == ErrorCode.NONE
    again = wires[1].ask(join(group_instance_id="i"), 5)
    assert again.error_code == ErrorCode.NONE
    assert only(again.members).group_instance_id == "i"
    assert again.member_id != first.member_id
    assert beat(wires[0], first.member_id, 2, group_instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    leaving = [MemberIdentity(member_id="", group_instance_id="i")]
    got = wires[0].ask(LeaveGroupRequest(group_id="g", members=leaving), 3)
    assert only(got.members).error_code == ErrorCode.NONE


def test_the_first_generation_can_wait_for_more_members(wires):
    """With a delay, members that join at once are together in generation 1."""
    settings = Settings(session_timeouts=(10, 60_000), rebalance_delay=100)
    with (
        WireBroker("1.1", settings=settings) as broker,
        Wire(broker.nodes[0]) as one,
        Wire(broker.nodes[0]) as two,
    ):
        with meanwhile(lambda: one.ask(join(), 1)) as first:
            second = two.ask(join(), 1)
        assert only(first).generation_id == second.generation_id == 1


def test_a_rebalance_can_be_forced(broker, wires):
    """After `rebalance` members get error 27, and the next generation begins."""
    member = alone(wires[0])
    broker.rebalance("g")
    assert beat(wires[0], member) == ErrorCode.REBALANCE_IN_PROGRESS
    assert wires[0].ask(join(member), 1).generation_id == 2


def test_only_the_coordinator_answers_for_a_group():
    """Other brokers answer 16, also after the coordinator has moved."""
    with WireBroker(brokers=2) as broker, Wire(broker.nodes[0]) as one, Wire(broker.nodes[1]) as two:
        broker.move_coordinator("g", 2)
        assert [one.ask(join(), 1).error_code, two.ask(join(), 1).error_code] == [
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.NONE,
        ]
        broker.move_coordinator("g", 1)
        assert [beat(one, "x"), beat(two, "x"), two.ask(sync("x"), 0).error_code] == [
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.NOT_COORDINATOR,
        ]
        assert (
            two.ask(LeaveGroupRequest(group_id="g", member_id="x"), 0).error_code == ErrorCode.NOT_COORDINATOR
        )


def test_stopping_closes_the_connections_of_waiting_members():
    """The broker closes the connection of a member that waits for others at once."""
    with WireBroker("4.3") as broker, Wire(broker.nodes[0]) as one, Wire(broker.nodes[0]) as two:
        alone(one)
        two.send(join(), 1)
        assert eventually(lambda: len(broker.group("g").members) == 2)
        began = time.monotonic()
        broker.stop()
        assert two.is_closed()
        assert time.monotonic() - began < 5  # before the rebalance ends, which has 6 seconds
