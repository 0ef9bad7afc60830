"""The nodes of Kafka 0.7 in ZooKeeper: their paths and values.

::

    /brokers/ids/[broker]                                  ephemeral  creator:host:port
    /brokers/topics/[topic]/[broker]                       ephemeral  number of partitions
    /consumers/[group]/ids/[consumer]                      ephemeral  {"topic": streams, ...}
    /consumers/[group]/owners/[topic]/[broker]-[partition] ephemeral  the consumer that reads it
    /consumers/[group]/offsets/[topic]/[broker]-[partition]           offset

Values are strings. The value of a parent node is the id of its creator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import msgspec

from cloudevents_kafka.protocol.errors import Malformed, Unencodable
from cloudevents_kafka.protocol.v07.partitions import BrokerPartition

BROKERS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"

MAX_COUNT: Final = 100_000
"""The largest accepted number of partitions or streams, because lists are built from it."""

_MAX_DIGITS: Final = 19  # of an int64
_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]


class Broker(NamedTuple):
    """A broker's address."""

    id: int
    creator: str
    host: str
    port: int

    def encode(self) -> bytes:
        """Return the value of the broker's node."""
        return f"{self.creator}:{self.host}:{self.port}".encode()

    @classmethod
    def parse(cls, id: int, value: bytes) -> Broker:
        """Return the broker of a node's value; raise `Malformed`."""
        parts = _text(value, broker_path(id)).split(":")
        if len(parts) < 3:
            raise Malformed(f"the value must be creator:host:port, got {value[:80]!r}", path=broker_path(id))
        return cls(id, parts[0], parts[1], parse_number(parts[2], broker_path(id)))


def broker_path(broker: int) -> str:
    """Return the path of a broker's address."""
    return f"{BROKERS}/{broker}"


def topic_path(topic: str, broker: int | None = None) -> str:
    """Return the path of a topic's brokers, or of its number of partitions on one broker."""
    return f"{TOPICS}/{_name(topic)}" + ("" if broker is None else f"/{broker}")


def group_path(group: str, consumer: str | None = None) -> str:
    """Return the path of a group's consumers, or of one of them."""
    return f"/consumers/{_name(group)}/ids" + ("" if consumer is None else f"/{_name(consumer)}")


def owner_path(group: str, topic: str, partition: BrokerPartition) -> str:
    """Return the path of the owner of a partition, a stream of a consumer."""
    return f"/consumers/{_name(group)}/owners/{_name(topic)}/{partition}"


def offset_path(group: str, topic: str, partition: BrokerPartition) -> str:
    """Return the path of a group's offset in a partition."""
    return f"/consumers/{_name(group)}/offsets/{_name(topic)}/{partition}"


def parents(path: str) -> list[str]:
    """Return the paths of a node's parents, from the root down."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def parse_number(text: bytes | str, path: str) -> int:
    """Return a broker id, port or offset; raise `Malformed`."""
    digits = _text(text, path) if isinstance(text, bytes) else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS):
        raise Malformed(f"the value must be a number of at least 0, got {digits[:80]!r}", path=path)
    return int(digits)


def parse_count(value: bytes, path: str) -> int:
    """Return a number of partitions; raise `Malformed`."""
    if (count := parse_number(value, path)) > MAX_COUNT:
        raise Malformed(f"the value must be at most {MAX_COUNT:,} partitions, got {count:,}", path=path)
    return count


def encode_topics(streams: Mapping[str, int]) -> bytes:
    """Return the value of a consumer's node: its number of streams by topic."""
    return msgspec.json.encode(dict(streams))


def parse_topics(value: bytes, path: str) -> dict[str, int]:
    """Return a consumer's number of streams by topic; raise `Malformed`."""
    try:
        return msgspec.json.decode(value, type=dict[str, _Count])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Malformed(
            f'the value must be {{"topic": streams}}, got {value[:80]!r}: {error}', path=path
        ) from error


def _text(value: bytes, path: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Malformed(f"the value must be UTF-8, got {value[:80]!r}", path=path) from None


def _name(name: str) -> str:
    if not name or name in {".", ".."} or "/" in name or "\0" in name:
        raise Unencodable(f"the name of a ZooKeeper node must not be empty or contain '/', got {name!r}")
    return name
