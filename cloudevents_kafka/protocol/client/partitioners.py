"""Which partition a record goes to: the client's choice (guide, "Partitioning Strategies").

A partitioner takes a key and the topic's partitions, in ascending order, and gives one
of them. Clients that shall agree on keys must hash alike; `by_key` does as the Java
client.
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
    """Return a partitioner that takes one partition after the other, whatever the key."""
    turns = itertools.count()
    return lambda _key, partitions: partitions[next(turns) % len(partitions)]


def at_random() -> Partitioner:
    """Return a partitioner that chooses one partition by chance, and then stays with it."""
    chosen = random.random()  # spreads clients; nothing is secret
    return lambda _key, partitions: partitions[int(chosen * len(partitions))]


def by_key(keyless: Partitioner | None = None) -> Partitioner:
    """Return a partitioner that hashes keys as the Java client does; null keys go to ``keyless``.

    That is `round_robin` by default. An empty key is a key.
    """
    others = round_robin() if keyless is None else keyless

    def choose(key: bytes | None, partitions: Sequence[int]) -> int:
        if key is None:
            return others(key, partitions)
        return partitions[(murmur2(key) & 0x7FFFFFFF) % len(partitions)]

    return choose


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of the bytes, unsigned, with the seed that Kafka takes."""
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
