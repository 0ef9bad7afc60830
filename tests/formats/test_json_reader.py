"""The reader of valid JSON events returns what the complete decoder returns, in each of its states."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka import Event, InvalidEvent
from cloudevents_kafka.attributes.extension_types import parse_values
from cloudevents_kafka.event import raw_parts
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.formats.json_decoder import Envelope, split_envelope
from cloudevents_kafka.formats.json_reader import JsonReader
from tests.support import strategies as make
from tests.support.cases import each
from tests.support.interleaving import in_another_thread, instructions, interrupted

HEAD = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'
VALUES = [
    HEAD + b"}",
    HEAD + b',"data":{"data":"x","type":"u"}}',
    HEAD.replace(b":", b" : ").replace(b",", b" ,\n") + b' , "data" : [ 1 ] , "subject" : "\xc3\xa9" } ',
    b'{"data":1,' + HEAD[1:] + b',"a":"\\"data\\":","b":"data","c":true,"d":null,"e":-5}',
    HEAD + b',"data_base64":"AA==","data":null,"datacontenttype":"x/y"}',
    HEAD + b',"data":"text","datacontenttype":"text/plain","sampledrate":5}',
]
PIECES = st.sampled_from(
    [
        *(b'"data"', b'"data":', b'"', b'\\"', b"\\", b"\\u0064", b",", b":", b"{", b"}", b" ", b"[", b"]"),
        *(b"null", b"true", b"5", b"1.0", b"2147483648", b"\x7f", b"\xc3\xa9", b"\xff", b"\\ud800"),
        *(
            b'"id":"2",',
            b'"data_base64":"AA==",',
            b'"d\\u0061ta":1,',
            b'"sequence":"1",',
            b'"sampledrate":0,',
        ),
    ]
)
EARLIER: list[list[bytes]] = [
    [],
    [HEAD + b',"subject":5,"data_base64":null,"time":null}'],  # which need not be events
    [HEAD + b',"c":"x","e":"x","sampledrate":"x","x\\"data":"5"}'],
    [*VALUES, HEAD + b',"sequence":true,"id2":5}'],
    [HEAD + b',"n%d":"x"}' % number for number in range(200)],
]


def decode(value: bytes) -> Any:
    """Return the parts of the event that the complete decoder returns, or None."""
    try:
        return parts(JsonFormat._decode(JsonFormat(), value))
    except InvalidEvent:
        return None


def parts(event: Event) -> Any:
    attributes, encoded = raw_parts(event)
    return list(attributes.items()), [*map(type, attributes.values())], event.payload, event.kind, encoded


def read(value: bytes, earlier: list[bytes]) -> Event | Envelope | None:
    """Return what a reader returns that has read other records before."""
    reader = JsonReader()
    for other in earlier:
        reader.read(other)
    return reader.read(value)


def members(envelope: Envelope) -> Any:
    """Return the members of an object, with the values of their types, and the JSON of its data."""
    attributes = parse_values(envelope.attributes)
    return [*attributes.items()], [*map(type, attributes.values())], envelope.data, envelope.encoded


@each("value", VALUES)
def test_valid_events_are_read_after_others(value: bytes) -> None:
    """A valid event is read after records of any kind, and again."""
    for earlier in [*EARLIER, [value], [value, value]]:
        event = read(value, earlier)
        assert isinstance(event, Event)
        assert parts(event) == decode(value)


@each(
    "value",
    [
        *VALUES,
        HEAD + b',"data":{"a":"\\"b"}}',
        HEAD + b',"data":7}',
        HEAD + b',"data":"x","datacontenttype":"text/plain"}',
        HEAD + b',\n  "data": {"a": "\\"b"}\n}',
        HEAD + b',\n  "data": 7\n}',
        HEAD + b',"datacontenttype":"text/plain",\n  "data": "x"\n}',
        b'{"data": {"a":"b"}, ' + HEAD[1:] + b',"c":"d"}',
        HEAD + b',"c":"a \\"quoted\\" word","data":[]}',
        HEAD + b',"c":"gr\xc3\xbc\xc3\x9fe","data":["gr\xc3\xbc\xc3\x9fe"]}',
    ],
)
def test_known_members_are_read_in_one_pass(monkeypatch: pytest.MonkeyPatch, value: bytes) -> None:
    """A record with the names of an earlier one is not searched for unknown names, wherever its data is."""
    reader = JsonReader()
    reader.read(value)
    with monkeypatch.context() as patch:
        patch.delattr(JsonReader, "_read_unknown")
        patch.delattr(JsonReader, "_know")
        event = reader.read(value)
    assert isinstance(event, Event)
    assert parts(event) == decode(value)


@st.composite
def changed_values(draw: st.DrawFn) -> bytes:
    """Return a value with some pieces inserted or removed."""
    value = bytearray(draw(st.sampled_from(VALUES)))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(value)))
        value[start : start + draw(st.integers(0, 4))] = draw(PIECES | st.binary(max_size=2))
    return bytes(value)


@make.examples(1000)
@given(changed_values(), st.lists(st.sampled_from(VALUES) | changed_values(), max_size=3))
@example(HEAD + b'}"data":', [])
@example(HEAD + b',"x\\"data":5}', [])
@example(HEAD + b',"a":"\\u0022\\u0022","a":""}', [HEAD + b',"a":""}'])
@example(HEAD + b',"a":"\\"b","data":"b","a":""}', [HEAD + b',"a":""}'])
@example(HEAD + b',"data":"b","a":"\\"b"}', [HEAD + b',"a":""}'])
@example(HEAD + b',"data":2,"a":"\\u0022"}', [HEAD + b',"a":""}'])
def test_no_other_object_is_read(value: bytes, earlier: list[bytes]) -> None:
    """The reader accepts no value that the complete decoder refuses, and both find the same members."""
    found = read(value, earlier)
    if isinstance(found, Event):
        assert parts(found) == decode(value)
    elif found is not None:
        assert decode(value) is None
        assert members(found) == members(split_envelope(value))
        assert split_envelope(value).problems == []


def test_the_names_of_events_are_remembered_within_bounds() -> None:
    """Events of many names are read, and the reader does not grow with them."""
    reader = JsonReader()
    for number in range(1000):
        assert isinstance(reader.read(HEAD + b',"n%d":"x"}' % number), Event)
    assert len(reader._expected.types) <= 100
    assert isinstance(reader.read(HEAD + b',"%b":"x"}' % (b"n" * 1000)), Event)
    assert max(map(len, reader._expected.types)) < 100


SHARED = [
    HEAD + b',"tries":"x"}',
    HEAD + b',"tries":3,"subject":"\xc3\xa9"}',
    HEAD + b',"tries":3,"tries":4,"subject":"\xc3\xa9"}',
    HEAD + b',"other":true,"more":"x"}',
]


SAMPLED = [*SHARED[:2], *(pytest.param(value, marks=pytest.mark.release) for value in SHARED[2:])]


class Stopped(Exception):
    """What a signal handler raises."""


def stop() -> None:
    raise Stopped


@pytest.mark.release  # `test_a_signal_handler_may_raise_at_any_moment` is its sample
@pytest.mark.parametrize(
    "other",
    [SHARED[1], *(pytest.param(other, marks=pytest.mark.release) for other in SHARED if other != SHARED[1])],
)
@pytest.mark.parametrize("value", SAMPLED)
def test_another_thread_may_read_at_any_moment(value: bytes, other: bytes) -> None:
    """A record is read as it is alone, whichever record another thread reads between any two instructions."""
    expected = decode(value), decode(other)
    for number in instructions():
        reader, found = JsonReader(), []
        reader.read(SHARED[0])
        read_other = in_another_thread(lambda reader=reader: reader.read(other))
        reached = interrupted(
            lambda reader=reader, found=found: found.append(reader.read(value)), number, read_other
        )
        found += [reader.read(value), reader.read(other)]
        parts_of = [parts(event) if isinstance(event, Event) else None for event in found]
        assert parts_of == [expected[0], *expected], number
        if not reached:
            break


@pytest.mark.parametrize("value", SAMPLED)
def test_a_signal_handler_may_raise_at_any_moment(value: bytes) -> None:
    """A reader that an exception has interrupted reads all records as before."""
    expected = [decode(other) for other in SHARED]
    for number in instructions():
        reader = JsonReader()
        reader.read(SHARED[0])
        try:
            interrupted(lambda reader=reader: reader.read(value), number, stop)
            break
        except Stopped:
            found = [reader.read(other) for other in SHARED]
        parts_of = [parts(event) if isinstance(event, Event) else None for event in found]
        assert parts_of == expected, number
