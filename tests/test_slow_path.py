"""Events that break no rule are read without the search for problems, also those that others write."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
from conformance import Dataset
from conformance._entry_cases import EntryCase
from hypothesis import given, reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from cloudevents_kafka import EncodeError, Event, Record, decode, from_record, to_record
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.formats.registry import names
from cloudevents_kafka.record import Headers
from cloudevents_kafka.registry import temporarily
from tests.support import peer_samples
from tests.support import strategies as make
from tests.support.cases import each
from tests.support.slow_path import Call, Monitor

# --- the kinds that do enter the slow path ---


def _value(call: Call) -> bytes:
    value = call.given.value if isinstance(call.given, Record) else call.given
    return bytes(value or b"")


def _has_half_a_pair(call: Call) -> bool:
    return b"\\ud8" in _value(call)


def _is_deep(call: Call) -> bool:
    return max(_value(call).count(b"["), _value(call).count(b'{"')) > 200


def _has_texts_as_headers(call: Call) -> bool:
    return any(isinstance(value, str | memoryview) for _, value in getattr(call.given, "headers", ()))


EXCEPTIONS: Final[dict[str, Callable[[Call], bool]]] = {
    "data with half of a surrogate pair: the JSON parser refuses it": _has_half_a_pair,
    "data nested deeper than the JSON parser reads": _is_deep,
    "headers that are texts or memoryviews: clients return bytes": _has_texts_as_headers,
}
"""The kinds of valid events that enter the slow path, with the reason."""

SHARE: Final = 1 / 1000
"""The bound of their share among the vectors. Among the records of peers it is 0."""


def unexplained(monitor: Monitor) -> list[Call]:
    """Return the valid events that entered the slow path and are of none of these kinds."""
    return [
        call for call in monitor.valid if call.slow and not any(kind(call) for kind in EXCEPTIONS.values())
    ]


# --- records of peers, and the vectors ---


@each("peer", peer_samples.PEERS)
def test_records_of_peers(peer: str) -> None:
    """No record of a peer that is an event enters the slow path, strictly or leniently read."""
    samples = [sample for sample in peer_samples.read(peer) if sample.is_event]
    assert len(samples) >= 300
    with Monitor() as monitor:
        for sample in samples:
            from_record(sample.record)
            decode(sample.record, lenient=True)
    assert len(monitor.calls) == 2 * len(samples)
    assert [call for call in monitor.calls if call.slow] == []


def test_vectors() -> None:
    """Of the events that the vectors accept, in all modes and formats, only the kinds above do."""
    with temporarily(), Monitor() as monitor:
        for _, case in Dataset().all_cases:
            if isinstance(case, EntryCase):
                for entry in case.inputs():
                    case.check_input(entry)
            else:
                case.run()
    assert len(monitor.valid) > 4000
    assert unexplained(monitor) == []
    assert sum(bool(call.slow) for call in monitor.valid) <= SHARE * len(monitor.valid)


def test_the_search_is_seen() -> None:
    """The monitor sees the slow path for each of the kinds above, and for events that break a rule."""
    head = json.dumps(make.GOOD).encode()[:-1] + b', "data": '
    records: list[Record] = [
        Record(headers=[JSON], value=head + b'"\\ud83d"}'),
        Record(headers=[JSON], value=head + make.deep(b"[", 400_000, b"]") + b"}"),  # for any Python
        Record(headers=[*make.required_headers, ("ce_subject", cast("Any", "text"))]),
    ]
    for record, is_of_kind in zip(records, EXCEPTIONS.values(), strict=True):
        with Monitor() as monitor:
            from_record(record)
        [call] = monitor.valid
        assert call.slow
        assert is_of_kind(call)
    with Monitor() as monitor:
        decode(Record(headers=make.required_headers[1:]))
        decode(Record(headers=[JSON], value=b"{}"))
    assert [call.is_valid for call in monitor.calls] == [False, False]
    assert all(call.slow for call in monitor.calls)


# --- generated events ---

JSON: Final = ("content-type", b"application/cloudevents+json")
_blanks: Final = st.text(st.sampled_from(" \t\r\n"), max_size=3).map(str.encode)
_writers: Final = (JsonFormat(), JsonFormat(text_data=True))


@st.composite
def spellings(draw: DrawFn, text: str) -> bytes:
    """Return a text as a JSON string, in one of its many forms."""
    parts = []
    for character in text:
        form = draw(st.integers(0, 3))
        if form == 0:
            parts.append(json.dumps(character)[1:-1])  # an escape if it is not ASCII
        elif form == 1:
            units = character.encode("utf-16-be").hex()
            parts += [f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)]
        elif form == 2 and character == "/":
            parts.append("\\/")
        else:
            parts.append(json.dumps(character, ensure_ascii=False)[1:-1])
    return f'"{"".join(parts)}"'.encode()


@st.composite
def json_records(draw: DrawFn) -> tuple[Event, Record]:
    """Return an event, and a record of it in JSON with other white space, order and escapes."""
    event = draw(make.events())
    value = draw(st.sampled_from(_writers)).encode(event)
    members = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    pairs: list[tuple[bytes, bytes]] = []
    for name, raw in members.items():
        member = bytes(raw)
        if member.startswith(b'"') and draw(st.booleans()):
            member = draw(spellings(json.loads(member)))
        pairs.append((draw(st.one_of(st.just(f'"{name}"'.encode()), spellings(name))), member))
    absent = sorted({"nothing", "subject", "time", "data_base64"} - members.keys() - {"data"})
    pairs += [
        (f'"{name}"'.encode(), b"null") for name in draw(st.lists(st.sampled_from(absent), unique=True))
    ]
    blank = _blanks if draw(st.booleans()) else st.just(b"")
    written = [
        b"".join((draw(blank), name, draw(blank), b":", draw(blank), member, draw(blank)))
        for name, member in draw(st.permutations(pairs))
    ]
    return event, Record(headers=[JSON], value=draw(blank) + b"{" + b",".join(written) + b"}" + draw(blank))


@make.examples(150)
@given(json_records())
def test_generated_json(pair: tuple[Event, Record]) -> None:
    """JSON in any order, with any white space, escapes, types and nulls does not enter the slow path."""
    event, record = pair
    with Monitor() as monitor:
        read = from_record(record)
        decode(record, lenient=True)
    assert len(monitor.valid) == 2
    assert unexplained(monitor) == []
    assert {name: read.text(name) for name in read} == {name: event.text(name) for name in event}
    if read.kind is DataKind.JSON:  # whose text is that of the record
        assert json.loads(read.payload or b"") == json.loads(event.payload or b"")
    else:
        assert read.payload == event.payload


@st.composite
def other_records(draw: DrawFn) -> tuple[Event, Record]:
    """Return an event, and a record of it in binary mode or in any format, with more headers."""
    event = draw(make.events())
    way = draw(st.sampled_from(["binary", "binary", *names()]))
    if way != "binary":
        try:
            record = to_record(event, mode="structured", format=way)
        except EncodeError:
            reject()
        return event, Record(value=record.value, headers=[*draw(make.other_headers), *record.headers])
    record = to_record(event)
    headers: Headers = [*record.headers, ("ce_nothing", None)]
    content_type = dict(headers).get("content-type")
    if content_type is not None and draw(st.booleans()):
        headers.append(("ce_datacontenttype", content_type))
    headers += [pair for pair in draw(make.other_headers) if pair[0] != "ce_"]
    return event, Record(value=record.value, headers=draw(st.permutations(headers)))


@make.examples(150)
@given(other_records())
def test_generated_records(pair: tuple[Event, Record]) -> None:
    """Neither do events in binary mode, with null and other headers, or in the other formats."""
    event, record = pair
    with Monitor() as monitor:
        read = from_record(record)
        decode(record, lenient=True)
    assert unexplained(monitor) == []
    assert monitor.calls[0].is_valid
    assert read.payload == event.payload


@make.examples(100)
@given(make.attributes())
def test_constructed_events(attributes: Mapping[str, Any]) -> None:
    """Neither does an event that a caller makes."""
    with Monitor() as monitor:
        Event(**attributes)
    [call] = monitor.calls
    assert call.is_valid
    assert not call.slow
