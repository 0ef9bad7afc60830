"""Properties of all events and records, tested with generated ones."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import re
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cloudevents_kafka import (
    BrokenEvent,
    DataError,
    Decoded,
    DecodeError,
    EncodeError,
    Event,
    InvalidEvent,
    Record,
    Undecodable,
    decode,
    from_record,
    sniff,
    to_record,
)
from cloudevents_kafka.attributes.extension_types import parse_values
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import is_timestamp
from cloudevents_kafka.attributes.validation import find_problems
from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import raw_parts
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.formats.registry import names
from tests.support import strategies as make

JSON = ("content-type", b"application/cloudevents+json")
AVRO = ("content-type", b"application/cloudevents+avro")
MODES: tuple[ContentMode, ...] = ("binary", "structured")
GOOD = {"specversion": "1.0", "id": "1", "source": "/", "type": "t"}

# --- quick looks -------------------------------------------------------------------


_CLOCK = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-](\d\d):(\d\d))", re.ASCII | re.IGNORECASE
)


def is_rfc3339(text: str) -> bool:
    """Return whether a text is a timestamp, by another algorithm."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    offset_hour, offset_minute = int(match[9] or 0), int(match[10] or 0)
    leap_year = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = [31, 28 + leap_year, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if not (1 <= month <= 12 and 1 <= day <= days[month - 1] and hour < 24 and minute < 60):
        return False
    if offset_hour > 23 or offset_minute > 59:
        return False
    sign = -1 if match[8].startswith("-") else 1
    of_day = hour * 60 + minute - sign * (offset_hour * 60 + offset_minute)
    return second < 60 or (second == 60 and of_day % 1440 == 1439)


@make.examples(100)
@given(st.one_of(make.timestamps(), make.almost_timestamps()))
@example("2018-04-05T17:31:00.Z")
@example("2018-04-05T17:31:00.123456,7Z")
@example("2018-04-05T17:31:00.1234567xZ")
@example("2018-04-05T24:00:00Z")
@example("2018-04-05 17:31:00Z")
@example("2018-04-05T17:31:00")
@example("2018-04-05T17:31:\\u00300Z")
@example("2018-04-05T17:31:00.\\u0031Z")
@example('2018-04-05T17:31:00Z"Z')
@example("2018-04-05T17:31:00\ud800Z")
@example("2016-12-31T18:59:60-05:00")
def test_fast_timestamps_agree_with_the_grammar(text: str) -> None:
    """The leniency of the date parser has no effect."""
    assume(text[:4] not in {"0000", "0001", "9999"})  # where an offset leads out of the calendar
    assert is_timestamp(text) == is_rfc3339(text)


# --- the JSON envelope, read by other means -------------------------------------------

_SPACE = re.compile(r"[ \t\n\r]*")
Members = list[tuple[str, Any, str]]


class Endless:
    """A number that no attribute can have."""


def _constant(_: str) -> Any:
    raise ValueError("no JSON")


def _number(text: str) -> Any:
    return int(text) if len(text) < 20 else Endless()


_decoder = json.JSONDecoder(parse_constant=_constant, parse_int=_number, parse_float=lambda _: Endless())


def members_of(text: str) -> Members:
    """Return names, values and texts of the members of an object; raise ValueError for other texts."""
    at = _skip(text, 0)
    members: Members = []
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}" or members:
        if text[at : at + 1] != '"':
            raise ValueError("no name")
        name, at = _decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("no colon")
        start = _skip(text, at + 1)
        value, at = _decoder.raw_decode(text, start)
        members.append((name, value, text[start:at]))
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise ValueError("no comma")
        at = _skip(text, at + 1)
    if _skip(text, at + 1) != len(text):
        raise ValueError("more")
    return members


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def has_surrogate(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_surrogate, value)) or any(map(has_surrogate, value.values()))
    if isinstance(value, list):
        return any(map(has_surrogate, value))
    return isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)


Read = tuple[dict[str, Any], bytes | None, DataKind]


def read_by_scanner(value: bytes) -> Read | None:
    """Return the event of an envelope, or None if it breaks a rule."""
    try:
        members = members_of(value.decode())
    except ValueError:
        return None
    counts = Counter(name for name, _, _ in members)
    attributes_only = [(name, value) for name, value, _ in members if name != "data"]
    if any(count > 1 for count in counts.values()) or has_surrogate([list(pair) for pair in attributes_only]):
        return None
    data = {name: (v, text) for name, v, text in members if name in {"data", "data_base64"}}
    attributes = {name: v for name, v, _ in members if name not in data and v is not None}
    if not all(isinstance(v, str | int) for v in attributes.values()):
        return None
    attributes = parse_values(attributes)
    if find_problems(attributes):
        return None
    found = _data_by_other_means(data, attributes.get("datacontenttype"))
    return None if found is None else (attributes, *found)


