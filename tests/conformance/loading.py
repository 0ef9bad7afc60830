"""Vector files as Python values: cases by kind, and the notations for bytes, data and events."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from cloudevents_kafka.attributes import AttributeType
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import register_extension
from cloudevents_kafka.record import Record

Case = dict[str, Any]
VECTORS: Final = Path(__file__).parents[2] / "spec-conformance" / "vectors"
MATRIX: Final = "decode-matrix.json"
FILES: Final = (
    "golden.json",
    "real-producers.json",
    *sorted(path.relative_to(VECTORS).as_posix() for path in VECTORS.glob("spec-rows/*.json")),
)


@cache
def document(name: str) -> Case:
    """Read a vector file, and make the extension types known that it declares."""
    found: Case = json.loads((VECTORS / name).read_text("utf-8"))
    for extension, kind in found.get("declared", {}).items():
        register_extension(extension, AttributeType(kind))
    return found


def all_cases() -> list[Case]:
    """Return the cases of all files but the decode matrix."""
    return [case for name in FILES for case in document(name)["cases"]]


def cases(kind: str) -> pytest.MarkDecorator:
    """Parametrize a test with all cases of one kind, each under its id."""
    found = [case for case in all_cases() if case["kind"] == kind]
    assert found, f"no case of kind {kind}"
    return pytest.mark.parametrize("case", found, ids=[case["id"] for case in found])


def as_bytes(notation: Any) -> bytes | None:
    """Read the notation of bytes: hex, a text for its UTF-8, or null."""
    if notation is None:
        return None
    return notation["text"].encode() if isinstance(notation, dict) else bytes.fromhex(notation)


def as_headers(notation: list[Any]) -> list[tuple[str, bytes | None]]:
    """Read pairs of a header's name and bytes."""
    return [(name, as_bytes(value)) for name, value in notation]


def as_record(notation: Case) -> Record:
    """Read a record to be decoded."""
    return Record(
        key=as_bytes(notation["key"]),
        value=as_bytes(notation["value"]),
        headers=as_headers(notation["headers"]),
    )


def as_value(notation: Any) -> Any:
    """Read an attribute's value: JSON's own, or bytes as ``{"hex": …}``."""
    return (
        bytes.fromhex(notation["hex"])
        if isinstance(notation, dict) and set(notation) == {"hex"}
        else notation
    )


def as_data(notation: Any) -> Any:
    """Read event data: a JSON value, a text, bytes, or null for none."""
    if notation is None:
        return None
    ((form, value),) = notation.items()
    return bytes.fromhex(value) if form == "hex" else value


def as_event(notation: Case) -> Event:
    """Construct the event of a case; raises `InvalidEvent`."""
    attributes = {name: as_value(value) for name, value in notation["attributes"].items()}
    return Event(data=as_data(notation["data"]), **attributes)
