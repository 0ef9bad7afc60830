"""Sends requests to a broker, real or not, and reduces each response to what two brokers have in common."""

from __future__ import annotations

import itertools
import re
import time
from contextlib import suppress

import msgspec

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.errors import Malformed, Truncated
from cloudevents_kafka.protocol.messages import APIS, groups, topics
from cloudevents_kafka.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from cloudevents_kafka.protocol.records import Batches
from cloudevents_kafka.protocol.schema import NO_UUID, Versions, spec_of
from tests.support.wire import Wire, only

NOT_THERE = {14, 15, 16}
"""A coordinator is not there yet: the topic of the offsets is made, or loaded."""
PROBE = 77_777
"""The correlation id of the request that shows that the one before has no answer."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class NotHereError(Exception):
    """The release does not have the API in any of the versions."""


class Asking:
    """A connection to a broker of a release, on which one case sends its requests."""

    def __init__(self, node, release, case):
        """Connect to a node; the names of a case's topics and groups begin with ``case``."""
        self.node, self.release, self.case = node, release, case
        self.wire = Wire(node, timeout=20)
        self._numbers = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.socket.close()

    def name(self, suffix="t"):
        """Return a name for a topic or group of this case alone."""
        return f"{self.case}-{suffix}"

    def version(self, key, versions):
        """Return the newest version of an API in a range; raise `NotHereError` without one."""
        common = Versions.parse(versions).common(self.release.versions.get(key, Versions(0, -1)))
        if common.first > common.last:
            raise NotHereError
        return common.last

    def __call__(self, request, versions="0+", *, client_id="odd", edit=lambda frame: frame):
        """Send a request in the newest version of a range, edited; return its outcome."""
        key = spec_of(type(request)).key
        version = self.version(key, versions)
        frame = frames.encode_request(request, version, correlation_id=1, client_id=client_id)
        return self.frame(edit(frame[4:]), key, version)

    def plain(self, request, versions):
        """Send a request in the newest version of a range; return its response."""
        return self.wire.ask(request, self.version(spec_of(type(request)).key, versions), client_id="odd")

    def frame(self, data, key, version):
        """Send a frame without its size; return its outcome."""
        return self.raw(frames.add_size(data), key, version)

    def raw(self, data, key, version):
        """Send bytes, then a request that is always answered; return the outcome of the bytes."""
        with suppress(ConnectionError):
            self.wire.socket.sendall(data + _probe())
        first = self.wire.frame()
        if first is None:
            self._reconnect()
            return "closed"
        if first[:4] == PROBE.to_bytes(4):
            return "no answer"
        if self.wire.frame() is None:
            self._reconnect()
            return ["then closed", outcome(key, version, first)]
        return outcome(key, version, first)

    def _reconnect(self):
        self.wire.socket.close()
        self.wire = Wire(self.node, timeout=20)

    # --- what a case needs ---

    def topic(self, suffix="t", partitions=1, **configs):
        """Create a topic, wait until it has leaders, and return its name."""
        name = self.name(suffix)
        if ApiKey.CREATE_TOPICS in self.release.versions:
            created = only(self.create(name, partitions, configs=configs)["topics"])
            assert created["error_code"] in (0, 36), created
        return self.wait(name)

    def wait(self, name):
        """Wait until a topic has leaders, which comes later than its creation; return its name."""
        end = time.monotonic() + 20
        while True:
            found = only(self.metadata(name)["topics"])
            has_leaders = all(row["leader_id"] >= 0 for row in found["partitions"])
            if found["error_code"] == 0 and has_leaders and self._leads(name):
                return name
            assert time.monotonic() < end, found
            time.sleep(0.02)

    def create(self, name, *numbers, versions="0-6", **more):
        """Create a topic and return the outcome; ``configs`` are settings."""
        timeout = more.pop("timeout_ms", 20_000)
        return self(create_topics(creatable(name, *numbers, **more), timeout_ms=timeout), versions)

    def metadata(self, *names, versions="0-9"):
        rows = [topics.MetadataRequestTopic(name=name) for name in names]
        return self(topics.MetadataRequest(topics=rows), versions)

    def _leads(self, name):
        """Return whether the broker knows that it leads the first partition."""
        row = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topic = ListOffsetsTopic(name=name, partitions=[row])
        found = self(ListOffsetsRequest(replica_id=-1, topics=[topic]), "0-7")
        return only(only(found["topics"])["partitions"])["error_code"] == 0

    def topic_id(self, name):
        """Return the id of a topic."""
        version = self.version(ApiKey.METADATA, "10-12")
        with Wire(self.node) as wire:
            request = topics.MetadataRequest(topics=[topics.MetadataRequestTopic(name=name)])
            return only(wire.ask(request, version).topics).topic_id

    def group(self, suffix="g"):
        """Return the name of a group, once its coordinator is there."""
        name = self.name(suffix)
        end = time.monotonic() + 20
        while True:
            found = self(groups.FindCoordinatorRequest(key=name), "0-3")
            if found["error_code"] not in NOT_THERE:
                beat = self(groups.HeartbeatRequest(group_id=name, generation_id=1, member_id="x"), "0-3")
                if beat["error_code"] not in NOT_THERE:
                    return name
            assert time.monotonic() < end, found
            time.sleep(0.05)


