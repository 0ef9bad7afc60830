"""Compare a received event and record with the sample, and name the differences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from events import Sample

from cloudevents_kafka import Event, Record
from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.timestamps import instant, is_timestamp
from cloudevents_kafka.attributes.types import CORE, canonical_text
from cloudevents_kafka.codecs.payload import DataKind

Json = dict[str, Any]
_NAMED: Final = {*CORE, "partitionkey"}
_KIND_NAMES: Final = {DataKind.JSON: "json", DataKind.TEXT: "text", DataKind.BYTES: "bytes"}


@dataclass(frozen=True)
class Encoding:
    """``binary``, or the name of the event format in structured mode."""

    name: str

    @property
    def mode(self) -> str:
        """The content mode."""
        return "binary" if self.name == "binary" else "structured"


def describe(event: Event) -> Json:
    """Return an event in the notation of the line protocol."""
    attributes = [(name, _type_name(event, name), event.text(name)) for name in event]
    data = None
    if event.payload is not None:
        data = {"kind": _KIND_NAMES[event.kind], "hex": event.payload.hex()}
    return {"attributes": attributes, "data": data}


def _type_name(event: Event, name: str) -> str:
    value = event[name]
    for python_type, type_name in ((bool, "Boolean"), (int, "Integer"), (bytes, "Binary")):
        if isinstance(value, python_type):
            return type_name
    known = type_of(name)
    return known.value if known is not None else "String"


def event_findings(sample: Sample, got: Json, encoding: Encoding, *, by_peer: bool) -> Iterator[str]:
    """Yield the differences between a received event and the sample; ``by_peer`` if the peer wrote it."""
    attributes = {name: (kind, text) for name, kind, text in got["attributes"]}
    wanted = {name: (kind, canonical_text(value)) for name, kind, value in sample.attributes}
    if _needs_content_type(sample, encoding, by_peer=by_peer):
        wanted.setdefault("datacontenttype", ("String", "application/json"))
    for name, (kind, text) in wanted.items():
        label = name if name in _NAMED else f"ext:{kind}"
        if name not in attributes:
            yield f"{label} missing"
        else:
            yield from _attribute_findings(label, kind, text, attributes[name], encoding)
    yield from (f"{name} added" for name in attributes if name not in wanted)
    yield from _data_findings(sample, got["data"], encoding, by_peer=by_peer)


def _needs_content_type(sample: Sample, encoding: Encoding, *, by_peer: bool) -> bool:
    """Return whether the content type of a JSON value must be written (R-10), as in our Protobuf format."""
    by_library = encoding.name == "protobuf" and not by_peer and "json:string" not in sample.features
    return sample.kind == "json" and (encoding.mode == "binary" or by_library)


def _attribute_findings(
    label: str, kind: str, text: str, got: tuple[str, str], encoding: Encoding
) -> Iterator[str]:
    got_kind, got_text = got
    if got_text != text:
        finding = f"{label} changed"
        if kind == "Timestamp":
            finding = _time_finding(label, text, got_text)
        if finding:
            yield finding
    # A header is text, but a reader may know the type.
    if _family(got_kind) not in (
        {_family(kind)} if encoding.mode == "structured" else {_family(kind), "text"}
    ):
        yield f"{label} type"


def _family(kind: str) -> str:
    """Return the JSON type of an attribute type, or text."""
    return kind if kind in ("Boolean", "Integer", "Float") else "text"


def _time_finding(label: str, text: str, got: str) -> str | None:
    if not is_timestamp(got):
        return f"{label} is not a timestamp"
    (moment, fraction), (other, other_fraction) = instant(text), instant(got)
    if (moment, fraction) == (other, other_fraction):
        return None
    digits, others = _digits(moment, fraction), _digits(other, other_fraction)
    if moment.replace(microsecond=0) == other.replace(microsecond=0):
        for unit, length in (("milliseconds", 3), ("microseconds", 6)):
            if others == digits[:length].rstrip("0"):
                return f"{label} cut to {unit}"
    return f"{label} changed"


def _digits(moment: datetime, finer: str) -> str:
    """Return the digits of a fraction of a second, without trailing zeros."""
    return f"{moment.microsecond:06}{finer}".rstrip("0")


# --- data ---


def _data_findings(sample: Sample, data: Json | None, encoding: Encoding, *, by_peer: bool) -> Iterator[str]:
    if data is None or sample.payload is None:
        if sample.payload is not None:
            yield "data missing"
        elif data is not None:
            yield f"data added: {_short(bytes.fromhex(data['hex']))}"
        return
    kind, got = data["kind"], bytes.fromhex(data["hex"])
    if not _same_data(sample, kind, got, exact=encoding.mode == "binary" and not by_peer):
        yield "data changed"
    elif kind not in _kinds(sample):
        yield f"data read as {kind}"


def _same_data(sample: Sample, kind: str, got: bytes, *, exact: bool) -> bool:
    """Return whether data is equal: as JSON if writer or reader has a JSON value, else byte by byte."""
    assert sample.payload is not None
    as_json = kind == "json" or (_is_json(sample) and (kind == "text" or not exact))
    return _same_json(sample.payload, kind, got) if as_json else got == sample.payload


def _short(payload: bytes) -> str:
    return payload.decode("ascii", "backslashreplace")[:20] or "empty"


def _is_json(sample: Sample) -> bool:
    return "json" in sample.features


def _same_json(wanted: bytes, kind: str, got: bytes) -> bool:
    try:
        value = json.loads(wanted)
        if kind == "text" and isinstance(value, str):
            return got.decode() == value
        return kind != "text" and _equal(value, json.loads(got))
    except ValueError:
        return False


def _equal(one: Any, other: Any) -> bool:
    """Return whether JSON values are equal; a Boolean differs from a number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _kinds(sample: Sample) -> set[str]:
    """Return the kinds that a reader may return data as."""
    if _is_json(sample):
        return {"json", "bytes", "text"}
    return {"bytes", "text"} if "ct:text" in sample.features else {"bytes"}


# --- records ---


def record_findings(sample: Sample, record: Record) -> Iterator[str]:
    """Yield the problems of a record outside of its event: the key, and unexpected headers."""
    if record.key != sample.key:
        partition_key = sample.text("partitionkey")
        mapped = partition_key is not None and record.key == partition_key.encode()
        yield "record: key is partitionkey" if mapped else "record: key changed"
    if any(value is None and name.startswith(("ce_", "content-type")) for name, value in record.headers):
        yield "record: null headers"
    if any(name == "ce_datacontenttype" for name, _ in record.headers):
        yield "record: ce_datacontenttype"
