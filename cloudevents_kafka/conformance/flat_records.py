"""The cases in their plainest form: records in hex, each with what a strict reader makes of it.

For another implementation that only reads records: one file, one kind of case, nothing to
be put together. Made of all cases that have a record: attributes and events by way of
headers and of every format, records to be read, forwarded or written anew, and records that were written.
Records of 64 KiB and more are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from cloudevents_kafka.binding import Decoded, decode, sniff, to_record
from cloudevents_kafka.conformance.assertions import faults, verdict_of
from cloudevents_kafka.conformance.cases import run
from cloudevents_kafka.conformance.dataset import Case, Library
from cloudevents_kafka.conformance.entry_points import attempts, is_choice
from cloudevents_kafka.conformance.notation import as_event, as_headers, as_record
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import SIZE_LIMIT, wire_size
from cloudevents_kafka.record import Record

COMMAND: Final = "cloudevents-kafka conformance --no-tests --records spec-conformance/records.json"
_ABOUT: Final = (
    "The cases in their plainest form: records in hex, and what a strict reader makes of each. "
    f"Made by `{COMMAND}` of the files in vectors."
)


def document(library: Library) -> str:
    """Write all cases that have a record as a vector file, one line each; raises `Unmet`."""
    declared: dict[str, str] = {}
    for name in library.files:
        declared |= library.document(name).get("declared", {})
    lines = [json.dumps(case, ensure_ascii=False) for case in _cases(library)]
    head = f'{{\n"about": {json.dumps(_ABOUT)},\n"declared": {json.dumps(declared)},\n"cases": [\n'
    return head + ",\n".join(lines) + "\n]\n}\n"


def _cases(library: Library) -> Iterator[dict[str, Any]]:
    for _, case in library.all_cases:
        run(case)  # what is told about a record is what the case asks for
        for way, record, choice in _records(case):
            if wire_size(record) >= SIZE_LIMIT:
                continue  # the file is for people to look at, too
            told = {
                "id": f"{case['id']} {way}".rstrip(),
                "clause": case["clause"],
                "source": case["source"],
                "about": case["about"],
                "kind": "decode",
                "record": _record(record),
                "strict": _expectation(
                    record, named=_names_faults(case) and choice == case.get("choice", False)
                ),
            }
            flags = {"choice": choice, "documented": case.get("documented", False)}
            yield told | {flag: True for flag, is_so in flags.items() if is_so}


def _records(case: Case) -> Iterator[tuple[str, Record, bool]]:
    """Give the records of a case, each with what tells it apart, and whether its outcome is a choice."""
    choice = case.get("choice", False)
    if case.keys() & {"heeds", "broker"}:
        return  # it depends on more than the record
    if case["kind"] in {"attribute", "construct"}:
        for door, given in attempts(case):
            if isinstance(given, Record):
                yield door, given, choice or is_choice(case, door)
    elif case["kind"] == "encode" and not case.get("refused"):
        headers = as_headers(case.get("headers", []))
        event = as_event(case["event"])
        yield "", to_record(event, mode=case["mode"], format=case.get("format"), headers=headers), choice
    elif "record" in case and case["kind"] != "encode":
        yield "", as_record(case["record"]), choice


def _names_faults(case: Case) -> bool:
    """Tell whether a case says what has to be at fault, or leaves it open."""
    if case["kind"] == "decode":
        return bool(case["strict"].get("attributes_at_fault"))
    return "fault" not in case or case["fault"] is not None


def _record(record: Record) -> dict[str, Any]:
    headers = [[name, _hex(value)] for name, value in record.headers]
    return {"key": _hex(record.key), "value": _hex(record.value), "headers": headers}


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _expectation(record: Record, *, named: bool) -> dict[str, Any]:
    outcome = decode(record)
    verdict = verdict_of(outcome)
    if isinstance(outcome, Decoded):
        mode, event = sniff(record.headers).mode, outcome.event
        told = {"attributes": _attributes(event), "data": _hex(event.payload)}
        return {"verdict": verdict, "mode": mode, **told}
    if named:
        faulty = sorted(name for name in faults(outcome.error.problems) if name is not None)
        return {"verdict": verdict, "attributes_at_fault": faulty} if faulty else {"verdict": verdict}
    return {"verdict": verdict}


def _attributes(event: Event) -> dict[str, Any]:
    """Give Booleans and Integers as such, all else as its canonical text."""
    values = {name: event[name] for name in event}
    return {n: value if isinstance(value, bool | int) else event.text(n) for n, value in values.items()}
