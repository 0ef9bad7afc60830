"""The range and round-robin assignors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.client._assignors import ASSIGNORS, assign_range, assign_round_robin

TWO = {"a": ["t", "u"], "b": ["t", "u"]}


def test_range_assigns_ranges_of_each_topic():
    """In each topic the first member gets the remaining partition."""
    plan = assign_range(TWO, {"t": [0, 1, 2], "u": [0, 1, 2]})
    assert plan == {"a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)], "b": [("t", 2), ("u", 2)]}


def test_round_robin_assigns_in_turn():
    """The partitions of all topics are assigned one by one."""
    plan = assign_round_robin(TWO, {"t": [0, 1, 2], "u": [0, 1, 2]})
    assert plan == {"a": [("t", 0), ("t", 2), ("u", 1)], "b": [("t", 1), ("u", 0), ("u", 2)]}


members = st.dictionaries(
    st.text("abcde", min_size=1, max_size=3), st.lists(st.sampled_from("tuv"), unique=True), max_size=5
)
partitions = st.fixed_dictionaries({name: st.integers(0, 7).map(lambda n: list(range(n))) for name in "tuv"})


@pytest.mark.parametrize("name", ASSIGNORS)
@given(members=members, partitions=partitions)
def test_each_partition_has_one_reader(name, members, partitions):
    """Each subscribed partition has exactly one member, and every member is in the result."""
    plan = ASSIGNORS[name](members, partitions)
    wanted = {topic for topics in members.values() for topic in topics}
    given_out = [place for places in plan.values() for place in places]
    assert plan.keys() == members.keys()
    assert sorted(given_out) == sorted((t, p) for t in wanted for p in partitions[t])
    assert all(topic in members[member] for member, places in plan.items() for topic, _ in places)
