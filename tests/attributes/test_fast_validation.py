"""Fast validation decides, and the search for problems agrees with it."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka.attributes import fast_validation
from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.extension_types import (
    current,
    parse_values,
    register_extension,
    restore,
)
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.attributes.validation import find_problems
from cloudevents_kafka.registry import temporarily
from tests.support import strategies as make
from tests.support.strategies import GOOD

_REGISTERED: Final = [f"my{kind.name.lower().replace('_', '')}" for kind in AttributeType] + [
    "mine",
    "myneed",
]
_NAMES: Final = st.one_of(
    make.any_names,
    make.names,
    st.sampled_from(sorted(DOCUMENTED)),
    st.sampled_from([*_REGISTERED, "mine", "myneed"]),
)
_VALUES: Final = st.one_of(
    make.any_texts,
    make.extension_values,
    make.timestamps(),
    make.almost_timestamps(),
    make.sources,
    make.schemas,
    make.content_types,
    st.integers(-(2**33), 2**33),
    st.sampled_from(
        [
            "",
            "true",
            "True",
            "0",
            "5",
            "-5",
            "05",
            "2147483648",
            "TWE=",
            "TWE",
            "=",
            "x y",
            "odd",
            "1.0",
            "é",
            "\x7f",
        ]
    ),
    st.sampled_from([0, -1, 1, 2**31 - 1, 2**31, -(2**31), True, False, b"", b"\xff", 1.5, None, ["x"]]),
)


@pytest.fixture(scope="module", autouse=True)
def registrations() -> Any:
    """Register extensions of each type, with a rule, and with a need."""
    with temporarily():
        for name, kind in zip(_REGISTERED, AttributeType, strict=False):
            register_extension(name, kind)
        register_extension("mine", AttributeType.STRING, rule="must be odd", accepts=lambda v: v == "odd")
        register_extension("myneed", AttributeType.INTEGER, needs=["mine", "subject"])
        yield


@make.examples(500)
@given(
    good=make.attributes(),
    hostile=st.dictionaries(_NAMES, _VALUES, max_size=3),
    missing=st.one_of(st.none(), st.none(), st.none(), st.sampled_from(sorted(GOOD))),
)
@example(good={}, hostile={"authtype": ""}, missing=None)
@example(good={}, hostile={"traceparent": "p", "tracestate": ""}, missing=None)
@example(good={}, hostile={"dssematerial": ""}, missing=None)
@example(good={}, hostile={"dssematerial": b""}, missing=None)
@example(good={}, hostile={"mystring": ""}, missing=None)
@example(good={}, hostile={"myneed": "5", "mine": "odd", "subject": "s"}, missing=None)
def test_accepts_exactly_what_has_no_problem(
    good: dict[str, Any], hostile: dict[str, Any], missing: str | None
) -> None:
    """Attributes pass if and only if the search finds no problem, and then have the same values."""
    attributes = {**GOOD, **good, **hostile}
    if missing is not None:
        del attributes[missing]
    with_caches = [dict(attributes), dict(attributes)]
    restore(current.table.registered)  # the first of them meets empty caches
    accepted = [accept(given) for given in with_caches]
    values = parse_values(dict(attributes))
    is_valid = find_problems(values) == []
    assert accepted == [is_valid, is_valid], find_problems(values)
    if is_valid:
        assert [_typed(given) for given in with_caches] == [_typed(values), _typed(values)]


def _typed(attributes: dict[str, Any]) -> list[tuple[str, type, Any]]:
    return [(name, type(value), value) for name, value in attributes.items()]


def test_caches_are_bounded() -> None:
    """Many sources, schemas and names do not stay in memory."""
    for number in range(5000):
        assert accept({**GOOD, "source": f"/{number}", "dataschema": f"a:{number}", f"x{number}": "v"})
    assert accept({**GOOD, "source": "/" * 10**5, "x" * 10**5: "v"})
    for memory in (fast_validation._sources, fast_validation._schemas, current.table.text_names):
        assert len(memory) <= 4096
    assert max(map(len, fast_validation._sources)) <= 256
