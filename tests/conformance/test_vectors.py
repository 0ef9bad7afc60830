"""The vectors, one test each: this library does what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from cloudevents_kafka import registry
from cloudevents_kafka.attributes import extension_types
from cloudevents_kafka.conformance import cases
from cloudevents_kafka.conformance.assertions import Unmet
from cloudevents_kafka.conformance.dataset import Library
from cloudevents_kafka.conformance.entry_points import attempts
from cloudevents_kafka.conformance.notation import as_record
from cloudevents_kafka.extensions import SIZE_LIMIT, wire_size

LIBRARY = Library()
CASES = [case for _, case in LIBRARY.all_cases]
ENTERING = {"attribute", "construct"}
WHOLE = [case for case in CASES if case["kind"] not in ENTERING]
DOORS = [
    pytest.param(case, given, id=f"{case['id']} {door}")
    for case in CASES
    if case["kind"] in ENTERING
    for door, given in attempts(case)
]


@pytest.mark.parametrize(("case", "given"), DOORS)
def test_attribute(case: Any, given: Any) -> None:
    """A value or an event is accepted or refused by constructor, headers and every format alike."""
    cases.enter(case, given)


@pytest.mark.parametrize("case", WHOLE, ids=[case["id"] for case in WHOLE])
def test_case(case: Any) -> None:
    """What a case says of an event or a record holds."""
    cases.run(case)


def test_64_kib_are_64_kib() -> None:
    """The records of S-01 have that many bytes on the wire: neither more nor less."""
    sizes = {wire_size(as_record(case["record"])) for case in CASES if case["clause"] == "S-01"}
    assert sizes == {SIZE_LIMIT}


def test_refused_texts_go_by_every_door() -> None:
    """What is refused is refused everywhere: by constructor, headers, JSON, Avro and Protobuf."""
    every = {"constructor", "headers", "json", "avro", "protobuf"}
    few = {}
    for case in CASES:
        if case["kind"] in ENTERING and not case["accepted"] and "entry_points" not in case:
            missed = every - {door.partition(",")[0] for door, _ in attempts(case)}
            if missed and (case["kind"] == "construct" or isinstance(case.get("value"), str)):
                few[case["id"]] = missed
    assert few == {}


def _holds_without_extensions(case: Any, declared: Iterable[str]) -> bool:
    with registry.temporarily():
        extension_types.restore(
            {name: known for name in declared if (known := extension_types.find_extension(name))}
        )
        try:
            cases.run(case)
        except Unmet:
            return False
    return True


@pytest.fixture
def no_extensions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No extension is known but those that a test registers."""
    with monkeypatch.context() as patch:
        patch.setattr(extension_types, "DOCUMENTED", {})
        yield
    extension_types.restore(extension_types.registered())


@pytest.mark.usefixtures("no_extensions")
def test_cases_that_need_documented_extensions_say_so() -> None:
    """Who has none of them leaves out clauses X-…, and cases of other clauses that are marked."""
    for name in LIBRARY.files:
        declared = LIBRARY.document(name).get("declared", {})
        others = [case for case in LIBRARY.cases(name) if not case["clause"].startswith("X-")]
        marked = {case["id"] for case in others if case.get("documented")}
        assert marked == {case["id"] for case in others if not _holds_without_extensions(case, declared)}
    assert not any(case.get("documented") for case in CASES if case["clause"].startswith("X-"))
