"""What the official SDK makes of recorded messages, and what the functions of its names make of them here.

    python -m tests.support.sdk_reads

Write ``tests/sdk/reads.json``: each read of the records of ``spec-conformance/vectors`` that the two read
differently, with the kinds of its differences. Each kind has a judgement; a difference without a kind is an
error. Values that the SDK makes at each read are "(invented)".
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cloudevents.core.bindings import kafka
from cloudevents.v1 import kafka as kafka1
from conformance import Dataset
from conformance.notation import as_record

from cloudevents_kafka import Record, sdk
from cloudevents_kafka.sdk import v1

READS = Path(__file__).parents[1] / "sdk" / "reads.json"
FILES = ("decode-matrix.json", "real-producers.json", "golden.json")
INVENTED = "(invented)"
KINDS = {
    "invented": "Here what the record does not have is absent; the SDK makes a time at each read.",
    "mode": "Here the content type decides the mode (K-09); the SDK takes any ce_ header for binary mode.",
    "headers as attributes": "Here the event is the value (K-16, K-17); version 1 adds all headers to it.",
    "envelope's type": "Here datacontenttype is that of the value (K-15); version 1 takes the header's.",
    "record's type": "Here the content type of a record that version 1 wrote is that of the data.",
    "key over attribute": "Here an attribute that was sent is kept (K-14); the SDK replaces it by the key.",
    "empty value": "Here an empty value is not a null one (K-07).",
    "copy": "Here content-type is before ce_datacontenttype (K-04); the SDK takes the last one.",
    "nameless header": "Here a header without a name is not an attribute (N-01).",
    "null header": "Here a null header is an absent attribute, or another system's; the SDK fails.",
    "text of a header": "Here a header of another system may be any bytes; the SDK fails.",
    "text of a key": "Here a key may be any bytes (K-12); the SDK fails.",
    "null member": "Here a JSON null is an absent attribute (J-04); the SDK keeps it as None, or fails.",
    "byte order mark": "Here one before JSON is left out, as version 1 does; version 2 fails.",
    "leap second": "Here second 60 is valid (T-12); the SDK fails.",
    "other format": "Here Avro and Protobuf events are read by their content type; the SDK fails.",
    "other data": "Here data is of any content type (K-03), or absent (K-07); version 1 reads JSON only.",
    "refused": "Here the record is refused: the clauses say why.",
}


def records() -> Iterator[tuple[str, Record]]:
    """Yield the records of the vectors whose headers a dictionary can have, with names."""
    for file in FILES:
        for case in Dataset().cases(file):
            record = getattr(case, "record", None)
            if record is not None and hasattr(case, "strict"):
                found = as_record(record)
                if len(dict(found.headers)) == len(found.headers):
                    yield str(getattr(case, "name", None) or case.id), found


def read2(functions: Any) -> Callable[[Record], tuple[dict[str, Any], Any]]:
    def read(record: Record) -> tuple[dict[str, Any], Any]:
        event = functions.from_kafka_event(kafka.KafkaMessage(dict(record.headers), record.key, record.value))
        return dict(event.get_attributes()), event.get_data()

    return read


def read1(functions: Any) -> Callable[[Record], tuple[dict[str, Any], Any]]:
    def read(record: Record) -> tuple[dict[str, Any], Any]:
        is_binary = not names_format(record) and any(name.lower()[:3] == "ce_" for name, _ in record.headers)
        read = functions.from_binary if is_binary else functions.from_structured
        event = read(kafka1.KafkaMessage(dict(record.headers), record.key, record.value))
        return dict(event.get_attributes()), event.data

    return read


READERS = {1: (read1(kafka1), read1(v1)), 2: (read2(kafka), read2(sdk))}


def outcome(read: Callable[[Record], tuple[dict[str, Any], Any]], record: Record) -> dict[str, Any]:
    """Return what a read returns or raises, as JSON."""
    try:
        attributes, data = read(record)
        again, _ = read(record)
    except Exception as error:  # noqa: BLE001  # the SDK raises any
        clauses = list(getattr(error, "clauses", ()))
        return {"error": type(error).__name__, **({"clauses": clauses} if clauses else {})}
    attributes = {
        name: as_json(value) if value == again.get(name) else INVENTED for name, value in attributes.items()
    }
    return {"attributes": attributes, "data": as_json(data)}


def as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return {"time": value.isoformat()} if isinstance(value, datetime) else value


def names_format(record: Record) -> bool:
    return (header(record, "content-type") or b"").lower().startswith(b"application/cloudevents")


def header(record: Record, name: str) -> bytes | None:
    return next((value for each, value in record.headers if each.lower() == name), None)


def judge(number: int, record: Record, theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Return the kinds of the differences of two outcomes; raise `AssertionError` if one has no kind."""
    if "error" in ours:
        return ["refused"]
    if "error" in theirs:
        return [failure_of(number, record, ours)]
    if number == 2 and names_format(record) and any(name.startswith("ce_") for name, _ in record.headers):
        return ["mode"]
    kinds = []
    there, here = theirs["attributes"], ours["attributes"]
    for name in sorted({*there, *here}):
        if there.get(name, "") is None and name not in here:
            kinds.append("null member")
        elif there.get(name) != here.get(name):
            kinds.append(kind_of(number, record, name, there.get(name)))
    if theirs["data"] != ours["data"] and "copy" not in kinds:  # the data is read by its type
        assert (theirs["data"], ours["data"]) == (None, {"hex": ""}), (record, theirs, ours)
        kinds.append("empty value")
    assert kinds, (record, theirs, ours)
    return sorted(set(kinds))


