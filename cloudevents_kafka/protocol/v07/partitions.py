"""Who sends where and who reads what in Kafka 0.7: rules for clients, as pure functions.

0.7 has no leaders and no coordinator. Each broker has partitions of its own of a topic, and
clients agree by doing the same sums on what stands in ZooKeeper.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.errors import Malformed


class BrokerPartition(NamedTuple):
    """A partition of a topic on a broker; as a text "broker-partition"."""

    broker: int
    partition: int

    def __str__(self) -> str:
        return f"{self.broker}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> BrokerPartition:
        """Read "broker-partition"; `Malformed`."""
        broker, _, partition = text.partition("-")
        if not (broker.isascii() and broker.isdecimal() and partition.isascii() and partition.isdecimal()):
            raise Malformed(f"{text!r} is no 'broker-partition', such as '0-3'")
        return cls(int(broker), int(partition))


def in_order(places: Iterable[BrokerPartition]) -> list[BrokerPartition]:
    """Sort places as all clients do: by their text, so 10-0 stands before 2-0."""
    return sorted(set(places), key=str)


def places(counts: Mapping[int, int]) -> list[BrokerPartition]:
    """Give all places of a topic, in order, from its number of partitions by broker."""
    return in_order(
        BrokerPartition(broker, number) for broker, most in counts.items() for number in range(most)
    )


def destinations(counts: Mapping[int, int], brokers: Collection[int]) -> list[BrokerPartition]:
    """Give the places that a producer may send to, in order; none where there is no broker.

    ``counts`` are a topic's partitions by broker, ``brokers`` those that are up. One that does not
    list the topic has none of it yet: its partition 0 comes to be with the first message.
    """
    return places({broker: counts.get(broker) or 1 for broker in brokers})


def by_key(choices: Sequence[BrokerPartition], key: bytes) -> BrokerPartition:
    """Pick by a key's CRC-32, the same for the same key in all processes; choices must not be empty."""
    return choices[zlib.crc32(key) % len(choices)]


def at_random(choices: Sequence[BrokerPartition], source: random.Random | None = None) -> BrokerPartition:
    """Pick any; choices must not be empty."""
    return (source or random).choice(choices)


class RoundRobin:
    """Picks one after the other, on over changes of the choices, which must not be empty."""

    def __init__(self) -> None:
        """Begin with the first."""
        self._count: Final = count()

    def __call__(self, choices: Sequence[BrokerPartition]) -> BrokerPartition:
        """Pick the next."""
        return choices[next(self._count) % len(choices)]


def assign(among: Iterable[BrokerPartition], consumers: Iterable[str]) -> dict[str, list[BrokerPartition]]:
    """Share a topic's places among the consumers of a group: by consumer, in their order.

    Both are sorted, and each consumer gets the next few places, so that it has to do with few
    brokers. Where they do not come out even, the first consumers have one more: 5-5-4-4. With more
    consumers than places the last get none.
    """
    sorted_places, ids = in_order(among), sorted(set(consumers))
    each, more = divmod(len(sorted_places), len(ids)) if ids else (0, 0)
    starts = [number * each + min(number, more) for number in range(len(ids) + 1)]
    return {
        consumer: sorted_places[start:end]
        for consumer, start, end in zip(ids, starts, starts[1:], strict=False)
    }
