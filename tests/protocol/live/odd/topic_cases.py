"""Odd requests of Metadata, CreateTopics and DescribeConfigs."""

from __future__ import annotations

import time
import uuid

from cloudevents_kafka.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataRequestTopic

from .asking import creatable, create_topics

CREATE = "0-7"


def metadata(*names, **more):
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)


def only_asked_about(outcome, names):
    """Leave out the topics of other cases."""
    outcome["topics"] = [row for row in outcome["topics"] if row["name"] in names]
    return outcome


def all_and_no_topics(ask):
    topic = ask.topic()
    yield only_asked_about(ask(MetadataRequest(topics=[]), "0"), {topic})
    yield only_asked_about(ask(MetadataRequest(topics=None), "1-12"), {topic})
    yield ask(MetadataRequest(topics=[]), "1-12")


def names_of_topics(ask):
    for name in ("", ".", "..", "a/b", "a b", "ä", "x" * 256, "x\0"):
        yield ask(metadata(name), "0-9")


def longest_name(ask):
    ask.topic()
    yield ask(metadata(ask.name("x" * 150), allow_auto_topic_creation=False), "4-9")


def topic_twice_in_metadata(ask):
    topic = ask.topic()
    yield ask(metadata(topic, topic), "0-9")


def no_automatic_creation(ask):
    for _ in range(2):
        yield ask(metadata(ask.name("absent"), allow_auto_topic_creation=False), "4-12")


def automatic_creation(ask):
    name, end = ask.name("new"), time.monotonic() + 20
    while (found := ask(metadata(name), "0-8"))["topics"][0]["error_code"] in {3, 5}:
        assert time.monotonic() < end, found
    yield found


def colliding_names(ask):
    ask.topic("a.b")
    yield ask.create(ask.name("a_b"))
    yield ask(metadata(ask.name("a_b")), "0-12")
    yield ask(metadata(ask.name("a_b"), allow_auto_topic_creation=False), "4-12")


def topics_by_id(ask):
    topic = ask.topic()
    for name, id in (
        (None, uuid.UUID(int=77)),
        (None, ask.topic_id(topic)),
        (topic, uuid.UUID(int=77)),
        (topic, ask.topic_id(topic)),
        ("", uuid.UUID(int=0)),
    ):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name, topic_id=id)], allow_auto_topic_creation=False
        )
        yield ask(request, "12")


def permissions(ask):
    topic = ask.topic()
    yield ask(metadata(topic, include_topic_authorized_operations=True), "8-12")
    yield ask(metadata(topic, include_cluster_authorized_operations=True), "8-10")


# --- CreateTopics ---


def topic_that_is_there(ask):
    topic = ask.topic()
    yield ask.create(topic)
    yield ask(create_topics(creatable(topic), validate_only=True), "1-7")


def created_names(ask):
    for name in ("", ".", "..", "a/b", "ä", "x" * 250):
        yield ask.create(name)


def created_twice_in_one_request(ask):
    for versions in ("0-4", "5-7"):
        name = ask.name(versions)
        yield ask(create_topics(creatable(name), creatable(name, 3)), versions)
        yield ask(metadata(name, allow_auto_topic_creation=False), "4-9")


def colliding_in_one_request(ask):
    found = ask(create_topics(creatable(ask.name("c.d")), creatable(ask.name("c_d"))), CREATE)
    yield sorted(row["error_code"] for row in found["topics"])  # which one is the first varies


def numbers_of_partitions(ask):
    for number, count in enumerate((0, -2, -1, 1)):
        yield ask.create(ask.name(str(number)), count, versions="0-3")
        yield ask.create(ask.name(f"{number}-"), count, versions="4-7")


def numbers_of_replicas(ask):
    for number, count in enumerate((0, -2, 2, 32767, -1)):
        yield ask.create(ask.name(str(number)), replicas=count, versions="0-3")
        yield ask.create(ask.name(f"{number}-"), replicas=count, versions="4-7")


