"""The settings of topics are checked as each release checks them, and described."""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from cloudevents_kafka.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from cloudevents_kafka.protocol.records import Record, TimestampType, encode_batch
from tests.support.cases import each
from tests.support.wire import Wire, only, produce, produced
from tests.support.wire_broker import WireBroker


def create(wire, name="t", version=2, **settings):
    """Create a topic with settings; return the error code."""
    configs = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
    ]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=configs)
    return only(wire.ask(CreateTopicsRequest(topics=[topic]), version).topics).error_code


@each(
    ("settings", "code", "code_of_1_1"),
    [
        ({"retention_ms": "-1"}, ErrorCode.NONE, ErrorCode.NONE),
        ({"retention_ms": "-2"}, ErrorCode.INVALID_CONFIG, ErrorCode.NONE),
        ({"retention_ms": "9223372036854775808"}, ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"cleanup_policy": "compact, delete"}, ErrorCode.NONE, ErrorCode.NONE),
        ({"cleanup_policy": "shred"}, ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"min_cleanable_dirty_ratio": "1.5"}, ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"preallocate": "TRUE"}, ErrorCode.NONE, ErrorCode.NONE),
        ({"compression_type": "zip"}, ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"no_such": "1"}, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG),
    ],
)
def test_settings_are_checked(settings, code, code_of_1_1):
    """A name or value that the release does not allow has its error code, and no topic is created."""
    for release, expected in (("4.3", code), ("1.1", code_of_1_1)):
        with WireBroker(release) as broker, Wire(broker.nodes[0]) as wire:
            assert create(wire, **settings) == expected
            if expected:
                with pytest.raises(KeyError):
                    broker.topic_id("t")


def test_settings_are_described():
    """A topic has all settings of its release, with its own values; a name selects some."""
    with WireBroker("4.3") as broker, Wire(broker.nodes[0]) as wire:
        assert create(wire, retention_ms="5") == ErrorCode.NONE

        def described(*names, type=2, name="t"):
            wanted = DescribeConfigsResource(
                resource_type=type, resource_name=name, configuration_keys=list(names) or None
            )
            return only(wire.ask(DescribeConfigsRequest(resources=[wanted]), 4).results)

        assert len(described().configs) == 33
        row = only(described("retention.ms").configs)
        assert (row.value, row.config_source, row.config_type, row.read_only) == ("5", 1, 5, False)
        assert only(described("segment.ms").configs).config_source == 5
        assert described(name="absent").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert described(type=4, name="9").error_code == ErrorCode.INVALID_REQUEST
        row = only(described("num.partitions", type=4, name="1").configs)
        assert (row.value, row.read_only) == ("1", True)


def test_settings_decide_about_records():
    """A compacted topic refuses records without a key; the broker's time replaces others if it is set."""
    data = encode_batch([Record(value=b"v", timestamp=5)])
    with WireBroker("4.3") as broker, Wire(broker.nodes[0]) as wire:
        create(wire, "compacted", cleanup_policy="compact")
        assert produced(wire.ask(produce(data, topic="compacted"), 9)) == (ErrorCode.INVALID_RECORD, -1)
        create(wire, "timed", message_timestamp_type="LogAppendTime")
        row = only(only(wire.ask(produce(data, topic="timed"), 9).responses).partition_responses)
        record = only(broker.records("timed"))
        assert record.timestamp_type is TimestampType.LOG_APPEND
        assert record.timestamp == row.log_append_time_ms > 5
        create(wire, "small", max_message_bytes="60")
        assert produced(wire.ask(produce(data, topic="small"), 9)) == (ErrorCode.MESSAGE_TOO_LARGE, -1)
