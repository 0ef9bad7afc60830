"""Ranges of versions, in the notation of Kafka's definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.schema import ALL, NEWEST, NONE, Versions

ranges = st.builds(Versions, st.integers(0, 20), st.integers(0, 20) | st.just(NEWEST)) | st.just(NONE)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("0+", 0, 32767), ("2-5", 2, 5), ("7", 7, 7), ("none", 0, -1), ("12+", 12, 32767)],
)
def test_notation(text, first, last):
    """Each form of a range round-trips."""
    found = Versions.parse(text)
    assert found == (first, last)
    assert str(found) == text


@pytest.mark.parametrize("text", ["", "+", "-", "1-", "-2", "a", "1.0", "1-2-3", "None"])
def test_not_a_range(text):
    """An invalid range raises `ValueError`."""
    with pytest.raises(ValueError, match="invalid literal"):
        Versions.parse(text)


@pytest.mark.parametrize(("version", "there"), [(1, False), (2, True), (5, True), (6, False), ("2", False)])
def test_membership(version, there):
    """A range contains both ends, and only integers."""
    assert (version in Versions(2, 5)) is there
    assert version not in NONE


@given(ranges, ranges, st.integers(-1, 25))
def test_common(one, other, version):
    """The common range contains the versions in both ranges."""
    assert (version in one.common(other)) == (version in one and version in other)
    assert one.common(ALL) == one


@given(ranges)
def test_round_trip_at_any_index(one):
    """The text of a range parses to the same range."""
    found = Versions.parse(str(one))
    assert all((version in found) == (version in one) for version in range(-1, 30))