def _data_by_other_means(
    data: dict[str, tuple[Any, str]], content_type: Any
) -> tuple[bytes | None, DataKind] | None:
    encoded, _ = data.get("data_base64", (None, ""))
    if encoded is not None:
        plain, _ = data.get("data", (None, ""))
        return None if plain is not None else _base64_by_other_means(encoded)
    if "data" not in data:
        return None, DataKind.BYTES
    value, text = data["data"]
    media = media_type(content_type or "application/json")
    if media.is_json:
        return text.encode(media.charset or "utf-8"), DataKind.JSON
    if not isinstance(value, str):
        return None
    try:
        return value.encode(media.charset or "utf-8"), DataKind.TEXT
    except UnicodeEncodeError:
        return None


def _base64_by_other_means(text: Any) -> tuple[bytes, DataKind] | None:
    if not isinstance(text, str) or re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text) is None or len(text) % 4:
        return None
    raw = base64.b64decode(text)
    return (raw, DataKind.BYTES) if base64.b64encode(raw).decode() == text else None


_HEAD = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'


@make.examples(500)
@given(make.envelopes())
@example(_HEAD + b' "data":1}')
@example(_HEAD + b'X"data":1}')
@example(_HEAD + b',"data":1} ')
@example(_HEAD + b',"data":1}}')
@example(_HEAD + b',"data": 1}')
@example(_HEAD + b',"data":1,"data":2}')
@example(_HEAD + b',"data":{"x":[{"data":1}]},"subject":"s"}')
@example(_HEAD + b',"subject":"\\",\\"data\\":1","data":{}}')
@example(_HEAD + b',"subject":",\\"data\\":","data":"x"}')
@example(_HEAD + b',"subject":"\xed\xa0\x80","data":1}')
@example(_HEAD + b',"subject":"\x7f"}')
@example(_HEAD + b',"subject":"\xc2\x85\xc3\xa9","data":1}')
@example(_HEAD + b',"\xc3\xa9":"","data":1}')
@example(_HEAD + b',"datacontenttype":"text/plain","data":"x"}')
@example(_HEAD + b',"data":null,"data_base64":"TQ=="}')
@example(_HEAD + b',"data":"\\ud800"}')
@example(b'{"data":1}')
@example(b'"data":1}')
def test_json_envelopes_agree_with_another_reader(value: bytes) -> None:
    """The fast and the slow path agree with a reader that uses Python's scanner."""
    expected = read_by_scanner(value)
    try:
        event = JsonFormat().decode(value)
    except InvalidEvent:
        assert expected is None
        return
    assert expected is not None
    attributes, _ = raw_parts(event)
    assert (attributes, list(attributes), event.payload, event.kind) == (
        expected[0],
        list(expected[0]),
        expected[1],
        expected[2],
    )
    assert [*map(type, attributes.values())] == [*map(type, expected[0].values())]


# --- round trips ----------------------------------------------------------------------


@make.examples(100)
@given(make.events(), make.other_headers, make.keys)
def test_binary_round_trip(event: Event, headers: list[Any], key: bytes | None) -> None:
    """An event is read from its binary record as equal, with the same payload."""
    headers = [(name, value) for name, value in headers if not _is_taken(name)]
    record = to_record(event, headers=headers, key=key)
    again = from_record(record)
    if event.kind is DataKind.JSON and event.datacontenttype is None:  # made explicit
        event = event.replace(datacontenttype="application/json")
    assert _texts(again) == _texts(event)
    assert again.payload == event.payload
    assert (record.key, record.headers[len(record.headers) - len(headers) :]) == (key, headers)


@make.examples(100)
@given(make.events(), st.data())
def test_a_record_is_written_unchanged(event: Event, data: st.DataObject) -> None:
    """A record that is read and written like itself has the same bytes: order, other headers, nulls, key."""
    mode = data.draw(st.sampled_from(MODES))
    record = to_record(event, mode=mode)
    mixed = record.headers + data.draw(make.other_headers)
    if mode == "binary":
        mixed += data.draw(
            st.sampled_from([[], [("ce_gone", None)], [("ce_subject", None), ("content-type", None)]])
        )
    else:
        mixed += data.draw(
            st.sampled_from([[], [("ce_id", b"2"), ("ce_id", b"3")], [("ce_datacontenttype", b"x")]])
        )
    assume(mode == "binary" or sum(name == "content-type" for name, _ in mixed) == 1)
    came = Record(key=data.draw(make.keys), value=record.value, headers=data.draw(st.permutations(mixed)))
    again = to_record(from_record(came), like=came)
    assert (again.key, again.value, again.headers) == (came.key, came.value, came.headers)


