"""The range and round-robin assignors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.client._assignors import (
    ASSIGNORS,
    assign_range,
    assign_round_robin,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Malformed, Truncated
from cloudevents_kafka.protocol.messages.groups import Subscription
from tests.support.cases import each

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


@each("version", [0, 1, 3, 32767])
@each("more", [b"", b"\0\0\0\1new field"], ids=["same", "longer"])
def test_assignments_of_later_versions(version, more):
    """What is known of a later version is read, and the rest is ignored, as in the Java client."""
    parts = [("t", 0), ("t", 2), ("u", 1)]
    data = version.to_bytes(2) + encode_assignment(parts)[2:] + more
    assert decode_assignment(data) == parts
    subscription = compiler.encode(Subscription(topics=["t"]), 0)
    assert decode_subscription(version.to_bytes(2) + subscription[2:] + more) == ["t"]


@each("data", [b"\0", b"\0\3\0\0\0\1\0", b"\0\0\x7f\xff\xff\xff"], ids=bytes.hex)
def test_broken_assignments_are_refused(data):
    """An assignment that ends too soon is an error of the protocol."""
    with pytest.raises((Malformed, Truncated)):
        decode_assignment(data)
