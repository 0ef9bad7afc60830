"""The vectors, in loops that name each case that fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from conformance import CaseFailed, Dataset
from conformance._entry_cases import EntryCase
from conformance.notation import as_record

from cloudevents_kafka import registry
from cloudevents_kafka.attributes import extension_types
from cloudevents_kafka.extensions import SIZE_LIMIT
from tests.support.cases import each

DATASET = Dataset()
CASES = [case for _, case in DATASET.all_cases]
ENTRY_CASES = [case for case in CASES if isinstance(case, EntryCase)]
OTHER_CASES = [case for case in CASES if not isinstance(case, EntryCase)]
INPUTS = [
    pytest.param(case, input, id=f"{case.id} {input.entry_point}")
    for case in ENTRY_CASES
    for input in case.inputs()
]


@each(("case", "input_"), INPUTS)
def test_attribute(case: Any, input_: Any) -> None:
    """The constructor, headers and every format agree on whether a value or an event is accepted."""
    case.check_input(input_)


@each("case", OTHER_CASES, ids=[case.id for case in OTHER_CASES])
def test_case(case: Any) -> None:
    """The library does what a case of an event or a record expects."""
    case.run()


def test_64_kib_are_64_kib() -> None:
    """The records of S-01 have exactly 64 KiB on the wire."""
    sizes = {as_record(case.record).wire_size() for case in CASES if case.clause == "S-01"}
    assert sizes == {SIZE_LIMIT}


def test_refused_texts_use_every_entry_point() -> None:
    """A refused text is tried by the constructor, in headers, JSON, Avro and Protobuf."""
    every = {"constructor", "headers", "json", "avro", "protobuf"}
    incomplete = {}
    for case in ENTRY_CASES:
        if not case.accepted and getattr(case, "entry_points", None) is None:
            missing = every - {input.entry_point.partition(",")[0] for input in case.inputs()}
            if missing and isinstance(getattr(case, "value", ""), str):
                incomplete[case.id] = missing
    assert incomplete == {}


def _holds_without_extensions(case: Any, declared: Iterable[str]) -> bool:
    with registry.temporarily():
        extension_types.restore(
            {name: known for name in declared if (known := extension_types.find_extension(name))}
        )
        try:
            case.run()
        except CaseFailed:
            return False
    return True


@pytest.fixture
def no_extensions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the documented extensions, so that only those which a test registers remain."""
    with monkeypatch.context() as patch:
        patch.setattr(extension_types, "DOCUMENTED", {})
        yield
    extension_types.restore(extension_types.registered())


@pytest.mark.usefixtures("no_extensions")
def test_cases_that_need_documented_extensions_say_so() -> None:
    """Exactly the cases outside of clauses X-… that fail without documented extensions are marked."""
    for name in DATASET.files:
        declared = DATASET.file(name).declared
        others = [case for case in DATASET.cases(name) if not case.clause.startswith("X-")]
        marked = {case.id for case in others if case.documented}
        assert marked == {case.id for case in others if not _holds_without_extensions(case, declared)}
    assert not any(case.documented for case in CASES if case.clause.startswith("X-"))
