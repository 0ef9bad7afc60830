"""Odd requests of groups: members, committed offsets, coordinators and descriptions."""

from __future__ import annotations

from cloudevents_kafka.protocol.messages import groups, offsets
from tests.support.wire import join

JOIN, FIRST_ID = "0-3", "4-9"  # without and with an id before the first join


def member(ask, group, **more):
    """Join a group as its only member; return the member id and the generation."""
    response = ask.plain(join(group=group, **more), JOIN)
    return response.member_id, response.generation_id


def sync(group, generation, id, **more):
    assignments = [groups.SyncGroupRequestAssignment(member_id=id, assignment=b"a")]
    return groups.SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=id, assignments=assignments, **more
    )


def beat(group, generation, id, **more):
    return groups.HeartbeatRequest(group_id=group, generation_id=generation, member_id=id, **more)


def stable(ask, group, **more):
    """Return the id and generation of the only member of a stable group."""
    id, generation = member(ask, group, **more)
    assert ask(sync(group, generation, id), "0-2")["error_code"] == 0
    return id, generation


def commit(group, topic, *rows, generation=-1, id="", **more):
    """Return a commit of (partition, offset, metadata)."""
    parts = [
        offsets.OffsetCommitRequestPartition(partition_index=n, committed_offset=at, committed_metadata=text)
        for n, at, text in rows
    ]
    return offsets.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=id,
        topics=[offsets.OffsetCommitRequestTopic(name=topic, partitions=parts)],
        **more,
    )


def committed(group, *rows, **more):
    wanted = [offsets.OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in rows]
    return offsets.OffsetFetchRequest(group_id=group, topics=wanted, **more)


# --- JoinGroup ---


def join_without_protocols(ask):
    group = ask.group()
    for versions in (JOIN, FIRST_ID):
        yield ask(join(group=group, protocols={}), versions)


def join_without_a_type(ask):
    group = ask.group()
    for versions in (JOIN, FIRST_ID):
        yield ask(join(group=group, type=""), versions)


def join_without_group(ask):
    ask.group()
    for versions in (JOIN, FIRST_ID):
        yield ask(join(group=""), versions)


def sessions_out_of_range(ask):
    group = ask.group()
    for time in (-1, 0, 5999, 1_800_001):
        yield ask(join(group=group, session_ms=time), JOIN)


def join_with_an_unknown_id(ask):
    group = ask.group()
    for versions in (JOIN, FIRST_ID):
        yield ask(join("unknown", group=group), versions)
    stable(ask, group)
    yield ask(join("unknown", group=group), JOIN)


def id_before_the_first_join(ask):
    group = ask.group()
    yield ask(join(group=group), FIRST_ID)


def join_with_another_type_or_protocol(ask):
    group = ask.group()
    stable(ask, group)
    yield ask(join(group=group, type="connect"), JOIN)
    yield ask(join(group=group, protocols={"other": b""}), JOIN)
    yield ask(join(group=group, protocols={}), JOIN)


def join_again(ask):
    group = ask.group()
    id, _ = stable(ask, group)
    yield ask(join(id, group=group), JOIN)
    yield ask(join(id, group=group, protocols={"other": b""}), JOIN)
    yield ask(join(id, group=group, type="connect"), JOIN)


def odd_rebalance_times(ask):
    for time in (-1, 0):
        group = ask.group(f"g{time}")
        yield ask(join(group=group, rebalance_ms=time), "1-3")


def static_members(ask):
    group = ask.group()
    yield ask(join(group=group, group_instance_id="i"), "5-9")
    yield ask(join("unknown", group=group, group_instance_id="i"), "5-9")
    yield ask(join("unknown", group=group, group_instance_id="j"), "5-9")
    yield ask(beat(group, 1, "unknown", group_instance_id="i"), "3-4")
    yield ask(beat(group, 1, "unknown", group_instance_id="j"), "3-4")


def names_of_instances(ask):
    for number, instance in enumerate(("", ".", "a/b", "x" * 250)):
        yield ask(join(group=ask.group(str(number)), group_instance_id=instance), "5-9")


# --- SyncGroup, Heartbeat, LeaveGroup ---


def sync_as_a_stranger(ask):
    group = ask.group()
    yield ask(sync(group, 1, "unknown"), "0-5")
    yield ask(sync(group, -1, ""), "0-5")
    id, generation = member(ask, group)
    for wrong in (generation - 1, generation + 1, -1):
        yield ask(sync(group, wrong, id), "0-4")
    yield ask(sync(group, generation, "unknown"), "0-4")
    yield ask(sync(group, generation, id), "0-4")
    yield ask(sync(group, generation, id), "0-4")


