"""What must come of an event, and in which words it is said that something else came."""

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
class Way:
    """How an event travels: ``binary``, or in structured mode by the format of that name."""

    name: str

    @property
    def mode(self) -> str:
        """The content mode."""
        return "binary" if self.name == "binary" else "structured"


def describe(event: Event) -> Json:
    """Write an event that we read in the notation of the line protocol."""
    attributes = [(name, _our_type(event, name), event.text(name)) for name in event]
    data = None
    if event.payload is not None:
        data = {"kind": _KIND_NAMES[event.kind], "hex": event.payload.hex()}
    return {"attributes": attributes, "data": data}


def _our_type(event: Event, name: str) -> str:
    value = event[name]
    for python, told in ((bool, "Boolean"), (int, "Integer"), (bytes, "Binary")):
        if isinstance(value, python):
            return told
    known = type_of(name)
    return known.value if known is not None else "String"


def event_findings(sample: Sample, got: Json, way: Way, *, by_peer: bool) -> Iterator[str]:
    """Say how a received event differs from the sample; ``by_peer`` tells who wrote it."""
    attributes = {name: (kind, text) for name, kind, text in got["attributes"]}
    wanted = {name: (kind, canonical_text(value)) for name, kind, value in sample.attributes}
    if _is_made_explicit(sample, way, by_peer=by_peer):
        wanted.setdefault("datacontenttype", ("String", "application/json"))
    for name, (kind, text) in wanted.items():
        label = name if name in _NAMED else f"ext:{kind}"
        if name not in attributes:
            yield f"{label} missing"
        else:
            yield from _attribute_findings(label, kind, text, attributes[name], way)
    yield from (f"{name} added" for name in attributes if name not in wanted)
    yield from _data_findings(sample, got["data"], way, by_peer=by_peer)


def _is_made_explicit(sample: Sample, way: Way, *, by_peer: bool) -> bool:
    """Tell whether the content type of a JSON value has to be named (R-10); our Protobuf writer does it."""
    ours = way.name == "protobuf" and not by_peer and "json:string" not in sample.features
    return sample.kind == "json" and (way.mode == "binary" or ours)


def _attribute_findings(label: str, kind: str, text: str, got: tuple[str, str], way: Way) -> Iterator[str]:
    got_kind, got_text = got
    if got_text != text:
        finding = f"{label} changed"
        if kind == "Timestamp":
            finding = _time_finding(label, text, got_text)
        if finding:
            yield finding
    # A header is text; a reader may know the type all the same.
    if _family(got_kind) not in ({_family(kind)} if way.mode == "structured" else {_family(kind), "text"}):
        yield f"{label} type"


def _family(kind: str) -> str:
    """Types that the JSON format tells apart; all others are text there."""
    return kind if kind in ("Boolean", "Integer", "Float") else "text"


def _time_finding(label: str, text: str, got: str) -> str | None:
    if not is_timestamp(got):
        return f"{label} is no timestamp"
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
    """Return the digits of a second's fraction, without zeros at the end."""
    return f"{moment.microsecond:06}{finer}".rstrip("0")


# --- data ---


def _data_findings(sample: Sample, data: Json | None, way: Way, *, by_peer: bool) -> Iterator[str]:
    if data is None or sample.payload is None:
        if sample.payload is not None:
            yield "data missing"
        elif data is not None:
            yield f"data added: {_short(bytes.fromhex(data['hex']))}"
        return
    kind, got = data["kind"], bytes.fromhex(data["hex"])
    if not _same_data(sample, kind, got, exact=way.mode == "binary" and not by_peer):
        yield "data changed"
    elif kind not in _kinds(sample):
        yield f"data taken for {kind}"


def _same_data(sample: Sample, kind: str, got: bytes, *, exact: bool) -> bool:
    """Compare as JSON what a writer had as a JSON value, or a reader has; all else byte by byte."""
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
    """Compare JSON values; a Boolean is no number here."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _kinds(sample: Sample) -> set[str]:
    """Name what the data may come as: a language may have a value, a text or bytes for it."""
    if _is_json(sample):
        return {"json", "bytes", "text"}
    return {"bytes", "text"} if "ct:text" in sample.features else {"bytes"}


# --- records ---


def record_findings(sample: Sample, record: Record) -> Iterator[str]:
    """Say what is wrong with a record beside the event: its key, and headers that should not be."""
    if record.key != sample.key:
        partition_key = sample.text("partitionkey")
        mapped = partition_key is not None and record.key == partition_key.encode()
        yield "record: key is partitionkey" if mapped else "record: key changed"
    if any(value is None and name.startswith(("ce_", "content-type")) for name, value in record.headers):
        yield "record: null headers"
    if any(name == "ce_datacontenttype" for name, _ in record.headers):
        yield "record: ce_datacontenttype"
