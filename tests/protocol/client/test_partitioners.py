"""Partitioners: clients that share keys must hash alike."""

from __future__ import annotations

import kafka.partitioner.default as peer
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.client._partitioners import at_random, by_key, murmur2, round_robin
from tests.support.cases import each


@each(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_the_java_client(key, hashed):
    """The hashes equal those in the Java client's tests."""
    assert murmur2(key) == hashed % (1 << 32)


@given(st.binary(max_size=40))
def test_the_hash_is_that_of_another_client(key):
    """Another implementation returns the same hash for every key."""
    assert murmur2(key) == peer.murmur2(key) % (1 << 32)


@given(st.binary(max_size=20), st.integers(1, 20))
def test_a_key_stays_in_its_partition(key, count):
    """A key always has the partition of its positive hash."""
    choose = by_key()
    expected = (peer.murmur2(key) & 0x7FFFFFFF) % count
    assert {choose(key, range(count)) for _ in range(3)} == {expected}


def test_null_keys_take_turns():
    """Null keys use the partitions in turn; an empty key is hashed."""
    choose = by_key()
    assert [choose(None, [4, 5, 6]) for _ in range(4)] == [4, 5, 6, 4]
    assert len({choose(b"", [4, 5, 6]) for _ in range(4)}) == 1
    assert [by_key(lambda _key, partitions: partitions[-1])(None, [1, 2]) for _ in range(2)] == [2, 2]


def test_round_robin_ignores_keys():
    """Keys make no difference."""
    choose = round_robin()
    assert [choose(key, [0, 1]) for key in (b"a", b"a", None, b"a")] == [0, 1, 0, 1]


def test_a_random_choice_is_kept():
    """A partitioner keeps its partition, and many partitioners use all partitions."""
    chosen = [at_random() for _ in range(200)]
    found = [{choose(None, [0, 1, 2]) for _ in range(5)} for choose in chosen]
    assert all(len(one) == 1 for one in found)
    assert set.union(*found) == {0, 1, 2}