def kind_of(number: int, record: Record, name: str, theirs: Any) -> str:
    """Return the kind of the difference of an attribute."""
    if theirs == INVENTED:
        return "invented"
    if name == "partitionkey":
        return "key over attribute"
    if name == "":
        return "nameless header"
    if name == "datacontenttype":
        if header(record, "ce_datacontenttype"):
            return "copy"
        return "record's type" if theirs is None else "envelope's type"
    assert number == 1, (record, name, theirs)
    assert header(record, name) is not None, (record, name, theirs)
    return "headers as attributes"


def failure_of(number: int, record: Record, ours: dict[str, Any]) -> str:
    """Return the reason why the SDK fails to read an event."""
    content_type = (header(record, "content-type") or b"").lower()
    is_plain = ours["data"] is None or not names_format(record)
    reasons = {
        "null header": any(value is None for _, value in record.headers),
        "text of a header": not all(is_utf8(value) for _, value in record.headers),
        "text of a key": number == 2 and not is_utf8(record.key),
        "nameless header": header(record, "ce_") is not None,
        "other format": names_format(record) and b"json" not in content_type,
        "byte order mark": number == 2 and (record.value or b"").startswith(b"\xef\xbb\xbf"),
        "leap second": number == 2 and b":60Z" in (header(record, "ce_time") or b""),
        "null member": number == 2 and b"null" in (record.value or b""),
        "other data": number == 1 and is_plain,
    }
    assert any(reasons.values()), (record, ours)
    return next(kind for kind, holds in reasons.items() if holds)


def is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def compare() -> dict[str, Any]:
    """Return the differing reads of all records and the number of those that are the same."""
    reads, same, refused = [], Counter[int](), Counter[int]()
    for name, record in records():
        for number, (theirs, ours) in READERS.items():
            outcomes = outcome(theirs, record), outcome(ours, record)
            if all("error" in one for one in outcomes):
                refused[number] += 1
            elif outcomes[0] == outcomes[1]:
                same[number] += 1
            else:
                kinds = judge(number, record, *outcomes)
                reads.append(
                    {
                        "record": name,
                        "version": number,
                        "kinds": kinds,
                        "sdk": outcomes[0],
                        "here": outcomes[1],
                    }
                )
    return {
        "sdk": version("cloudevents"),
        "same": {f"version {number}": same[number] for number in READERS},
        "refused by both": {f"version {number}": refused[number] for number in READERS},
        "kinds": KINDS,
        "reads": reads,
    }


def main() -> None:
    """Write the file, one read a line."""
    found = compare()
    reads = ",\n".join("  " + json.dumps(read, ensure_ascii=False) for read in found.pop("reads"))
    head = json.dumps(found, ensure_ascii=False, indent=1).removesuffix("\n}")
    READS.write_text(f'{head},\n "reads": [\n{reads}\n ]\n}}\n', "utf-8")
    sys.stdout.write(f"wrote {READS}\n")


if __name__ == "__main__":
    main()
