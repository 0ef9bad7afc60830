"""Every rule of attributes, with its clause."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from cloudevents_kafka import Event, InvalidEvent
from cloudevents_kafka.attributes.extension_types import parse_values
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.validation import find_problems
from tests.support.cases import each
from tests.support.strategies import GOOD


@each(
    ("changed", "clause"),
    [
        *[({name: None}, "R-01") for name in GOOD],
        ({"id": ""}, "R-02"),
        ({"id": 25}, "R-02"),
        ({"source": ""}, "R-04"),
        ({"source": "a b"}, "T-11"),
        ({"specversion": ""}, "R-05"),
        ({"specversion": "0.9"}, "R-05"),
        ({"specversion": "1.0.2"}, "R-05"),
        ({"type": ""}, "R-06"),
        ({"datacontenttype": ""}, "R-07"),
        ({"datacontenttype": "xyz"}, "R-07"),
        ({"datacontenttype": "a/b\x00"}, "T-06"),
        ({"dataschema": ""}, "R-11"),
        ({"dataschema": "rel/path"}, "T-10"),
        ({"dataschema": "//h/p"}, "T-10"),
        ({"subject": ""}, "R-12"),
        ({"subject": True}, "R-12"),
        ({"time": ""}, "R-13"),
        ({"time": "lunchtime"}, "T-12"),
        ({"x": 2**31}, "T-04"),
        ({"x": -(2**31) - 1}, "T-04"),
        ({"x": 10**5000}, "T-04"),
        ({"partitionkey": ""}, "X-01"),
        ({"partitionkey": 5}, "T-06"),
        ({"sampledrate": 0}, "X-05"),
        ({"sampledrate": "1.5"}, "T-05"),
        ({"sampledrate": True}, "T-05"),
        ({"severitynumber": -1}, "X-08"),
        ({"deprecated": False}, "X-09"),
        ({"deprecated": "yes"}, "T-03"),
        ({"expirytime": "soon"}, "T-12"),
        ({"deprecationmigration": "/p", "deprecated": True}, "T-10"),
        ({"dataref": "a b"}, "T-11"),
        ({"dssematerial": "TWFU="}, "T-09"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_each_rule_has_its_clause(changed: dict[str, Any], clause: str) -> None:
    """A broken rule is one problem with the name of the attribute and the clause of the rule."""
    given = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    problems = find_problems(parse_values(given))
    assert [(p.attribute, p.clause) for p in problems] == [(next(iter(changed)), clause)]
    assert not accept(given)


def test_all_problems_are_reported_together() -> None:
    """The constructor reports all problems, also that of the data, each with its clause."""
    bad: dict[str, Any] = {"x": 1.5, "My_Ext": "v", "y": 2**40, "data": {1, object()}}
    with pytest.raises(InvalidEvent) as caught:
        Event(source="", type="t\n", time=datetime(2018, 4, 5), **bad)  # noqa: DTZ001 - that is one
    assert {(p.attribute, p.clause) for p in caught.value.problems} == {
        ("id", "R-01"),
        ("source", "R-04"),
        ("type", "T-06"),
        ("time", "T-01"),
        ("data", "J-10"),
        ("x", "T-01"),
        ("My_Ext", "N-01"),
        ("y", "T-04"),
    }
    for problem in caught.value.problems:
        assert str(problem) in str(caught.value)


@pytest.mark.parametrize(
    "added",
    [
        {"sampledrate": 1},
        {"severitynumber": 0},
        {"x": 2**31 - 1},
        {"x": -(2**31)},
        {"deprecated": True},
        {"expirytime": "2025-01-01T00:00:00Z"},
        {"dssematerial": "TWE="},
        {"datacontenttype": "a/b", "subject": " ", "dataschema": "a:"},
    ],
    ids="-".join,
)
def test_the_first_values_that_keep_a_rule(added: dict[str, Any]) -> None:
    """The value next to one that breaks a rule is valid, by all rules and by the fast ones."""
    given = parse_values({**GOOD, **added})
    assert find_problems(given) == []
    assert accept(given)
