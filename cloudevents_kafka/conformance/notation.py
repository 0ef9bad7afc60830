"""The notations of the vectors as Python values: bytes, headers, records, values, data, events."""

from __future__ import annotations

from typing import Any

from cloudevents_kafka.conformance.dataset import Case
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record


def as_bytes(notation: Any) -> bytes | None:
    """Read the notation of bytes: hex, a text for its UTF-8, bytes that repeat, a list of these, or null."""
    return None if notation is None else _bytes(notation)


def _bytes(notation: Any) -> bytes:
    if isinstance(notation, list):
        return b"".join(map(_bytes, notation))
    if isinstance(notation, str):
        return bytes.fromhex(notation)
    if "text" in notation:
        return str(notation["text"]).encode()
    return bytes.fromhex(notation["repeat"]) * int(notation["times"])


def as_headers(notation: list[Any]) -> Headers:
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
    is_binary = isinstance(notation, dict) and set(notation) == {"hex"}
    return bytes.fromhex(notation["hex"]) if is_binary else notation


def as_data(notation: Any) -> Any:
    """Read event data: a JSON value, a text, bytes, or null for none."""
    if notation is None:
        return None
    if "repeat" in notation:
        return as_bytes(notation)
    ((form, value),) = notation.items()
    return bytes.fromhex(value) if form == "hex" else value


def as_event(notation: Case) -> Event:
    """Construct the event of a case; raises `InvalidEvent`."""
    attributes = {name: as_value(value) for name, value in notation["attributes"].items()}
    return Event(data=as_data(notation["data"]), **attributes)
