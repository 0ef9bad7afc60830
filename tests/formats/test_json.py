"""The JSON event format: exact texts of data, all types, and invalid values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cloudevents_kafka import DataError, Event, Record, from_record, to_record
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.formats.json import JsonFormat
from tests.support import strategies as make
from tests.support.cases import each

HEAD = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'
JSON = JsonFormat()
B, J, T = DataKind.BYTES, DataKind.JSON, DataKind.TEXT


def least(**more: Any) -> Event:
    return Event(**{"id": "1", "source": "/", "type": "t", **more})


@each(
    ("event", "members"),
    [
        (least(), b""),
        (
            least(x=True, y=-1, z=b"Ma", s='q"\\é😀'),
            b',"x":true,"y":-1,"z":"TWE=","s":"q\\"\\\\\xc3\xa9\xf0\x9f\x98\x80"',
        ),
        (least(x=False, y=0, z=b"", s=""), b',"x":false,"y":0,"z":"","s":""'),
        (least(data=b"\x01\x02"), b',"data_base64":"AQI="'),
        (least(data=b""), b',"data_base64":""'),
        (least(data=1.5), b',"data":1.5'),
        (least(data="x"), b',"data":"x"'),
        (
            least(datacontenttype="text/json", data=b' {"a" : 1.0}'),
            b',"datacontenttype":"text/json","data": {"a" : 1.0}',
        ),
        (least(datacontenttype="text/json", data=b"null"), b',"datacontenttype":"text/json","data":null'),
        (
            least(datacontenttype="text/json", data=b"{"),
            b',"datacontenttype":"text/json","data_base64":"ew=="',
        ),
        (
            least(datacontenttype="text/json", data=b'"\xff"'),
            b',"datacontenttype":"text/json","data_base64":"Iv8i"',
        ),
        (least(datacontenttype="text/json", data=b""), b',"datacontenttype":"text/json","data_base64":""'),
        (least(datacontenttype="text/xml", data="<a/>"), b',"datacontenttype":"text/xml","data":"<a/>"'),
        (
            least(datacontenttype="text/xml", data=b"<a/>"),
            b',"datacontenttype":"text/xml","data_base64":"PGEvPg=="',
        ),
        (
            least(datacontenttype="text/x;charset=latin-1", data="\xe9"),
            b',"datacontenttype":"text/x;charset=latin-1","data":"\xc3\xa9"',
        ),
        (
            least(datacontenttype="text/json;charset=utf-16le", data=["\xe9"]),
            b',"datacontenttype":"text/json;charset=utf-16le","data":["\xc3\xa9"]',
        ),
        (
            least(datacontenttype="text/json;charset=utf-16le", data=b'"\x00'),
            b',"datacontenttype":"text/json;charset=utf-16le","data_base64":"IgA="',
        ),
        (
            least(datacontenttype="text/json;charset=odd", data=b"1"),
            b',"datacontenttype":"text/json;charset=odd","data_base64":"MQ=="',
        ),
    ],
    ids=lambda value: repr(value)[:70],
)
def test_written(event: Event, members: bytes) -> None:
    """Attributes have JSON's types; JSON data is its exact text, text is a string, bytes are base64."""
    value = JSON.encode(event)
    assert value == HEAD + members + b"}"
    again = JSON.decode(value)
    assert again.payload == (event.payload or b"").strip() or event.payload is None
    assert {n: again.text(n) for n in again} == {n: event.text(n) for n in event}


@each(
    ("content_type", "data", "member"),
    [
        ("text/plain", b"\xc3\xa9", b'"data":"\xc3\xa9"'),
        ("text/plain; charset=latin-1", b"\xe9", b'"data":"\xc3\xa9"'),
        ("application/xml", b"<a/>", b'"data":"<a/>"'),
        ("image/svg+xml", b"<a/>", b'"data":"<a/>"'),
        ("application/yaml; charset=utf-8", b"a: 1", b'"data":"a: 1"'),
        ("application/octet-stream", b"abc", b'"data_base64":"YWJj"'),
        ("application/x-protobuf", b"\x08\x01", b'"data_base64":"CAE="'),
        ("application/xml-dtd", b"abc", b'"data_base64":"YWJj"'),
        ("text/plain", b"\xff", b'"data_base64":"/w=="'),
        ("text/plain; charset=odd", b"x", b'"data_base64":"eA=="'),
        ("application/json", b"{", b'"data_base64":"ew=="'),
        ("text/plain", b'"\n', b'"data":"\\"\\n"'),
    ],
)
def test_bytes_as_text(content_type: str, data: bytes, member: bytes) -> None:
    """With text_data, bytes that are text in their charset are a string, and read as the same payload."""
    event = least(datacontenttype=content_type, data=data)
    value = JsonFormat(text_data=True).encode(event)
    assert value.endswith(member + b"}")
    assert JSON.decode(value).payload == data
    assert b"data_base64" in JSON.encode(event)


