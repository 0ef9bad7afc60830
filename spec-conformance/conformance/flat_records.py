"""The cases in their simplest form: records in hex, each with the outcome of strict reading.

An implementation that only reads records needs this file and no other. It has the records
of attributes and events by headers and every format, and of cases that read or write one.
Records of 64 KiB and more are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from cloudevents_kafka.binding import Decoded, decode, sniff
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import SIZE_LIMIT
from cloudevents_kafka.record import Record
from conformance._compare import attributes_of, verdict_of
from conformance._dataset import Dataset
from conformance._entry_cases import EntryCase
from conformance._writing_cases import encoded
from conformance.notation import RecordNotation, as_record

_ABOUT: Final = (
    "The cases in their simplest form: records in hex, each with the outcome of strict reading. "
    "`make report` writes this file from the files in vectors."
)


def document(dataset: Dataset) -> str:
    """Return a vector file of all records, one on each line; raise `CaseFailed` if a case fails."""
    declared: dict[str, str] = {}
    for name in dataset.files:
        declared |= {extension: kind.value for extension, kind in dataset.file(name).declared.items()}
    lines = [json.dumps(case, ensure_ascii=False) for case in _flat_cases(dataset)]
    head = f'{{\n"about": {json.dumps(_ABOUT)},\n"declared": {json.dumps(declared)},\n"cases": [\n'
    return head + ",\n".join(lines) + "\n]\n}\n"


def _flat_cases(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for _, case in dataset.all_cases:
        case.run()  # a case that holds has the outcome that its file expects
        for entry_point, record, choice in _records(case):
            if record.wire_size() >= SIZE_LIMIT:
                continue  # the file must stay small enough to read
            flat = {
                "id": f"{case.id} {entry_point}".rstrip(),
                "clause": case.clause,
                "source": case.source,
                "about": case.about,
                "kind": "decode",
                "record": _record(record),
                "strict": _expectation(record, with_faults=_names_faults(case) and choice == case.choice),
            }
            flags = {"choice": choice, "documented": case.documented}
            yield flat | {name: True for name, value in flags.items() if value}


def _records(case: Any) -> Iterator[tuple[str, Record, bool]]:
    """Yield the records of a case, each with its entry point and whether its outcome is a choice."""
    notation = getattr(case, "record", None)
    if isinstance(case, EntryCase):
        for name, content, is_choice in case.inputs():
            if isinstance(content, Record):
                yield name, content, case.choice or is_choice
    elif case.kind == "encode":
        if not case.refused and case.broker is None:
            yield "", encoded(case.event, case.mode, case.format, case.headers), case.choice
    elif isinstance(notation, RecordNotation) and not getattr(case, "heeds", None):
        yield "", as_record(notation), case.choice  # with labels the outcome depends on more than the record


def _names_faults(case: Any) -> bool:
    """Return whether a case names the attributes at fault."""
    if case.kind == "decode":
        return bool(case.strict.attributes_at_fault)
    return case.kind != "attribute" or case.fault is not None


def _record(record: Record) -> dict[str, Any]:
    headers = [[name, _hex(value)] for name, value in record.headers]
    return {"key": _hex(record.key), "value": _hex(record.value), "headers": headers}


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _expectation(record: Record, *, with_faults: bool) -> dict[str, Any]:
    outcome = decode(record)
    verdict = verdict_of(outcome)
    if isinstance(outcome, Decoded):
        event = outcome.event
        fields = {"attributes": _attributes(event), "data": _hex(event.payload)}
        return {"verdict": verdict, "mode": sniff(record.headers).mode, **fields}
    if with_faults:
        faults = sorted(name for name in attributes_of(outcome.error.problems) if name is not None)
        return {"verdict": verdict, "attributes_at_fault": faults} if faults else {"verdict": verdict}
    return {"verdict": verdict}


def _attributes(event: Event) -> dict[str, Any]:
    """Return Booleans and Integers as such, all other attributes as canonical text."""
    values = {name: event[name] for name in event}
    return {n: value if isinstance(value, bool | int) else event.text(n) for n, value in values.items()}
