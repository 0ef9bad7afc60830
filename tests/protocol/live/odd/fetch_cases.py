"""Odd requests of Fetch and ListOffsets."""

from __future__ import annotations

import uuid

from cloudevents_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from cloudevents_kafka.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

from .batches import batch, messages, produce

BY_NAME = "0-12"


def fetch(topic, *rows, topic_id=None, max_wait_ms=0, min_bytes=0, partition_bytes=100_000, **more):
    """Return a request of (partition, offset, fields) of one topic, or of offset 0 of partition 0."""
    parts = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=partition_bytes, **fields)
        for number, offset, fields in rows or [(0, 0, {})]
    ]
    by_id = {} if topic_id is None else {"topic_id": topic_id}
    one = FetchTopic(topic=topic, partitions=parts, **by_id)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=[one], **more)


def full(ask):
    """Return a topic of three records, each produced alone."""
    topic = ask.topic()
    for number in range(3):
        old = ask.release.magic < 2
        data = (messages if old else batch)(b"%d" % number)
        ask(produce(topic, data), "0-2" if old else "3-12")
    return topic


def list_offsets(topic, *rows, replica_id=-1, **more):
    """Return a request of (timestamp, fields) of one topic."""
    parts = [
        ListOffsetsPartition(**{"partition_index": 0, "timestamp": time, **fields}) for time, fields in rows
    ]
    one = ListOffsetsTopic(name=topic, partitions=parts)
    return ListOffsetsRequest(replica_id=replica_id, topics=[one], **more)


def offsets_that_are_not_there(ask):
    topic = full(ask)
    for offset in (-1, -5, 3, 4, 1 << 62):
        yield ask(fetch(topic, (0, offset, {})), BY_NAME)


def partitions_that_are_not_there(ask):
    topic = full(ask)
    for number in (-1, 1, 2_147_483_647):
        yield ask(fetch(topic, (number, 0, {})), BY_NAME)


def topics_that_are_not_there(ask):
    for name in (ask.name("absent"), "", "a/b", "."):
        yield ask(fetch(name), BY_NAME)


def epochs_of_the_leader(ask):
    topic = full(ask)
    for epoch in (-1, 0, 7, -5):
        yield ask(fetch(topic, (0, 0, {"current_leader_epoch": epoch})), "9-12")


def epochs_of_the_last_record(ask):
    topic = full(ask)
    for epoch in (0, 5):
        yield ask(fetch(topic, (0, 3, {"last_fetched_epoch": epoch})), "12")


def sizes_of_partitions(ask):
    topic = full(ask)
    for size in (-1, 0, 1, 20, 80, 150):
        yield ask(fetch(topic, partition_bytes=size), BY_NAME)


def sizes_of_responses(ask):
    topic = full(ask)
    for size in (-1, 0, 1, 80, 150):
        yield ask(fetch(topic, max_bytes=size), "3-12")


def waits(ask):
    topic = full(ask)
    for wait, least in ((-1, 1), (0, 1_000_000), (50, 1_000_000), (50, -1)):
        yield ask(fetch(topic, max_wait_ms=wait, min_bytes=least), BY_NAME)


def replicas_that_fetch(ask):
    topic = full(ask)
    for replica, versions in ((-2, "0-9"), (-3, "0-9"), (5, "8-12")):
        yield ask(fetch(topic, replica_id=replica), versions)


def isolation_levels(ask):
    topic = full(ask)
    for level in (0, 1, 2, -1):
        yield ask(fetch(topic, isolation_level=level), "4-12")


def sessions(ask):
    topic = full(ask)
    for id, epoch in ((7, 1), (7, 0), (7, -1), (0, 5), (0, -1)):
        yield ask(fetch(topic, session_id=id, session_epoch=epoch), "7-12")


def forgotten_topics(ask):
    topic = full(ask)
    forgotten = [ForgottenTopic(topic="absent", partitions=[1])]
    yield ask(fetch(topic, forgotten_topics_data=forgotten), "7-12")


def fetched_topics_by_id(ask):
    topic = full(ask)
    for id in (uuid.UUID(int=0), uuid.UUID(int=77), ask.topic_id(topic)):
        yield ask(fetch("", topic_id=id), "13-17")


def nothing_to_fetch(ask):
    yield ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), "0-17")
    topic = full(ask)
    nothing = [FetchTopic(topic=topic, partitions=[])]
    yield ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=nothing), BY_NAME)


def racks_and_clusters(ask):
    topic = full(ask)
    yield ask(fetch(topic, rack_id="a rack"), "11-12")
    yield ask(fetch(topic, cluster_id="another"), "12")


def new_records_for_an_old_reader(ask):
    topic = full(ask)
    for versions in ("0-1", "2-3"):
        yield ask(fetch(topic), versions)


# --- ListOffsets ---


def special_times_in_each_version(ask):
    topic = full(ask)
    for versions in ("1-3", "4-6", "7", "8", "9", "10", "11"):
        for time in (-1, -2, -3, -4, -5, -6, -7, -100):
            yield ask(list_offsets(topic, (time, {})), versions)


def times_of_records(ask):
    topic = ask.topic()
    for number, time in enumerate((50, 40, 60)):
        ask(produce(topic, batch(b"%d" % number, timestamp=time)), "3-12")
    for time in (0, 45, 50, 55, 60, 61, 1 << 62):
        yield ask(list_offsets(topic, (time, {})), "1-7")
    yield ask(list_offsets(topic, (-3, {})), "7")


def latest_time_of_nothing(ask):
    topic = ask.topic()
    yield ask(list_offsets(topic, (-3, {})), "7")
    yield ask(list_offsets(topic, (0, {})), "1-7")


def listed_partitions_that_are_not_there(ask):
    topic = full(ask)
    for number in (-1, 1):
        yield ask(list_offsets(topic, (-1, {"partition_index": number})), "0-7")
    yield ask(list_offsets(ask.name("absent"), (-1, {})), "0-7")
    yield ask(list_offsets("a/b", (-1, {})), "0-7")


def listed_partition_twice(ask):
    topic = full(ask)
    yield ask(list_offsets(topic, (-1, {}), (-2, {})), "1-7")


def numbers_of_segments(ask):
    topic = full(ask)
    for time in (-1, -2, 0):
        for number in (0, 1, 5):
            yield ask(list_offsets(topic, (time, {"max_num_offsets": number})), "0")


def negative_number_of_segments(ask):
    topic = full(ask)
    yield ask(list_offsets(topic, (-1, {"max_num_offsets": -1})), "0")


def listed_epochs(ask):
    topic = full(ask)
    for epoch in (0, 7, -5):
        yield ask(list_offsets(topic, (-1, {"current_leader_epoch": epoch})), "4-7")


def replicas_that_list(ask):
    topic = full(ask)
    for replica in (-2, -3, 5):
        yield ask(list_offsets(topic, (-1, {}), replica_id=replica), "0-7")


def listed_isolation_levels(ask):
    topic = full(ask)
    for level in (1, 2, -1):
        yield ask(list_offsets(topic, (-1, {}), isolation_level=level), "2-7")


def nothing_to_list(ask):
    yield ask(ListOffsetsRequest(replica_id=-1, topics=[]), "0-11")
