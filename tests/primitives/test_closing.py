"""`Closing`: the end of a block closes the object."""

from __future__ import annotations

import pytest

from cloudevents_kafka.primitives.closing import Closing


class _Closed(Closing):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def _fail_within(one: _Closed) -> None:
    with one as entered:
        assert entered is one
        assert not one.closed
        raise KeyError


def test_a_block_closes_the_object_also_after_an_error() -> None:
    """The block gets the object itself, which is closed once at its end, and an error leaves it."""
    one = _Closed()
    with pytest.raises(KeyError):
        _fail_within(one)
    assert one.closed == 1