def sync_of_another_protocol(ask):
    group = ask.group()
    id, generation = member(ask, group)
    for type, name in (("connect", "range"), ("consumer", "other"), (None, None), ("consumer", "range")):
        yield ask(sync(group, generation, id, protocol_type=type, protocol_name=name), "5")


def sync_without_group(ask):
    ask.group()
    yield ask(sync("", 1, "x"), "0-4")


def assignments_of_strangers(ask):
    group = ask.group()
    id, generation = member(ask, group)
    request = sync(group, generation, id)
    request.assignments = [groups.SyncGroupRequestAssignment(member_id="unknown", assignment=b"a")]
    yield ask(request, "0-4")


def odd_heartbeats(ask):
    group = ask.group()
    yield ask(beat(group, 1, "unknown"), "0-4")
    yield ask(beat(group, -1, ""), "0-4")
    yield ask(beat("", 1, "unknown"), "0-4")
    id, generation = member(ask, group)
    yield ask(beat(group, generation, id), "0-4")
    yield ask(beat(group, generation + 1, id), "0-4")
    ask(sync(group, generation, id), "0-4")
    for wrong in (generation - 1, generation + 1, -1, generation):
        yield ask(beat(group, wrong, id), "0-4")
    yield ask(beat(group, generation, "unknown"), "0-4")


def leave(group, id):
    return groups.LeaveGroupRequest(group_id=group, member_id=id)


def odd_leaves(ask):
    group = ask.group()
    yield ask(leave(group, "unknown"), "0-2")
    yield ask(leave("", "unknown"), "0-2")
    id, _ = stable(ask, group)
    for one in ("unknown", "", id, id):
        yield ask(leave(group, one), "0-2")


def several_leaves(ask):
    group = ask.group()
    stable(ask, group)
    for rows in (
        [],
        [("unknown", None)],
        [("", "i")],
        [("unknown", "i"), ("unknown", None)],
        [("", None)],
    ):
        members = [groups.MemberIdentity(member_id=id, group_instance_id=name) for id, name in rows]
        yield ask(groups.LeaveGroupRequest(group_id=group, members=members), "3-5")


# --- offsets ---


def commits_of_strangers(ask):
    group, topic = ask.group(), ask.topic()
    row = (0, 5, "m")
    yield ask(commit(group, topic, row), "1-9")
    yield ask(commit(group, topic, row, generation=3), "1-9")
    yield ask(commit(group, topic, row, id="unknown"), "1-9")
    yield ask(commit(group, topic, row, id="unknown", generation=0), "1-9")


def commits_of_members(ask):
    group, topic = ask.group(), ask.topic()
    id, generation = member(ask, group)
    row = (0, 5, "m")
    yield ask(commit(group, topic, row, id=id, generation=generation), "1-9")
    ask(sync(group, generation, id), "0-4")
    for who, when in (
        (id, generation),
        (id, generation + 1),
        (id, generation - 1),
        (id, -1),
        ("", -1),
        ("", generation),
        ("unknown", generation),
        ("unknown", -1),
    ):
        yield ask(commit(group, topic, row, id=who, generation=when), "1-9")


def commits_without_group(ask):
    ask.group()
    yield ask(commit("", ask.topic(), (0, 5, "m")), "1-9")


def odd_commits(ask):
    group, topic = ask.group(), ask.topic()
    for row in (
        (0, -1, "m"),
        (0, -5, "m"),
        (0, 1 << 62, "m"),
        (0, 1, None),
        (0, 2, "x" * 4096),
        (0, 3, "x" * 4097),
        (0, 4, "ä" * 2049),
    ):
        yield ask(commit(group, topic, row), "1-9")
        yield ask(committed(group, (topic, [0])), "1-7")


def commits_to_nowhere(ask):
    group, topic = ask.group(), ask.topic()
    yield ask(commit(group, topic, (1, 5, "m"), (-1, 5, "m"), (0, 5, "m")), "1-9")
    yield ask(commit(group, ask.name("absent"), (0, 5, "m")), "1-9")
    yield ask(commit(group, "a/b", (0, 5, "m")), "1-9")
    yield ask(commit(group, topic), "1-9")


def partition_twice_in_a_commit(ask):
    group, topic = ask.group(), ask.topic()
    yield ask(commit(group, topic, (0, 5, "m"), (0, 3, "n")), "1-9")
    yield ask(committed(group, (topic, [0])), "1-7")


