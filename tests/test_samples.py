"""A sample of parameters runs each time, and the others in a release."""

from __future__ import annotations

from typing import Any

from tests.support.samples import one_in


def chosen(parameters: list[Any]) -> list[tuple[tuple[Any, ...], bool]]:
    """Return the values of parameters, and whether they run in a release only."""
    return [(one.values, [mark.name for mark in one.marks] == ["release"]) for one in parameters]


def test_the_first_of_each_number_runs_each_time() -> None:
    """The others have the marker; nothing is left out, and the order stays."""
    assert chosen(one_in(3, "abcde")) == [
        (("a",), False),
        (("b",), True),
        (("c",), True),
        (("d",), False),
        (("e",), True),
    ]
    assert chosen(one_in(1, "ab")) == [(("a",), False), (("b",), False)]


def test_values_of_several_members() -> None:
    """A tuple is one value of a test with one member, and the values of a test with as many members."""
    assert chosen(one_in(2, [(1, 2), (3, 4)], members=2)) == [((1, 2), False), ((3, 4), True)]
    assert chosen(one_in(2, [(1, 2)])) == [(((1, 2),), False)]
