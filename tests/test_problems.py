"""Every entry point reports the same problems of an event, two at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from itertools import combinations
from typing import Any, Final, NamedTuple

import pytest

from cloudevents_kafka import BrokenEvent, Decoded, Event, InvalidEvent, Problem, Record, decode
from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.primitives import varint, zigzag
from tests.support.cases import each
from tests.support.strategies import GOOD

Entries = list[tuple[str, Any]]
Found = set[tuple[str | None, str]]
DATA: Final = "invalid data"  # replaced by the data member of each format


class Case(NamedTuple):
    """A way to break an event: the entries that it sets and removes, and what is reported."""

    name: str
    entries: Entries
    problem: tuple[str, str]
    missing: str = ""


BROKEN: Final = [
    Case("missing type", [], ("type", "R-01"), missing="type"),
    Case("empty id", [("id", "")], ("id", "R-02")),
    Case("malformed source", [("source", "a b")], ("source", "T-11")),
    Case("other specversion", [("specversion", "0.3")], ("specversion", "R-05")),
    Case("malformed datacontenttype", [("datacontenttype", "xyz")], ("datacontenttype", "R-07")),
    Case("malformed dataschema", [("dataschema", "rel/path")], ("dataschema", "T-10")),
    Case("control character in subject", [("subject", "a\x01")], ("subject", "T-06")),
    Case("malformed time", [("time", "noon")], ("time", "T-12")),
    Case("sampledrate of 0", [("sampledrate", 0)], ("sampledrate", "X-05")),
    Case("severitytext alone", [("severitytext", "warn")], ("severitynumber", "X-08")),
    Case("invalid name", [("bad_name", "v")], ("bad_name", "N-01")),
    Case("invalid data", [(DATA, None)], ("data", "")),
]
REPEATED: Final = {
    "id": "2",
    "type": "u",
    "dataschema": "a:b",
    "subject": "s",
    "sampledrate": 1,
    "bad_name": "w",
    "correlationid": "c",
}
REPEATS: Final = [Case(f"repeated {name}", [], (name, "N-05")) for name in REPEATED]


# --- entry points: from entries to the problems of an event ------------------------


def _of_record(headers: list[tuple[str, bytes | None]], value: bytes | None, *, lenient: bool) -> Found:
    outcome = decode(Record(headers=headers, value=value), lenient=lenient)
    if isinstance(outcome, Decoded):
        return _found(outcome.tolerated)
    assert isinstance(outcome.error, BrokenEvent)
    assert outcome.error.clauses == tuple(dict.fromkeys(each.clause for each in outcome.error.problems))
    return _found(outcome.error.problems)


def _found(problems: Collection[Problem]) -> Found:
    found = {(problem.attribute, problem.clause) for problem in problems}
    assert len(found) == len(problems)
    return found


class _SdkEvent(NamedTuple):
    attributes: dict[str, Any]
    data: Any

    def get_attributes(self) -> dict[str, Any]:
        return self.attributes

    def get_data(self) -> Any:
        return self.data


def _constructed(construct: Callable[[dict[str, Any], Any], Event]) -> Callable[..., Found]:
    def read(entries: Entries, *, lenient: bool) -> Found:
        assert not lenient
        attributes = dict(entries)
        data = object() if attributes.pop(DATA, "") is None else None
        with pytest.raises(InvalidEvent) as caught:
            construct(attributes, data)
        return _found(caught.value.problems)

    return read


def _binary(entries: Entries, *, lenient: bool) -> Found:
    headers: list[tuple[str, bytes | None]] = [
        ("content-type" if name == "datacontenttype" else f"ce_{name}", str(value).encode())
        for name, value in entries
    ]
    return _of_record(headers, None, lenient=lenient)


def _structured(name: str, encode: Callable[[Entries], bytes]) -> Callable[..., Found]:
    def read(entries: Entries, *, lenient: bool) -> Found:
        headers: list[tuple[str, bytes | None]] = [
            ("content-type", f"application/cloudevents+{name}".encode())
        ]
        return _of_record(headers, encode(entries), lenient=lenient)

    return read


def _json(entries: Entries) -> bytes:
    members = [
        '"data":"a","data_base64":"YQ=="' if name == DATA else f"{json.dumps(name)}:{json.dumps(value)}"
        for name, value in entries
    ]
    return ("{" + ",".join(members) + "}").encode()


def _string(text: str) -> bytes:
    """Return an Avro string."""
    return zigzag.encode(len(text.encode())) + text.encode()


def _branch(value: str | int, integer: bytes, string: bytes) -> bytes:
    return integer + zigzag.encode(value) if isinstance(value, int) else string + _string(value)


def _avro(entries: Entries) -> bytes:
    written = [_string(name) + _branch(value, b"\x04", b"\x06") for name, value in entries if name != DATA]
    # The branch double, which text/plain does not allow.
    data = b"\x0a" + bytes(8) if (DATA, None) in entries else b"\x02"
    return zigzag.encode(len(written)) + b"".join(written) + b"\x00" + data


COMPACT: Final = ("id", "source", "type", "datacontenttype", "dataschema", "subject")


def _compact(entries: Entries) -> bytes:
    core = dict(entry for entry in entries if entry[0] in COMPACT)
    extensions = [
        _string(name) + _branch(value, b"\x02", b"\x06")
        for name, value in entries
        if name not in (*COMPACT, "specversion")
    ]
    return b"".join(
        [
            *(_string(core[name]) for name in COMPACT[:3]),
            *(b"\x02" + _string(core[name]) if name in core else b"\x00" for name in COMPACT[3:]),
            b"\x00",
            zigzag.encode(len(extensions)) + b"".join(extensions) if extensions else b"",
            b"\x00\x02",
        ]
    )


def _java_compact(entries: Entries) -> bytes:
    return bytes.fromhex("c301ba27b92209f0ef56") + _compact(entries)


FIELDS: Final = {"id": 1, "source": 2, "specversion": 3, "type": 4}
VALUE_FIELDS: Final = {AttributeType.URI: 5, AttributeType.URI_REFERENCE: 6}


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint.encode(len(content)) + content


def _value_field(name: str, value: str | int) -> bytes:
    if isinstance(value, int):
        return b"\x10" + varint.encode(value)
    return _field(VALUE_FIELDS.get(type_of(name), 3), value.encode())


def _protobuf(entries: Entries) -> bytes:
    written = b""
    for name, value in entries:
        if name == DATA:
            written += _field(6, b"bytes") + _field(7, b"text")
        elif name in FIELDS:
            written += _field(FIELDS[name], value.encode())
        else:
            written += _field(5, _field(1, name.encode()) + _field(2, _value_field(name, value)))
    return written


class EntryPoint(NamedTuple):
    """A way into the library, the clause that it has for invalid data, and what it cannot express."""

    read: Callable[..., Found]
    data_clause: str = ""
    cannot: Collection[str] = ()
    repeats: Collection[str] = REPEATED


NO_REPEATS: Final[Collection[str]] = ()
COMPACT_CANNOT: Final = ("missing type", "other specversion", "malformed time", "invalid data")
COMPACT_REPEATS: Final = ("sampledrate", "bad_name", "correlationid")
ENTRY_POINTS: Final = {
    "Event": EntryPoint(
        _constructed(lambda attributes, data: Event(**attributes, data=data)), "J-10", repeats=NO_REPEATS
    ),
    "Event.of": EntryPoint(
        _constructed(lambda attributes, data: Event.of(_SdkEvent(attributes, data))),
        "J-10",
        repeats=NO_REPEATS,
    ),
    "binary": EntryPoint(_binary, cannot=("missing type", "invalid data")),  # not an event without a type
    "json": EntryPoint(_structured("json", _json), "J-12"),
    "avro": EntryPoint(_structured("avro", _avro), "A-06"),
    # A time must be a timestamp there, so a text is in the wrong field.
    "protobuf": EntryPoint(_structured("protobuf", _protobuf), "P-03", cannot=("malformed time",)),
    "avro-compact": EntryPoint(
        _structured("avro-compact", _compact), cannot=COMPACT_CANNOT, repeats=COMPACT_REPEATS
    ),
    "avrocompact": EntryPoint(
        _structured("avrocompact", _java_compact), cannot=COMPACT_CANNOT, repeats=COMPACT_REPEATS
    ),
}


def _break(pair: Collection[Case]) -> Entries:
    """Return the entries of a valid event with these cases applied, repeats last."""
    attributes: dict[str, Any] = dict(GOOD)
    for case in pair:
        attributes.update(case.entries)
    if (DATA, None) in attributes.items():
        attributes.setdefault("datacontenttype", "text/plain")
    repeated = [case.problem[0] for case in pair if case in REPEATS]
    for name in repeated:
        attributes.setdefault(name, REPEATED[name])
    for case in pair:
        attributes.pop(case.missing, None)
    return [*attributes.items(), *((name, attributes[name]) for name in repeated)]


def _expected(entry_point: EntryPoint, pair: Collection[Case]) -> Found:
    expected: Found = {(each.problem[0], each.problem[1] or entry_point.data_clause) for each in pair}
    if any(each.problem == ("bad_name", "N-05") for each in pair):
        expected.add(("bad_name", "N-01"))
    return expected


def _pairs() -> list[Any]:
    cases = [*BROKEN, *REPEATS]
    return [
        pytest.param(name, pair, id=f"{name}-{pair[0].name}-{pair[1].name}")
        for name, entry_point in ENTRY_POINTS.items()
        for pair in combinations([case for case in cases if case.name not in entry_point.cannot], 2)
        if all(case not in REPEATS or case.problem[0] in entry_point.repeats for case in pair)
        and not {case.missing for case in pair} & {case.problem[0] for case in pair if not case.missing}
    ]


@each(("name", "pair"), _pairs())
def test_a_pair_of_problems_is_reported_with_both_clauses(name: str, pair: tuple[Case, Case]) -> None:
    """Each entry point reports both problems, each once, and nothing else."""
    entry_point = ENTRY_POINTS[name]
    assert entry_point.read(_break(pair), lenient=False) == _expected(entry_point, pair)


@each(("name", "pair"), [case for case in _pairs() if not case.values[0].startswith("Event")])
def test_lenient_reading_reports_no_other_problem(name: str, pair: tuple[Case, Case]) -> None:
    """Lenient reading tolerates or reports problems of the strict reading, with the same clauses."""
    entry_point = ENTRY_POINTS[name]
    found = entry_point.read(_break(pair), lenient=True)
    assert found
    assert found <= _expected(entry_point, pair)


@each("name", [name for name, each in ENTRY_POINTS.items() if each.repeats])
def test_the_last_of_repeated_values_counts(name: str) -> None:
    """A repeated attribute is reported as that; only its last value must keep the rules."""
    read = ENTRY_POINTS[name].read
    first = [*GOOD.items(), ("sampledrate", 0), ("sampledrate", 1)]
    last = [*GOOD.items(), ("sampledrate", 1), ("sampledrate", 0)]
    assert read(first, lenient=False) == {("sampledrate", "N-05")}
    assert read(last, lenient=False) == {("sampledrate", "N-05"), ("sampledrate", "X-05")}


@each(
    ("members", "expected"),
    [
        ('"data_base64":1,"data_base64":2', {("data_base64", "N-05"), ("data_base64", "J-14")}),
        ('"datacontenttype":"text/plain","data":1,"data":2', {("data", "N-05"), ("data", "J-16")}),
        ('"subject":[],"data":1,"data_base64":""', {("subject", "J-03"), ("data", "J-12")}),
        ('"subject":[],"subject":{}', {("subject", "N-05"), ("subject", "J-03")}),
    ],
)
def test_problems_of_json_members(members: str, expected: Found) -> None:
    """Repeated members, members of other types and invalid data are reported together."""
    value = json.dumps(GOOD).encode()[:-1] + b"," + members.encode() + b"}"
    headers: list[tuple[str, bytes | None]] = [("content-type", b"application/cloudevents+json")]
    assert _of_record(headers, value, lenient=False) == expected
