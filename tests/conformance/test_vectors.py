"""The vectors, one test each: this library does what they say."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka.conformance import kinds
from cloudevents_kafka.conformance.doors import attempts
from cloudevents_kafka.conformance.library import Library
from cloudevents_kafka.conformance.notation import as_record
from cloudevents_kafka.size import LIMIT, wire_size

CASES = [case for _, case in Library().all_cases]
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
    kinds.enter(case, given)


@pytest.mark.parametrize("case", WHOLE, ids=[case["id"] for case in WHOLE])
def test_case(case: Any) -> None:
    """What a case says of an event or a record holds."""
    kinds.run(case)


def test_64_kib_are_64_kib() -> None:
    """The records of S-01 have that many bytes on the wire: neither more nor less."""
    sizes = {wire_size(as_record(case["record"])) for case in CASES if case["clause"] == "S-01"}
    assert sizes == {LIMIT}


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
