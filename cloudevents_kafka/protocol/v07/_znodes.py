"""The nodes that Kafka 0.7 creates in ZooKeeper: their paths and values.

::

    /brokers/ids/[broker]                                  ephemeral  creator:host:port
    /brokers/topics/[topic]/[broker]                       ephemeral  number of partitions
    /consumers/[group]/ids/[consumer]                      ephemeral  {"topic": streams, ...}
    /consumers/[group]/owners/[topic]/[broker]-[partition] ephemeral  the consumer that reads it
    /consumers/[group]/offsets/[topic]/[broker]-[partition]           offset

Values are strings. The value of a parent node is the id of the process that has created the parent node.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Literal, NamedTuple

import msgspec

from cloudevents_kafka.protocol.errors import Malformed, Unencodable

BROKERS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"

MAX_COUNT: Final = 100_000
"""The largest accepted number of partitions or streams; the client builds lists of this length."""

_MAX_INT64: Final = (1 << 63) - 1


class Broker(NamedTuple):
    """A broker's address."""

    id: int
    creator: str
    host: str
    port: int

    @classmethod
    def parse(cls, id: int, value: bytes) -> Broker:
        """Return the broker that a node's value describes; raise `Malformed` for other values."""
        path = f"{BROKERS}/{id}"
        try:  # S2-Z3: "the host that will be the second element"
            creator, host, port, *_ = value.decode().split(":")
        except ValueError:
            raise Malformed(f"the value must be creator:host:port, got {value[:80]!r}", path=path) from None
        return cls(id, creator, host, parse_number(port, path))


class BrokerPartition(NamedTuple):
    """A partition of a topic on a broker; `str` returns the text "broker-partition".

    Examples:
        >>> from cloudevents_kafka.protocol.v07.partitions import BrokerPartition
        >>> str(BrokerPartition(broker=1, partition=0))
        '1-0'
    """

    broker: int
    partition: int

    def __str__(self) -> str:
        return f"{self.broker}-{self.partition}"


def topic_path(topic: str) -> str:
    """Return the path of a topic's node, whose children are the topic's brokers."""
    return f"{TOPICS}/{_name(topic)}"


def group_path(group: str) -> str:
    """Return the path of the node whose children are a group's consumers."""
    return f"/consumers/{_name(group)}/ids"


def consumer_path(group: str, consumer: str) -> str:
    """Return the path of a consumer's node."""
    return f"{group_path(group)}/{_name(consumer)}"


def partition_path(
    group: str, kind: Literal["owners", "offsets"], topic: str, partition: BrokerPartition
) -> str:
    """Return the path of the node that stores the owner or the offset of a partition in a group."""
    return f"/consumers/{_name(group)}/{kind}/{_name(topic)}/{partition}"


def parents(path: str) -> list[str]:
    """Return the paths of all parents of a node, from the root down."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def parse_number(value: bytes | str, path: str, *, limit: int = _MAX_INT64) -> int:
    """Return a broker id, port, offset or number of partitions; raise `Malformed` for other values."""
    digits = value.encode() if isinstance(value, str) else value
    if not (digits.isdigit() and len(digits) <= len(str(limit)) and int(digits) <= limit):
        raise Malformed(f"the value must be a number from 0 to {limit:,}, got {value[:80]!r}", path=path)
    return int(digits)


def parse_topics(value: bytes, path: str) -> dict[str, int]:
    """Return a consumer's number of streams for each topic; raise `Malformed` for other values."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        topics = msgspec.json.decode(value, type=dict[str, int])
        if all(0 <= streams <= MAX_COUNT for streams in topics.values()):
            return topics
    raise Malformed(
        f'the value must be {{"topic": streams}} with 0 to {MAX_COUNT:,} streams, got {value[:80]!r}',
        path=path,
    )


def _name(name: str) -> str:
    if not name or name in {".", ".."} or "/" in name or "\0" in name:
        raise Unencodable(f"the name of a ZooKeeper node must not be empty or contain '/', got {name!r}")
    return name