@each(
    ("members", "payload", "kind", "data"),
    [
        (b"", None, B, None),
        (b',"data":null', b"null", J, None),
        (b',"data":"{\\"a\\":1}"', b'"{\\"a\\":1}"', J, '{"a":1}'),
        (b', "data" : {"a" : 1.0, "a":2e0 } ', b'{"a" : 1.0, "a":2e0 }', J, {"a": 2.0}),
        (b',"data":"\\u00e9"', b'"\\u00e9"', J, "é"),
        (b',"data":' + b"9" * 5000, b"9" * 5000, J, Ellipsis),
        (b',"data_base64":"eyAieHl6IjogMTIzIH0="', b'{ "xyz": 123 }', B, b'{ "xyz": 123 }'),
        (b',"data_base64":"\\u0054Q=="', b"M", B, b"M"),
        (b',"data_base64":null', None, B, None),
        (b',"data":null,"data_base64":"TQ=="', b"M", B, b"M"),
        (b',"data":1,"data_base64":null', b"1", J, 1),
        (b',"datacontenttype":"text/xml","data":"<\\u0061/>"', b"<a/>", T, "<a/>"),
        (b',"datacontenttype":"text/x;charset=utf-16be","data":"a"', b"\x00a", T, "a"),
        (b',"datacontenttype":"text/json;charset=utf-16be","data":"a"', b'\x00"\x00a\x00"', J, "a"),
        (b',"datacontenttype":"text/json","data_base64":"MQ=="', b"1", B, 1),
        (b',"datacontenttype":"text/plain"', None, B, None),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_read(members: bytes, payload: bytes | None, kind: DataKind, data: Any) -> None:
    """The payload is the exact text of the member, the string in its charset, or the bytes."""
    for value in (HEAD + members + b"}", b' {"type":"t"' + members + b"," + HEAD[1:-11] + b"} "):
        event = JSON.decode(value)
        assert (event.payload, event.kind) == (payload, kind)
        if data is not Ellipsis:
            assert event.data == data
        assert JSON.encode(event) == value
        assert JSON.decode(JSON.encode(event.replace(subject="s"))).payload == payload


@each(
    ("members", "value"),
    [
        (b',"x":10', 10),
        (b',"x":-0', 0),
        (b',"x":-2147483648', -(2**31)),
        (b',"x":true', True),
        (b',"x":"TWE="', "TWE="),
        (b',"dssematerial":"TWE="', b"Ma"),
        (b',"sampledrate":"5"', 5),
        (b',"x":"\\ud83d\\ude00"', "😀"),
        (b',"\\u0078":"v"', "v"),
        (b',"x":null', None),
    ],
)
def test_attributes_read(members: bytes, value: Any) -> None:
    """Attributes have the types of JSON; null is absent."""
    event = JSON.decode(HEAD + members + b"}")
    name = next((n for n in event.extensions), "x")
    assert event.get(name) == value
    assert type(event.get(name)) is type(value)


ODD_JSON = {
    "lone surrogate": (b'{"t":"cut \\ud83d"}', r"escape before byte 16 .*a lone surrogate"),
    "lone second surrogate": (b'["\\uDE00", 1.50 ]', r"escape before byte 8 .*a lone surrogate"),
    "deep arrays": (make.deep(b"[", 100_000, b"]"), "nested too deep for the parser"),
    "deep objects": (make.deep(b'{"a":', 50_000, b"}"), "nested too deep for the parser"),
}


@each("place", ["last", "first", "in the middle"])
@each("lenient", [False, True])
@each(("data", "said"), ODD_JSON.values(), ids=ODD_JSON)
def test_json_data_that_parsers_refuse(data: bytes, said: str, place: str, *, lenient: bool) -> None:
    """The payload is exact; only access to the value raises an error."""
    members = {
        "last": HEAD + b',"subject":"s","data":' + data + b"}",
        "first": b'{"data" : ' + data + b"," + HEAD[1:] + b',"subject":"s"}',
        "in the middle": HEAD + b',"data":' + data + b',"subject":"s"}',
    }
    headers = [("content-type", b"application/cloudevents+json")]
    event = from_record(Record(value=members[place], headers=headers), lenient=lenient)
    assert (event.payload, event.kind, event.subject) == (data, DataKind.JSON, "s")
    with pytest.raises(DataError, match=said):
        _ = event.data


@each(("data", "said"), ODD_JSON.values(), ids=ODD_JSON)
def test_json_data_that_parsers_refuse_in_both_modes(data: bytes, said: str) -> None:
    """Such data is written as JSON, not as base64."""
    event = JSON.decode(HEAD + b',"data":' + data + b"}").replace(subject="another")
    binary = to_record(event)
    assert binary.value == data
    for again in (event, from_record(binary)):
        written = JSON.encode(again)
        assert written.endswith(b',"data":' + data + b"}")
        assert JSON.decode(written).payload == data
    with pytest.raises(DataError, match=said):
        _ = from_record(binary).data


def test_a_raw_value_that_parsers_refuse_is_written() -> None:
    """msgspec.Raw can contain such JSON."""
    for data, _ in ODD_JSON.values():
        assert Event(id="1", source="/", type="t", data=msgspec.Raw(data)).payload == data