def offsets_that_nobody_committed(ask):
    group, topic = ask.group(), ask.topic()
    yield ask(committed(group, (topic, [0, 1, -1])), "1-7")
    yield ask(committed(group, (ask.name("absent"), [0])), "1-7")
    yield ask(committed("", (topic, [0])), "1-7")
    yield ask(committed(group), "1-7")
    yield ask(offsets.OffsetFetchRequest(group_id=group, topics=None), "2-7")


def all_committed_offsets(ask):
    group, topic = ask.group(), ask.topic(partitions=1)
    ask(commit(group, topic, (0, 5, "m")), "1-9")
    yield ask(offsets.OffsetFetchRequest(group_id=group, topics=None), "2-7")
    yield ask(committed(group, (topic, [0, 0])), "1-7")
    yield ask(committed(group, (topic, [0]), (topic, [0])), "1-7")


def offsets_of_several_groups(ask):
    group, topic = ask.group(), ask.topic()
    ask(commit(group, topic, (0, 5, "m")), "1-9")
    rows = [offsets.OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])]
    for names in ([group], [group, "unknown"], [group, group]):
        wanted = [offsets.OffsetFetchRequestGroup(group_id=name, topics=rows) for name in names]
        yield ask(offsets.OffsetFetchRequest(groups=wanted), "8-9")
        wanted = [offsets.OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        yield ask(offsets.OffsetFetchRequest(groups=wanted), "8-9")


def offsets_of_a_member(ask):
    group, topic = ask.group(), ask.topic()
    for id, epoch in ((None, -1), ("unknown", 1), ("unknown", -1), (None, 5)):
        rows = [offsets.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
        wanted = offsets.OffsetFetchRequestGroup(
            group_id=group, member_id=id, member_epoch=epoch, topics=rows
        )
        yield ask(offsets.OffsetFetchRequest(groups=[wanted]), "9")


# --- FindCoordinator, DescribeGroups, ListGroups ---


def odd_coordinators(ask):
    group = ask.group()
    yield ask(groups.FindCoordinatorRequest(key=""), "0-3")
    for type in (2, 3, -1):
        yield ask(groups.FindCoordinatorRequest(key=group, key_type=type), "1-3")
    for keys in ([], ["", group], [group, group]):
        yield ask(groups.FindCoordinatorRequest(coordinator_keys=keys), "4-6")
    for type in (3, 99, -1):
        yield ask(groups.FindCoordinatorRequest(coordinator_keys=[group], key_type=type), "4-6")


def described_groups(ask):
    group = ask.group()
    yield ask(groups.DescribeGroupsRequest(groups=[group]), "0-6")
    yield ask(groups.DescribeGroupsRequest(groups=[group, "unknown"]), "0-5")
    id, generation = member(ask, group)
    yield ask(groups.DescribeGroupsRequest(groups=[group]), "0-6")
    ask(sync(group, generation, id), "0-4")
    yield ask(groups.DescribeGroupsRequest(groups=[group, group]), "0-6")
    yield ask(groups.DescribeGroupsRequest(groups=[group], include_authorized_operations=True), "3-6")
    ask(leave(group, id), "0-2")
    yield ask(groups.DescribeGroupsRequest(groups=[group]), "0-6")
    yield ask(groups.DescribeGroupsRequest(groups=[]), "0-6")


def group_of_offsets_alone(ask):
    group, topic = ask.group(), ask.topic()
    ask(commit(group, topic, (0, 5, "m")), "1-9")
    yield ask(groups.DescribeGroupsRequest(groups=[group]), "0-6")
    yield [row for row in ask(groups.ListGroupsRequest(), "0-5")["groups"] if row["group_id"] == group]


def listed_groups(ask):
    group = ask.group()
    stable(ask, group)
    for states, types in (
        ([], []),
        (["Stable"], []),
        (["stable"], []),
        (["Empty"], []),
        (["No such"], []),
        ([""], []),
        ([], ["classic"]),
        ([], ["Classic"]),
        ([], ["consumer"]),
        ([], ["no such"]),
        (["Stable", "Empty"], ["classic", "consumer"]),
    ):
        versions = "5" if types else "4-5" if states else "0-5"
        found = ask(groups.ListGroupsRequest(states_filter=states, types_filter=types), versions)
        found["groups"] = [row for row in found["groups"] if row["group_id"] == group]
        yield found
