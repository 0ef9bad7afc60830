"""Partitioners: the choice of a record's partition (Kafka's 0.8 protocol guide, "Partitioning Strategies").

A partitioner is a function that is called with a key and the topic's partitions in ascending order, and
returns one of these partitions. For a record without a key, the partitioner receives the partitions with a
leader, or all partitions if no partition has a leader. To agree on partitions, clients must hash keys in the
same way; `by_key` hashes keys as the Java client does.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

Partitioner: TypeAlias = Callable[[bytes | None, Sequence[int]], int]

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_32_BITS: Final = 0xFFFFFFFF


def round_robin() -> Partitioner:
    """Return a partitioner that uses the partitions in turn, and ignores the key.

    Examples:
        >>> from cloudevents_kafka.protocol import Client, round_robin
        >>> with Client("localhost:9092").producer(partitioner=round_robin()) as producer:
        ...     producer.produce("orders", b"17", key=b"customer-4")
    """
    turns = itertools.count()
    return lambda _key, partitions: partitions[next(turns) % len(partitions)]


def at_random() -> Partitioner:
    """Return a partitioner that picks one partition at random, and uses it for all records.

    Examples:
        >>> from cloudevents_kafka.protocol import Client, at_random
        >>> with Client("localhost:9092").producer(partitioner=at_random()) as producer:
        ...     producer.produce("orders", b"17")
    """
    fraction = random.random()  # spreads clients over partitions; not a secret
    return lambda _key, partitions: partitions[int(fraction * len(partitions))]


def by_key(keyless: Partitioner | None = None) -> Partitioner:
    """Return a partitioner that hashes keys as the Java client does.

    For a record with a null key, the partitioner ``keyless`` chooses the partition (by default
    `round_robin`); an empty key is hashed.

    Examples:
        >>> from cloudevents_kafka.protocol import Client, at_random, by_key
        >>> with Client("localhost:9092").producer(partitioner=by_key(keyless=at_random())) as producer:
        ...     producer.produce("orders", b"17", key=b"customer-4")
    """
    fallback = round_robin() if keyless is None else keyless

    def choose(key: bytes | None, partitions: Sequence[int]) -> int:
        if key is None:
            return fallback(key, partitions)
        return partitions[(murmur2(key) & 0x7FFFFFFF) % len(partitions)]

    return choose


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of the bytes, unsigned, with Kafka's seed."""
    hashed = (_SEED ^ len(data)) & _32_BITS
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _32_BITS
        k = (k ^ k >> 24) * _FACTOR & _32_BITS
        hashed = hashed * _FACTOR & _32_BITS ^ k
    if rest := data[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _FACTOR & _32_BITS
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _32_BITS
    return hashed ^ hashed >> 15