@make.examples(100)
@given(record=make.hostile_records(), lenient=st.booleans())
def test_a_readable_record_can_be_relayed(record: Record, *, lenient: bool) -> None:
    """Any record that is read strictly is written unchanged; one that is read leniently can be written."""
    result = decode(record, lenient=lenient)
    assume(isinstance(result, Decoded))
    assert isinstance(result, Decoded)
    again = to_record(result.event, like=record)
    assert again.key == record.key
    if not result.tolerated:
        assert (again.value, again.headers) == (record.value, record.headers)


def _is_taken(name: str) -> bool:
    return name.lower() == "content-type" or name.lower().startswith("ce_")


def _texts(event: Event) -> dict[str, str | None]:
    return {name: event.text(name) for name in event}


# --- any input --------------------------------------------------------------------------


@st.composite
def other_values(draw: st.DrawFn) -> bytes:
    """Return values of the binary formats, valid and mutated."""
    name = draw(st.sampled_from(["avro", "avro-compact", "protobuf"]))
    try:
        value = to_record(draw(make.events()), mode="structured", format=name).value
    except EncodeError:
        value = b""
    return draw(make.mutated(value or b""))


@make.examples(400)
@given(record=make.hostile_records(other_values()), lenient=st.booleans())
def test_reading_never_raises(record: Record, *, lenient: bool) -> None:
    """Any record is an event, or an error with the unchanged record."""
    before = copy.deepcopy(record)
    verdict = sniff(record.headers)
    result = decode(record, lenient=lenient)
    assert result.record is record
    assert record == before
    if isinstance(result, Undecodable):
        assert isinstance(result.error, DecodeError)
        assert result.error.record is record
        assert result.error.reason
        assert not isinstance(result.error, BrokenEvent) or result.error.problems
        assert str(pickle.loads(pickle.dumps(result.error))) == str(result.error)
    else:
        _access_all(result.event)
        assert lenient or not result.tolerated
        assert lenient or verdict.mode in {"binary", "structured"}


def _access_all(event: Event) -> None:
    """Access all parts of an event; its data may raise DataError only."""
    assert all(name in event for name in ("id", "source", "type", "specversion"))
    assert dict(event.attributes).keys() == set(event)
    assert (event.time is None) == ("time" not in event)
    assert event == pickle.loads(pickle.dumps(event))
    assert hash(event) == hash(copy.deepcopy(event))
    assert repr(event)
    with suppress(DataError):
        assert event.data is event.data


@make.examples(100)
@given(make.hostile_records(), st.sampled_from(["binary", *names()]))
def test_writing_raises_only_encode_errors(record: Record, way: str) -> None:
    """An event that was read can be written in any mode and format, or raises EncodeError."""
    result = decode(record, lenient=True)
    assume(isinstance(result, Decoded))
    assert isinstance(result, Decoded)
    with suppress(EncodeError):
        if way == "binary":
            to_record(result.event)
        else:
            to_record(result.event, mode="structured", format=way)


OTHER = b'{"specversion":"1.0","id":"OTHER","source":"/o","type":"o","data":1}'
_EVENTS = [
    Event(id="1", source="/", type="t"),
    Event(id="1", source="/", type="t", subject="s", partitionkey="p", datacontenttype="a/b", data=b"\xff"),
    Event(id="1", source="/", type="t", data={"a": 1}),
]
_RECORDS = [
    *(
        to_record(event, mode="structured", format=form)
        for event in _EVENTS
        for form in ("json", "avro", "protobuf")
    ),
    *(
        Record(headers=to_record(event).headers, value=value)
        for event in _EVENTS
        for value in (OTHER, b"x", None)
    ),
]
_KINDS = [name.encode() for name in (*make.FORMATS, "application/cloudevents", "text/plain", "a/b")]
_SIMILAR_HEADERS = st.one_of(
    st.tuples(
        st.sampled_from(["Content-Type", "CONTENT-TYPE", "ce-datacontenttype", "CE_DATACONTENTTYPE"]),
        st.sampled_from([None, b"", b"\xff", *_KINDS]),
    ),
    st.tuples(
        st.sampled_from(
            ["ce-subject", "CE_ID", "cloudEvents:time", "ce-sampledrate", "ce-tracestate", "ce-my_ext"]
        ),
        st.sampled_from([None, b"", b"\xff", b"1", b"2018-04-05T17:31:00Z"]),
    ),
    st.tuples(
        st.sampled_from(["ce_id", "ce_subject", "ce_myExt", "content-type"]),
        st.sampled_from([None, None, b"1"]),
    ),
    st.tuples(st.sampled_from(["foo", "traceparent", "", "ce_", "é"]), st.sampled_from([None, b"", b"\xff"])),
)


