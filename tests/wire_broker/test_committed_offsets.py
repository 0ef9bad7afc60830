"""Committed offsets, in all versions of OffsetCommit and OffsetFetch."""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestBeta,
    OffsetCommitRequestBetaPartition,
    OffsetCommitRequestBetaTopic,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from cloudevents_kafka.protocol.schema import Versions
from tests.support.wire import Wire, join, only
from tests.support.wire_broker import RELEASES, WireBroker

EVERY_VERSION = RELEASES["3.9"]._replace(
    versions=RELEASES["3.9"].versions
    | {ApiKey.OFFSET_COMMIT: Versions(0, 10), ApiKey.OFFSET_FETCH: Versions(0, 10)}
)


@pytest.fixture
def broker():
    with WireBroker(EVERY_VERSION) as broker:
        broker.create_topic("t")
        yield broker


def commit(offset, metadata="m", *, topic="t", partition=0, topic_id=None, **more):
    row = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    named = OffsetCommitRequestTopic(name=topic, partitions=[row])
    if topic_id is not None:
        named.topic_id = topic_id
    return OffsetCommitRequest(group_id=more.pop("group", "g"), topics=[named], **more)


def committed(wire, version, *, topic_id=None, partition=0, **more):
    """Return error, offset and metadata of the one partition."""
    if version < 8:
        topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[partition])]
        got = wire.ask(OffsetFetchRequest(group_id="g", topics=topics), version).topics
    else:
        named = OffsetFetchRequestTopics(name="t", partition_indexes=[partition])
        if topic_id is not None:
            named.topic_id = topic_id
        group = OffsetFetchRequestGroup(group_id="g", topics=[named])
        got = only(wire.ask(OffsetFetchRequest(groups=[group]), version).groups).topics
    row = only(only(got).partitions)
    return row.error_code, row.committed_offset, row.metadata


def code(response):
    return only(only(response.topics).partitions).error_code


@pytest.mark.parametrize("version", range(1, 11))
def test_committed_offsets_are_fetched(broker, version):
    """Each version fetches the offsets of each other; a missing one is -1 without an error."""
    id = broker.topic_id("t")
    with Wire(broker.nodes[0]) as wire:
        assert committed(wire, version, topic_id=id) == (ErrorCode.NONE, -1, "")
        assert code(wire.ask(commit(5, topic_id=id), version)) == ErrorCode.NONE
        for fetched_by in range(1, 11):
            assert committed(wire, fetched_by, topic_id=id) == (ErrorCode.NONE, 5, "m")
    assert broker.committed_offsets("g")["t", 0].offset == 5


@pytest.mark.parametrize("version", [2, 5, 7, 8, 9])
def test_null_topics_mean_all(broker, version):
    """A fetch with null topics returns all offsets of the group."""
    with Wire(broker.nodes[0]) as wire:
        wire.ask(commit(5), 2)
        if version < 8:
            got = wire.ask(OffsetFetchRequest(group_id="g", topics=None), version).topics
        else:
            group = OffsetFetchRequestGroup(group_id="g", topics=None)
            got = only(wire.ask(OffsetFetchRequest(groups=[group]), version).groups).topics
        assert (only(got).name, only(only(got).partitions).committed_offset) == ("t", 5)


def test_version_0_has_a_separate_store():
    """Offsets of version 0 have no metadata, are invisible to version 1, and a missing one is an error."""
    with WireBroker("0.8.2") as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        assert committed(wire, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, "")
        assert code(wire.ask(commit(5), 0)) == ErrorCode.NONE
        assert [committed(wire, 0), committed(wire, 1)] == [(ErrorCode.NONE, 5, ""), (ErrorCode.NONE, -1, "")]
        assert code(wire.ask(commit(7), 1)) == ErrorCode.NONE
        assert [committed(wire, 0), committed(wire, 1)] == [(ErrorCode.NONE, 5, ""), (ErrorCode.NONE, 7, "m")]
    with WireBroker("3.9") as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        assert code(wire.ask(commit(5), 0)) == ErrorCode.UNSUPPORTED_VERSION
        assert committed(wire, 0) == (ErrorCode.UNSUPPORTED_VERSION, -1, "")


def _beta(offset):
    row = OffsetCommitRequestBetaPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
    return OffsetCommitRequestBeta(
        group_id="g", topics=[OffsetCommitRequestBetaTopic(name="t", partitions=[row])]
    )


def test_only_the_beta_reads_the_layout_of_the_guide():
    """0.8.2-beta stores the guide's layout and closes on the released one; 0.8.2 misreads it."""
    with WireBroker("0.8.2-beta") as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        wire.send(_beta(5), 0)
        frame = wire.frame()
        assert code(Wire.decoded(commit(0), 0, frame)[1]) == 0
        assert [committed(wire, 0), committed(wire, 1)] == [(ErrorCode.NONE, 5, "m")] * 2
        wire.send(commit(6), 0)
        assert wire.is_closed()
    with WireBroker("0.8.2") as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        wire.send(_beta(5), 0)
        assert code(Wire.decoded(commit(0), 0, wire.frame())[1]) == 0
        assert (
            broker.calls(ApiKey.OFFSET_COMMIT)[0].message.topics[0].partitions[0].committed_metadata is None
        )


def test_commits_are_checked(broker):
    """An unknown partition or topic id and long metadata have their error codes."""
    with Wire(broker.nodes[0]) as wire:
        assert code(wire.ask(commit(5, partition=9), 2)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code(wire.ask(commit(5, "x" * 4097), 2)) == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert (
            code(wire.ask(commit(5, topic_id=type(broker.topic_id("t"))(int=1)), 10))
            == ErrorCode.UNKNOWN_TOPIC_ID
        )
        assert committed(wire, 10, topic_id=type(broker.topic_id("t"))(int=1)) == (
            ErrorCode.UNKNOWN_TOPIC_ID,
            -1,
            "",
        )
        assert broker.committed_offsets("g") == {}


def test_members_commit_in_their_generation_only(broker):
    """Other clients, another generation and a commit before the assignments have their error codes."""
    with Wire(broker.nodes[0]) as wire:
        member = wire.ask(join(), 1).member_id

        def ask(id, generation):
            request = commit(5, member_id=id, generation_id_or_member_epoch=generation)
            return code(wire.ask(request, 2))

        assert [ask("", -1), ask("x", 1), ask(member, 2), ask(member, 1)] == [
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.REBALANCE_IN_PROGRESS,
        ]


def test_only_the_coordinator_has_offsets():
    """Other brokers answer NOT_COORDINATOR, for each partition or for the whole request."""
    with WireBroker(EVERY_VERSION, brokers=2) as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        broker.move_coordinator("g", 2)
        assert code(wire.ask(commit(5), 2)) == ErrorCode.NOT_COORDINATOR
        assert committed(wire, 1) == (ErrorCode.NOT_COORDINATOR, -1, "")
        assert (
            wire.ask(OffsetFetchRequest(group_id="g", topics=[]), 2).error_code == ErrorCode.NOT_COORDINATOR
        )
        group = OffsetFetchRequestGroup(group_id="g", topics=None)
        assert (
            only(wire.ask(OffsetFetchRequest(groups=[group]), 8).groups).error_code
            == ErrorCode.NOT_COORDINATOR
        )


def test_an_unknown_release_is_refused():
    """The error names the releases."""
    with pytest.raises(ValueError, match=r"must be one of 0\.8\.2-beta.*, got '0\.6'"):
        WireBroker("0.6")
