"""The checks of extension attributes decide as the search for problems does."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED, Extension, Rule
from cloudevents_kafka.attributes.extension_checks import check_of
from cloudevents_kafka.attributes.extension_types import current, parse_values
from cloudevents_kafka.attributes.types import INTEGER_RANGE, AttributeType, parse
from cloudevents_kafka.attributes.validation import find_problems
from tests.support.strategies import GOOD

_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_TEXTS: Final = (
    *("5", "0", "-0", "-1", "05", "+5", " 5", "1_0", "٣", "2147483647", "2147483648", "-2147483648", ""),
    *("true", "false", "True", "TWFu", "TQ==", "TR==", "TQ", "T", "a b", "GDPR,PCI", "GDPR, PCI", "é"),
    *("2018-04-05T17:31:00Z", "2018-04-05 17:31:00Z", "2017-01-01t00:00:00+01:00", "2016-12-31T23:59:60Z"),
    *("/s", "https://e.example", "%zz", "http://["),
)
_values: Final = st.sampled_from([*_TEXTS, 5, 0, -1, True, False, b"", b"x", 2**31])


@given(st.dictionaries(st.sampled_from(sorted({*DOCUMENTED, "dataschema"})), _values, min_size=1))
def test_a_check_agrees_with_the_search(extensions: dict[str, Any]) -> None:
    """All checks pass if, and only if, no extension has a problem; the values have their types then."""
    attributes = {**GOOD, **extensions}
    table = current.table
    expected = parse_values(attributes)
    found = {problem.attribute for problem in find_problems(expected)}
    constrained = table.constrained & extensions.keys()
    needed = {name for extension in constrained for name in DOCUMENTED[extension].needs}
    typed = {**attributes}
    passed = not [name for name in constrained if not table.checks[name](typed)]
    assert passed == found.isdisjoint(constrained | (needed - attributes.keys()))
    if passed:
        assert typed == expected
        assert [*map(type, typed.values())] == [*map(type, expected.values())]


def test_a_check_has_all_rules_and_needs() -> None:
    """A check calls each rule with the typed value, and asks for each attribute that is needed."""
    seen: list[Any] = []
    rule = Rule("must be 5", lambda value, attributes: seen.append((value, len(attributes))) or value == 5)
    check = check_of("x", Extension(AttributeType.INTEGER, (rule, rule), ("y",)))
    assert not check({"x": "5"})
    assert check({"x": "5", "y": "1"})
    assert not check({"x": "6", "y": "1"})
    assert not check({"x": "v", "y": "1"})
    assert not check({"x": True, "y": "1"})
    assert seen == [(5, 1)] * 2 + [(5, 2)] * 2 + [(6, 2)]


@given(st.one_of(st.integers().map(str), st.text("-+_ 0123456789٣", max_size=12)))
def test_integers(text: str) -> None:
    """The text of an Integer is an integer component of JSON with 32 bits (T-04, T-05)."""
    value = None
    with suppress(ValueError):
        value = parse(AttributeType.INTEGER, text)
    valid = _INTEGER.fullmatch(text) is not None and len(text) <= 11 and int(text) in INTEGER_RANGE
    assert value == (int(text) if valid else None)