@st.composite
def almost_valid_records(draw: st.DrawFn) -> Record:
    """Return valid records with headers that look like those of the event."""
    record = draw(st.sampled_from(_RECORDS))
    headers = draw(st.permutations([*record.headers, *draw(st.lists(_SIMILAR_HEADERS, max_size=4))]))
    return Record(headers=headers, value=record.value)


@make.examples(400)
@given(almost_valid_records())
def test_strict_and_lenient_events_agree(record: Record) -> None:
    """Similar headers may add attributes to a binary event; the rest is equal."""
    strict, lenient = decode(record), decode(record, lenient=True)
    assume(isinstance(strict, Decoded))
    assert isinstance(strict, Decoded)
    assert isinstance(lenient, Decoded), lenient
    one, other = strict.event, lenient.event
    assert (one.payload, one.kind) == (other.payload, other.kind)
    assert {name: other.attributes.get(name) for name in one} == dict(one.attributes)
    more = other.attributes.keys() - one.attributes.keys()
    assert more <= (
        {_possible_name(name) for name, _ in record.headers} if raw_parts(one)[1] is None else set()
    )
    assert find_problems(raw_parts(other)[0]) == []


def _possible_name(header: str) -> str:
    """Return the attribute that a misspelled header might mean."""
    folded = header.lower()
    name = re.sub("^(ce[-_]|cloudevents[:_])", "", folded)
    return "datacontenttype" if folded == "content-type" else re.sub("[-_.]", "", name)


@make.examples(100)
@given(make.hostile_records())
def test_lenient_reading_accepts_valid_records(record: Record) -> None:
    """Without similar headers, lenient reading returns the event of strict reading."""
    strict = decode(record)
    lenient = decode(record, lenient=True)
    if isinstance(lenient, Decoded) and isinstance(strict, Undecodable):
        assert lenient.tolerated
    if isinstance(strict, Decoded) and not any(_looks_like_an_events(name) for name, _ in record.headers):
        assert isinstance(lenient, Decoded)
        assert lenient.event == strict.event
        assert not lenient.tolerated


def _looks_like_an_events(name: str) -> bool:
    folded = name.lower()
    return folded.startswith("ce-") or (name != folded and _is_taken(name))


@make.examples(100)
@given(make.hostile_records())
def test_messages_have_no_data(record: Record) -> None:
    """Errors, events and results have no payload in their texts."""
    secret = b"S3CRET-payload"
    marked = Record(
        key=record.key, value=b'{"data":"%b' % secret + (record.value or b""), headers=record.headers
    )
    assert secret.decode() not in repr(decode(marked))
    assert secret.decode() not in str(getattr(decode(marked), "error", ""))


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize(
    "before",
    [
        b',"data":',
        b', "data":',
        b',"\\u0069d2":1, "data":',
        b', "x":',
        b', "id2":[], "x":',
        b',"data_base64":',
        b',"datacontenttype":"text/plain","data":',
    ],
)
@pytest.mark.parametrize("lenient", [pytest.param(False, marks=pytest.mark.release), True])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.release), 13])
def test_deep_json_is_read_or_refused(
    opening: bytes, closing: bytes, before: bytes, step: int, *, lenient: bool
) -> None:
    """JSON of any depth is read or refused; an event of it can be accessed and written."""
    for depth in (63, 200, 500, *range(850, 1010, step), 3000, 100_000):
        value = _HEAD + before + make.deep(opening, depth, closing) + b"}"
        result = decode(Record(value=value, headers=[JSON]), lenient=lenient)
        if isinstance(result, Decoded):
            _look_at_data(result.event)
            for format_name in names():
                _write(result.event.replace(subject="s"), format_name)


def _look_at_data(event: Event) -> None:
    with suppress(DataError):
        assert event.data is event.data


def _write(event: Event, format_name: str) -> None:
    with suppress(EncodeError):
        assert to_record(event, mode="structured", format=format_name).value
