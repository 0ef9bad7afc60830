"""The distribution of partitions among the clients of Kafka 0.7, computed without ZooKeeper.

Kafka 0.7 has no leaders and no coordinator. Each broker has its own partitions of a topic. Clients agree on
partitions because they apply the same rules to the same nodes in ZooKeeper.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cloudevents_kafka.protocol.v07._znodes import Broker, BrokerPartition

__all__ = ["BrokerPartition", "Cluster", "Group", "by_key"]


class Cluster(NamedTuple):
    """The live brokers, by id, and for each topic the number of partitions on each broker.

    Malformed nodes in ZooKeeper are ignored; ``problems`` describes these nodes.

    Examples:
        >>> from cloudevents_kafka.protocol.v07.partitions import Cluster
        >>> cluster = Cluster(brokers={}, topics={"orders": {1: 2}})
        >>> [str(partition) for partition in cluster.partitions("orders")]
        ['1-0', '1-1']
    """

    brokers: Mapping[int, Broker]
    topics: Mapping[str, Mapping[int, int]]
    problems: tuple[str, ...] = ()

    def partitions(self, topic: str) -> list[BrokerPartition]:
        """Return the partitions of a topic, sorted."""
        return _all_partitions(self.topics.get(topic, {}))

    def destinations(self, topic: str) -> list[BrokerPartition]:
        """Return the sorted partitions to which a producer may send, or [] if there are no brokers."""
        counts = self.topics.get(topic, {})
        # S2-R2: for new topics "you should just send to partition 0"
        return _all_partitions({broker: counts.get(broker) or 1 for broker in self.brokers})


class Group(NamedTuple):
    """The consumers of a group, with each consumer's number of streams for each topic.

    Examples:
        >>> from cloudevents_kafka.protocol.v07.partitions import Cluster, Group
        >>> group = Group(consumers={"mail": {"orders": 2}})
        >>> shares = group.assignment("orders", Cluster(brokers={}, topics={"orders": {1: 2}}))
        >>> {stream: [str(partition) for partition in share] for stream, share in shares.items()}
        {'mail-0': ['1-0'], 'mail-1': ['1-1']}
    """

    consumers: Mapping[str, Mapping[str, int]]
    problems: tuple[str, ...] = ()

    def assignment(self, topic: str, cluster: Cluster) -> dict[str, list[BrokerPartition]]:
        """Return a dict from each stream ("consumer-0", "consumer-1", ...) to its partitions."""
        streams = [
            f"{consumer}-{number}"
            for consumer, topics in self.consumers.items()
            for number in range(topics.get(topic, 0))
        ]
        return assign(cluster.partitions(topic), streams)


def assign(
    partitions: Iterable[BrokerPartition], consumers: Iterable[str]
) -> dict[str, list[BrokerPartition]]:
    """Return the partitions that are assigned to each consumer of a group.

    The function sorts partitions and consumers first. Each consumer receives a range of partitions, so that
    the consumer connects to few brokers. If there are more consumers than partitions, the last consumers
    receive no partitions.
    """
    ordered, ids = sorted(set(partitions), key=str), sorted(set(consumers))
    size, remainder = divmod(len(ordered), len(ids)) if ids else (0, 0)
    starts = [n * size + min(n, remainder) for n in range(len(ids) + 1)]  # S2-B3: "5-5-4-4"
    return {
        consumer: ordered[start:end] for consumer, start, end in zip(ids, starts, starts[1:], strict=False)
    }


def by_key(choices: Sequence[BrokerPartition], key: bytes) -> BrokerPartition:
    """Return the partition that the CRC-32 of a key selects; the result is the same in all processes.

    ``choices`` must not be empty.

    Examples:
        >>> from cloudevents_kafka.protocol.v07.partitions import BrokerPartition, by_key
        >>> by_key([BrokerPartition(1, 0), BrokerPartition(1, 1)], b"customer-4")
        BrokerPartition(broker=1, partition=0)
    """
    return choices[zlib.crc32(key) % len(choices)]


def _all_partitions(counts: Mapping[int, int]) -> list[BrokerPartition]:
    partitions = [BrokerPartition(broker, n) for broker, count in counts.items() for n in range(count)]
    return sorted(partitions, key=str)  # S2-R1: "ordered them by Broker+Partition", so 10-0 before 2-0