def assigned_replicas(ask):
    here = ask.node.id
    for number, rows in enumerate(
        (
            [(0, [here])],
            [(0, [here]), (1, [here])],
            [(0, [99])],
            [(1, [here])],
            [(0, [here]), (0, [here])],
            [(0, [here, here])],
            [(0, [])],
            [(0, [here]), (1, [here, 99])],
            [(-1, [here])],
        )
    ):
        name = ask.name(str(number))
        yield ask.create(name, -1, -1, assignments=rows, timeout_ms=500)
        yield ask(create_topics(creatable(name, -1, -1, assignments=rows), validate_only=True), "1-7")


def assignments_and_numbers(ask):
    here = [(0, [ask.node.id])]
    for number, (partitions, replicas) in enumerate(((1, 1), (1, -1), (-1, 1))):
        yield ask.create(ask.name(str(number)), partitions, replicas, assignments=here)


def settings_of_topics(ask):
    for number, configs in enumerate(
        (
            {"no_such_setting": "1"},
            {"retention_ms": "soon"},
            {"retention_ms": None},
            {"retention_ms": "-2"},
            {"retention_ms": ""},
            {"retention_ms": " 5 "},
            {"cleanup_policy": "shred"},
            {"cleanup_policy": "compact,delete"},
            {"compression_type": "brotli"},
            {"min_insync_replicas": "0"},
            {"segment_bytes": "1"},
            {"max_message_bytes": "-1"},
            {"max_message_bytes": "99999999999"},
            {"message_timestamp_type": "never"},
            {"unclean_leader_election_enable": "perhaps"},
            {"min_cleanable_dirty_ratio": "2"},
            {"": "1"},
        )
    ):
        yield ask.create(ask.name(str(number)), configs=configs, versions=CREATE)


def setting_twice(ask):
    row = creatable(ask.name())
    row.configs = creatable("x", configs={"retention_ms": "1"}).configs * 2
    yield ask(create_topics(row), CREATE)


def only_validated(ask):
    yield ask(create_topics(creatable(ask.name()), validate_only=True), "1-7")
    yield ask(metadata(ask.name(), allow_auto_topic_creation=False), "4-9")
    yield ask(create_topics(creatable("a/b"), validate_only=True), "1-7")


def no_topic_to_create(ask):
    yield ask(create_topics(), CREATE)


def one_good_and_one_bad(ask):
    good, bad = creatable(ask.name("good")), creatable("a/b")
    yield ask(create_topics(bad, good), CREATE)
    yield ask.metadata(ask.wait(good.name))


# --- DescribeConfigs ---


def describe(*rows, **more):
    resources = [
        DescribeConfigsResource(resource_type=type, resource_name=name, configuration_keys=keys)
        for type, name, keys in rows
    ]
    return DescribeConfigsRequest(resources=resources, **more)


def described_settings(ask):
    topic = ask.topic(retention_ms="5", cleanup_policy="compact")
    for keys in (["retention.ms"], ["no.such"], [], ["cleanup.policy", "retention.ms", "retention.ms"]):
        yield ask(describe((2, topic, keys)), "0-4")


def all_settings(ask):
    topic = ask.topic()
    found = ask(describe((2, topic, None)), "0-4")
    (result,) = found["results"]
    result["configs"] = [row for row in result["configs"] if row["name"] in COMMON]
    yield found


COMMON = {
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "max.message.bytes",
    "message.timestamp.type",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
}


def described_resources(ask):
    ask.topic()
    for type, name in (
        (2, ask.name("absent")),
        (2, ""),
        (2, "a/b"),
        (4, "99"),
        (4, "x"),
        (0, "x"),
        (1, "x"),
    ):
        yield ask(describe((type, name, ["retention.ms"])), "0-4")


def resource_twice(ask):
    topic = ask.topic()
    yield ask(describe((2, topic, ["retention.ms"]), (2, topic, ["segment.bytes"])), "0-4")


def nothing_to_describe(ask):
    yield ask(describe(), "0-4")
