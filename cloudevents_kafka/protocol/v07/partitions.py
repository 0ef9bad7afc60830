"""The distribution of partitions among the clients of Kafka 0.7, as pure functions.

Kafka 0.7 has no leaders and no coordinator. Each broker has its own partitions of a topic, and clients
agree because they apply the same rules to the same nodes in ZooKeeper.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from cloudevents_kafka.protocol.errors import Malformed


class BrokerPartition(NamedTuple):
    """A partition of a topic on a broker; its string is "broker-partition"."""

    broker: int
    partition: int

    def __str__(self) -> str:
        return f"{self.broker}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> BrokerPartition:
        """Return the partition of a string "broker-partition"; raise `Malformed`."""
        broker, _, partition = text.partition("-")
        if not (broker.isascii() and broker.isdecimal() and partition.isascii() and partition.isdecimal()):
            raise Malformed(f"a partition must be 'broker-partition', such as '0-3', got {text!r}")
        return cls(int(broker), int(partition))


def sort_partitions(partitions: Iterable[BrokerPartition]) -> list[BrokerPartition]:
    """Return the partitions sorted by their string, as all clients do: 10-0 before 2-0."""
    return sorted(set(partitions), key=str)


def all_partitions(counts: Mapping[int, int]) -> list[BrokerPartition]:
    """Return all partitions of a topic, sorted, by its number of partitions on each broker."""
    return sort_partitions(
        BrokerPartition(broker, number) for broker, size in counts.items() for number in range(size)
    )


def destinations(counts: Mapping[int, int], brokers: Collection[int]) -> list[BrokerPartition]:
    """Return the partitions that a producer may send to, sorted; [] without brokers.

    ``counts`` is the topic's number of partitions by broker, ``brokers`` the ids of the live brokers. A
    broker without the topic creates partition 0 with the first message.
    """
    return all_partitions({broker: counts.get(broker) or 1 for broker in brokers})


def by_key(choices: Sequence[BrokerPartition], key: bytes) -> BrokerPartition:
    """Return the choice for the CRC-32 of a key, the same in all processes; there must be a choice."""
    return choices[zlib.crc32(key) % len(choices)]


def assign(
    partitions: Iterable[BrokerPartition], consumers: Iterable[str]
) -> dict[str, list[BrokerPartition]]:
    """Return the partitions of each consumer of a group, by consumer.

    Both are sorted, and each consumer gets a range of partitions, so that it connects to few brokers.
    If they do not divide evenly, the first consumers get one more: 5-5-4-4. If there are more
    consumers than partitions, the last get none.
    """
    ordered, ids = sort_partitions(partitions), sorted(set(consumers))
    each, more = divmod(len(ordered), len(ids)) if ids else (0, 0)
    starts = [number * each + min(number, more) for number in range(len(ids) + 1)]
    return {
        consumer: ordered[start:end] for consumer, start, end in zip(ids, starts, starts[1:], strict=False)
    }
