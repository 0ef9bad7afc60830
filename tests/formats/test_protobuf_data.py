"""The Protobuf event format: bytes, text, JSON and messages as data."""

from __future__ import annotations

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor_pb2 import UninterpretedOption
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from cloudevents_kafka import EncodeError, InvalidEvent, Record, from_record, to_record
from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.formats.json import JsonFormat
from tests.support.cases import each

from .official import MIN, PROTOBUF, CloudEvent, bytes_field, entry, least, problems

B, J, T, P = DataKind.BYTES, DataKind.JSON, DataKind.TEXT, DataKind.PROTO
ANY = bytes.fromhex("0a05782e792f5a12020805")  # the type URL x.y/Z, and two bytes


def with_type(content_type: str | None, data: bytes) -> bytes:
    return (
        MIN
        + (entry("datacontenttype", bytes_field(3, content_type.encode())) if content_type else b"")
        + data
    )


@each(
    ("content_type", "field", "raw", "payload", "kind"),
    [
        (None, 6, b"x", b"x", B),
        (None, 7, b"x", b'"x"', J),
        (None, 7, b'{"a":1}', b'"{\\"a\\":1}"', J),
        ("application/json", 7, b' {"a": 1.0}', b' {"a": 1.0}', J),
        ("Application/vnd.a+JSON; charset=utf-8", 7, b"1e2", b"1e2", J),
        ("application/json", 7, b"hi", b"hi", B),
        ("application/json", 7, b"", b"", B),
        ("application/json", 6, b'{"a":1}', b'{"a":1}', B),
        ("application/json;charset=utf-16be", 7, b"1", b"\x001", J),
        ("application/json;charset=utf-16be", 7, b"hi", b"\x00h\x00i", B),
        ("text/plain", 7, b"\xc3\xa9", b"\xc3\xa9", T),
        ("text/plain;charset=latin-1", 7, b"\xc3\xa9", b"\xe9", T),
        ("application/octet-stream", 7, b"x", b"x", T),
        ("text/plain", 6, b"\xff", b"\xff", B),
        ("application/protobuf", 6, b"\x08\x05", b"\x08\x05", B),
        ("application/protobuf", 8, ANY, ANY, P),
        ("text/plain", 8, b"", b"", P),
        (None, 8, ANY, ANY, P),
    ],
)
def test_data(content_type: str | None, field: int, raw: bytes, payload: bytes, kind: DataKind) -> None:
    """The field is the kind of data, the content type describes text; it is written in the same field."""
    value = with_type(content_type, bytes_field(field, raw))
    event = PROTOBUF.decode(value)
    assert (event.payload, event.kind) == (payload, kind)
    written = PROTOBUF.encode(event.replace())
    if kind is B and field == 7:
        assert CloudEvent.FromString(written).binary_data == payload
    else:
        assert written == CloudEvent.FromString(value).SerializeToString(deterministic=True)


@each(
    ("content_type", "data"),
    [
        (None, bytes_field(7, b"\xff")),
        (None, bytes_field(7, b"\xed\xa0\x80")),
        ("text/plain;charset=latin-1", bytes_field(7, "€".encode())),
        ("text/plain;charset=odd", bytes_field(7, b"x")),
        ("application/json;charset=odd", bytes_field(7, b"1")),
        (None, bytes_field(8, b"\x0a\x05")),
        (None, bytes_field(8, b"\x0a\x01\xff")),
        (None, bytes_field(8, b"hello")),
    ],
)
def test_data_that_does_not_match_its_field(content_type: str | None, data: bytes) -> None:
    """Text must be text in its charset, and a message an Any."""
    assert problems(with_type(content_type, data)) == [("data", "P-03")]


def test_json_gets_its_content_type() -> None:
    """JSON has an explicit content type, except a string, which is text (R-10)."""
    message = CloudEvent.FromString(PROTOBUF.encode(least(data={"a": 1})))
    assert message.attributes["datacontenttype"].ce_string == "application/json"
    assert message.text_data == '{"a":1}'
    assert "datacontenttype" not in CloudEvent.FromString(PROTOBUF.encode(least(data="x"))).attributes


@pytest.mark.parametrize("text", [b'"\\u00e9"', b'"a\\/b"'])
def test_a_json_string_keeps_its_escapes(text: bytes) -> None:
    """A string with unusual escapes stays JSON."""
    event = JsonFormat().decode(
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":' + text + b"}"
    )
    again = PROTOBUF.decode(PROTOBUF.encode(event))
    assert (again.payload, again.datacontenttype) == (text, "application/json")


def test_protobuf_messages_are_data() -> None:
    """A message is packed in an Any, and an Any is itself; both are read as equal."""
    moment, packed = Timestamp(seconds=5), AnyMessage()
    packed.Pack(moment)
    for data in (moment, packed):
        event = least(datacontenttype="application/protobuf", data=data)
        assert event.kind is P
        message = CloudEvent.FromString(PROTOBUF.encode(event))
        assert message.proto_data.type_url == "type.googleapis.com/google.protobuf.Timestamp"
        again = PROTOBUF.decode(PROTOBUF.encode(event))
        assert again == event
        found = Timestamp()
        assert AnyMessage.FromString(again.data).Unpack(found)
        assert found == moment
        assert again.replace(subject="s").kind is P


def test_an_any_in_other_formats_is_bytes() -> None:
    """The payload is the serialized Any, as in the Java SDK."""
    event = PROTOBUF.decode(MIN + bytes_field(8, ANY))
    ways: list[tuple[ContentMode, str | None]] = [
        ("binary", None),
        ("structured", "json"),
        ("structured", "avro"),
    ]
    for mode, form in ways:
        record = to_record(event, mode=mode, format=form)
        assert from_record(record).payload == from_record(record).data == ANY


def test_an_incomplete_message_is_refused() -> None:
    """A message without a required field cannot be serialized."""
    with pytest.raises(InvalidEvent, match="data: a NamePart cannot be serialized"):
        least(data=UninterpretedOption.NamePart())


def test_equal_messages_are_equal_data() -> None:
    """The entries of a map have one order in bytes, however the message was made."""
    names = [f"name{number}" for number in range(50)]
    payloads = set()
    for order in (names, names[::-1]):
        data = Struct()
        for name in order:
            data[name] = name
        payloads.add(least(datacontenttype="application/protobuf", data=data).payload)
    assert len(payloads) == 1


def test_data_in_an_unknown_charset_is_not_written() -> None:
    """Lenient reading keeps JSON data with such a content type, but not text_data, so it is refused."""
    head = b'{"specversion":"1.0","id":"1","source":"/","type":"t","data":"x","datacontenttype":"text/plain'
    unknown = from_record(Record(value=head + b';charset=x-none"}'), lenient=True)
    with pytest.raises(EncodeError, match="charset must be the name of a text codec of Python, got 'x-none'"):
        PROTOBUF.encode(unknown)


def test_json_that_should_be_a_text_becomes_one() -> None:
    """JSON that lenient reading keeps under a type of text is that text, in each charset."""
    head = (
        '{"specversion":"1.0","id":"1","source":"/","type":"t","data":{"é":1},"datacontenttype":"text/plain'
    )
    for charset in ("utf-8", "latin-1", "utf-16be"):
        event = from_record(Record(value=f'{head};charset={charset}"}}'.encode()), lenient=True)
        assert PROTOBUF.decode(PROTOBUF.encode(event)).data == '{"é":1}'
