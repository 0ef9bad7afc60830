"""What Kafka 0.7 keeps in ZooKeeper: where it stands, and how to read it.

::

    /brokers/ids/[broker]                                  ephemeral  creator:host:port
    /brokers/topics/[topic]/[broker]                       ephemeral  number of partitions
    /consumers/[group]/ids/[consumer]                      ephemeral  {"topic": streams, ...}
    /consumers/[group]/owners/[topic]/[broker]-[partition] ephemeral  the consumer that reads it
    /consumers/[group]/offsets/[topic]/[broker]-[partition]           offset

Values are texts. The nodes above these have the id of their creator as value.
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
"""The most partitions or streams that are believed: lists of them are made."""

_MOST_DIGITS: Final = 19  # of an int64
_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]


class Broker(NamedTuple):
    """A broker's address."""

    id: int
    creator: str
    host: str
    port: int

    def encode(self) -> bytes:
        """Write its node's value."""
        return f"{self.creator}:{self.host}:{self.port}".encode()

    @classmethod
    def parse(cls, id: int, value: bytes) -> Broker:
        """Read a node's value; the host is the second part, whatever the creator's id looks like."""
        parts = _text(value, broker_path(id)).split(":")
        if len(parts) < 3:
            raise Malformed(f"{value[:80]!r} is no creator:host:port", path=broker_path(id))
        return cls(id, parts[0], parts[1], parse_number(parts[2], broker_path(id)))


def broker_path(broker: int) -> str:
    """Where a broker's address stands."""
    return f"{BROKERS}/{broker}"


def topic_path(topic: str, broker: int | None = None) -> str:
    """Where the brokers of a topic stand, or the number of partitions on one of them."""
    return f"{TOPICS}/{_name(topic)}" + ("" if broker is None else f"/{broker}")


def group_path(group: str, consumer: str | None = None) -> str:
    """Where the consumers of a group stand, or one of them."""
    return f"/consumers/{_name(group)}/ids" + ("" if consumer is None else f"/{_name(consumer)}")


def owner_path(group: str, topic: str, place: BrokerPartition) -> str:
    """Where it stands which consumer reads a place."""
    return f"/consumers/{_name(group)}/owners/{_name(topic)}/{place}"


def offset_path(group: str, topic: str, place: BrokerPartition) -> str:
    """Where a group's offset of a place stands."""
    return f"/consumers/{_name(group)}/offsets/{_name(topic)}/{place}"


def above(path: str) -> list[str]:
    """Give the nodes above one, the highest first: the skeleton that it needs."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def parse_number(text: bytes | str, path: str) -> int:
    """Read a broker id, port or offset; `Malformed`."""
    digits = _text(text, path) if isinstance(text, bytes) else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise Malformed(f"{digits[:80]!r} is no number from 0 up", path=path)
    return int(digits)


def parse_count(value: bytes, path: str) -> int:
    """Read a number of partitions; `Malformed`."""
    if (count := parse_number(value, path)) > MAX_COUNT:
        raise Malformed(f"{count:,} partitions; it may be up to {MAX_COUNT:,}", path=path)
    return count


def encode_topics(streams: Mapping[str, int]) -> bytes:
    """Write a consumer's value: how many streams of each topic it reads."""
    return msgspec.json.encode(dict(streams))


def parse_topics(value: bytes, path: str) -> dict[str, int]:
    """Read a consumer's value; `Malformed`."""
    try:
        return msgspec.json.decode(value, type=dict[str, _Count])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Malformed(f'{value[:80]!r} is no {{"topic": streams}}: {error}', path=path) from error


def _text(value: bytes, path: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Malformed(f"{value[:80]!r} is no UTF-8", path=path) from None


def _name(name: str) -> str:
    if not name or name in {".", ".."} or "/" in name or "\0" in name:
        raise Unencodable(f"{name!r} is no name of a ZooKeeper node: it has one sign at least, and no '/'")
    return name
