"""Producers and consumers of 0.7 compute the same lists."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.v07.partitions import BrokerPartition, Cluster, assign, by_key
from tests.support.cases import each


def texts(partitions):
    return [str(partition) for partition in partitions]


def all_partitions(counts):
    return Cluster({}, {"t": counts}).partitions("t")


def destinations(counts, brokers):
    return Cluster(dict.fromkeys(brokers), {"t": counts}).destinations("t")


def test_wiki_example():
    """Three consumers, two brokers of three partitions: 0-0 0-1, 0-2 1-0, 1-1 1-2."""
    assignment = assign(all_partitions({1: 3, 0: 3}), ["B", "C", "A"])
    assert {consumer: texts(assigned) for consumer, assigned in assignment.items()} == {
        "A": ["0-0", "0-1"],
        "B": ["0-2", "1-0"],
        "C": ["1-1", "1-2"],
    }


@each(
    ("count", "consumers", "sizes"),
    [
        (18, 4, [5, 5, 4, 4]),
        (16, 4, [4, 4, 4, 4]),
        (17, 4, [5, 4, 4, 4]),
        (2, 4, [1, 1, 0, 0]),
        (0, 2, [0, 0]),
    ],
)
def test_remainders(count, consumers, sizes):
    """The first consumers get the remaining partitions: 5-5-4-4, never 4-4-4-5."""
    assignment = assign(all_partitions({0: count}), [f"c{number}" for number in range(consumers)])
    assert [len(assigned) for assigned in assignment.values()] == sizes


def test_no_consumers():
    """Without consumers the assignment is empty."""
    assert assign(all_partitions({0: 3}), []) == {}


@given(
    st.dictionaries(st.integers(0, 30), st.integers(0, 12), max_size=5),
    st.sets(st.text(max_size=3), max_size=6),
)
def test_each_partition_has_one_consumer(counts, consumers):
    """Every partition has one consumer, in order, and the sizes differ by at most one."""
    partitions = all_partitions(counts)
    assignment = assign(reversed(partitions), sorted(consumers, reverse=True))
    assert list(assignment) == sorted(consumers)
    assert [one for assigned in assignment.values() for one in assigned] == (partitions if consumers else [])
    sizes = [len(assigned) for assigned in assignment.values()]
    assert all(before >= after for before, after in pairwise(sizes))
    assert not sizes or sizes[0] - sizes[-1] <= 1


def test_order_is_that_of_strings():
    """Partitions are sorted by their string, as Kafka 0.7's clients do: 10-0 before 2-0."""
    in_order = ["10-0", "2-0", "2-10", "2-2"]
    partitions = [
        BrokerPartition(2, 0),
        BrokerPartition(10, 0),
        BrokerPartition(2, 10),
        BrokerPartition(2, 2),
    ]
    assert texts(assign(partitions, ["c"])["c"]) == in_order
    assert texts(all_partitions({2: 1, 10: 1})) == ["10-0", "2-0"]


def test_destinations():
    """A producer may send to all partitions of live brokers, and to partition 0 of others."""
    assert texts(destinations({0: 2, 3: 1}, {0, 3})) == ["0-0", "0-1", "3-0"]
    assert texts(destinations({}, {7, 5})) == ["5-0", "7-0"]
    assert texts(destinations({0: 2, 9: 4}, {0, 1})) == ["0-0", "0-1", "1-0"]
    assert destinations({0: 2}, []) == []


def test_picks():
    """A key always has the same partition, and keys reach all partitions."""
    choices = destinations({0: 3, 1: 2}, [0, 1])
    assert by_key(choices, b"123456789") == choices[0xCBF43926 % 5]
    assert {by_key(choices, str(n).encode()) for n in range(100)} == set(choices)