def creatable(name, partitions=1, replicas=1, *, configs=None, assignments=()):
    """Return a topic to create."""
    return topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            topics.CreatableReplicaAssignment(partition_index=number, broker_ids=ids)
            for number, ids in assignments
        ],
        configs=[
            topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in (configs or {}).items()
        ],
    )


def create_topics(*rows, timeout_ms=20_000, **more):
    return topics.CreateTopicsRequest(topics=list(rows), timeout_ms=timeout_ms, **more)


def _probe():
    return frames.encode_request(
        topics.MetadataRequest(topics=[topics.MetadataRequestTopic(name="..")]),
        0,
        correlation_id=PROBE,
        client_id="odd",
    )


def outcome(key, version, frame):
    """Return a response as plain data, without what differs between two brokers."""
    api = APIS[key]
    for tried in (min(version, api.versions.last), *range(min(version, api.versions.last), -1, -1)):
        try:  # old brokers answer in an older layout, and ApiVersions is refused in version 0
            _, response = frames.decode_response(api.response, tried, frame)
        except (Malformed, Truncated):
            continue
        return _plain(msgspec.to_builtins(response), "")
    raise AssertionError((key, version, frame))


def _plain(value, name):
    if isinstance(value, dict):
        return {key: _plain(one, key) for key, one in value.items() if key not in VARYING}
    if name in SPECIAL:
        return SPECIAL[name](value)
    if isinstance(value, list):
        return sorted((_plain(one, "") for one in value), key=repr)
    return _UUID.sub("…", value) if isinstance(value, str) else value


def _records(value):
    data = msgspec.convert(value or "", bytes, strict=False)
    return [(batch.magic, r.offset, r.key, r.value, r.timestamp) for batch in Batches(data) for r in batch]


def _configs(rows):
    # A local broker has a log.retention.ms of its own; a topic's is compared.
    kept = [row for row in rows or () if row["name"] != "retention.ms" or row["config_source"] == _TOPIC]
    return None if rows is None else _plain(kept, "")


_TOPIC = 1  # the source of a setting that the topic has itself
SPECIAL = {
    "configs": _configs,
    "records": _records,
    "topic_id": lambda value: "no id" if value == str(NO_UUID) else "an id",
    "log_append_time_ms": lambda value: -1 if value == -1 else "some",
    "producer_id": lambda value: -1 if value == -1 else "some",
    "aborted_transactions": lambda value: value or [],
    # Of the versions only those of ApiVersions, which error 35 lists.
    "api_keys": lambda value: [row for row in value if row["api_key"] == ApiKey.API_VERSIONS],
}
# The features are those of a cluster in KRaft mode; texts of errors are the broker's own.
VARYING = {
    "session_id",
    "host",
    "port",
    "cluster_id",
    "error_message",
    "batch_index_error_message",
    "unknown_tags",
    "supported_features",
    "finalized_features_epoch",
    "finalized_features",
}
