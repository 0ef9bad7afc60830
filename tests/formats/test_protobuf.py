"""The Protobuf event format: bytes of the official message, and rules for attributes, times and data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from cloudevents_kafka import (
    Decoded,
    EncodeError,
    Event,
    InvalidEvent,
    Record,
    Undecodable,
    decode,
    from_record,
    to_record,
)
from cloudevents_kafka.attributes.extension_types import register_extension
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import LeftOut
from cloudevents_kafka.primitives import varint
from tests.support import strategies as make
from tests.support.cases import each

from .official import MIN, PROTOBUF, CloudEvent, bytes_field, entry, least, problems

B, J, T, P = DataKind.BYTES, DataKind.JSON, DataKind.TEXT, DataKind.PROTO


for _name, _kind in (
    ("protourl", AttributeType.URI),
    ("protoref", AttributeType.URI_REFERENCE),
    ("prototime", AttributeType.TIMESTAMP),
    ("protobool", AttributeType.BOOLEAN),
    ("protobinary", AttributeType.BINARY),
):
    register_extension(_name, _kind)


# --- bytes -----------------------------------------------------------------------

VECTORS = [
    (least(), ""),
    (least(k=True), "2a070a016b12020801"),
    (least(k=False), "2a070a016b12020800"),
    (least(k=10), "2a070a016b1202100a"),
    (least(k=0), "2a070a016b12021000"),
    (least(k=-1), "2a100a016b120b10ffffffffffffffffff01"),
    (least(k=-(2**31)), "2a100a016b120b1080808080f8ffffffff01"),
    (least(k=2**31 - 1), "2a0b0a016b120610ffffffff07"),
    (least(k="x"), "2a080a016b12031a0178"),
    (least(k=""), "2a070a016b12021a00"),
    (least(k=b"Ma"), "2a090a016b120422024d61"),
    (least(k=b""), "2a070a016b12022200"),
    (least(protourl="u:"), "2a100a0870726f746f75726c12042a02753a"),
    (least(protoref="/r"), "2a100a0870726f746f72656612043202" + "2f72"),
    (least(protobool=False), "2a0f0a0970726f746f626f6f6c12020800"),
    (least(time="2018-04-05T17:31:00Z"), "2a100a0474696d6512083a0608d4ba99d605"),
    (least(time="1970-01-01T00:00:00Z"), "2a0a0a0474696d6512023a00"),
    (least(data=b"\x01\x02"), "32020102"),
    (least(data=b""), "3200"),
    (least(data=""), "3a00"),
    (least(data="Simple text"), "3a0b53696d706c652074657874"),
    (least(data="é"), "3a02c3a9"),
]


@each(("event", "rest"), VECTORS, ids=lambda value: repr(value)[:60])
def test_bytes(event: Event, rest: str) -> None:
    """Required attributes are fields, others are in the map by type, data by kind, in both directions."""
    value = MIN + bytes.fromhex(rest)
    official = CloudEvent.FromString(value)
    assert official.SerializeToString(deterministic=True) == PROTOBUF.encode(event)
    again = PROTOBUF.decode(value)
    assert (again, again.data, again.kind) == (event, event.data, event.kind)
    assert PROTOBUF.encode(again) is value
    assert CloudEvent.FromString(PROTOBUF.encode(again.replace())) == official


def test_the_golden_event() -> None:
    """The smallest event of the published format tests has these bytes."""
    value = bytes.fromhex(
        "0a076d696e696d616c121668747470733a2f2f636c6f75646576656e74732e696f1a03312e302213696f2e636c6f7564"
        "6576656e74732e74657374"
    )
    event = Event(id="minimal", source="https://cloudevents.io", type="io.cloudevents.test")
    assert PROTOBUF.encode(event) == value
    assert PROTOBUF.decode(value) == event


@given(make.events())
def test_generated_code_reads_written_values(event: Event) -> None:
    """Each attribute is in the field of its type, and data in its own, as officially declared."""
    written = make.written(PROTOBUF, event)
    message = CloudEvent.FromString(written)
    assert message.SerializeToString(deterministic=True) == written
    assert (message.id, message.source, message.type) == (event.id, event.source, event.type)
    assert message.spec_version == "1.0"
    for name in message.attributes:
        assert message.attributes[name].WhichOneof("attr") == field_of(event, name)
    fields = {B: "binary_data", J: "text_data", T: "text_data", P: "proto_data"}
    assert message.WhichOneof("data") == (None if event.payload is None else fields[event.kind])


def field_of(event: Event, name: str) -> str:
    fixed = {"dataschema": "ce_uri", "time": "ce_timestamp", "expirytime": "ce_timestamp"}
    if name == "dataref":
        return "ce_uri_ref"
    types = {bool: "ce_boolean", int: "ce_integer", bytes: "ce_bytes"}
    return fixed.get(name) or types.get(type(event.get(name)), "ce_string")


@given(make.events())
def test_round_trip(event: Event) -> None:
    """A written event is read with equal attributes, data and kind; only JSON may get a content type."""
    written = make.written(PROTOBUF, event)
    again = PROTOBUF.decode(written)
    if event.datacontenttype is None and again.datacontenttype is not None:
        assert (event.kind, again.datacontenttype) == (J, "application/json")
        event = event.replace(datacontenttype="application/json")
        again = again.replace(data=again.payload)
    assert again == event
    assert again.kind is event.kind
    assert PROTOBUF.decode(PROTOBUF.encode(again.replace())) == again


# --- attributes ------------------------------------------------------------------


def official(**fields: Any) -> Any:
    """Return a message of the official declaration; attributes are pairs of field and value."""
    message = CloudEvent(id="1", source="/s", spec_version="1.0", type="t")
    for name, (field, value) in fields.items():
        if field == "ce_timestamp":
            getattr(message.attributes[name], field).FromJsonString(value)
        elif field:
            setattr(message.attributes[name], field, value)
        else:
            message.attributes[name].SetInParent()
    return message


@each(
    ("name", "field", "value", "expected"),
    [
        ("datacontenttype", "ce_string", "text/plain", "text/plain"),
        ("dataschema", "ce_uri", "https://x/", "https://x/"),
        ("subject", "ce_string", "s", "s"),
        ("time", "ce_timestamp", "2018-04-05T17:31:00.000000010Z", "2018-04-05T17:31:00.00000001Z"),
        ("x", "ce_uri", "u:", "u:"),
        ("x", "ce_uri_ref", "", ""),
        ("x", "ce_timestamp", "1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.5Z"),
        ("sampledrate", "ce_integer", 5, "5"),
        ("sampledrate", "ce_string", "5", "5"),
        ("protobool", "ce_string", "true", "true"),
        ("protobinary", "ce_string", "TWE=", "TWE="),
        ("prototime", "ce_string", "2018-04-05T17:31:00+01:00", "2018-04-05T17:31:00+01:00"),
        ("protourl", "ce_string", "u:", "u:"),
        ("dataref", "ce_uri_ref", "/r", "/r"),
        ("dataref", "ce_uri", "u:/r", "u:/r"),
        ("dataref", "ce_string", "/r", "/r"),
        ("partitionkey", "ce_string", "k", "k"),
    ],
)
def test_p_02_an_allowed_field(name: str, field: str, value: Any, expected: str) -> None:
    """Core attributes have one field; a known extension its own, or ce_string with its canonical text."""
    event = PROTOBUF.decode(official(**{name: (field, value)}).SerializeToString())
    assert event.text(name) == expected
    assert type(event[name]) is type(Event(**{"id": "1", "source": "/", "type": "t", name: expected})[name])


WRONG_FIELDS = {
    "datacontenttype": ("ce_integer", 5),
    "dataschema": ("ce_string", "https://x/"),
    "subject": ("ce_uri", "s:"),
    "time": ("ce_string", "2018-04-05T17:31:00Z"),
    "sampledrate": ("ce_boolean", True),
    "protobool": ("ce_integer", 1),
    "partitionkey": ("ce_uri", "u:"),
    "traceparent": ("ce_integer", 1),
    "protourl": ("ce_uri_ref", "u:"),
    "prototime": ("ce_uri", "u:"),
    "dataref": ("ce_bytes", b"/r"),
    "nothing": ("", None),
}


@each(("name", "wrong_field"), WRONG_FIELDS.items(), ids=WRONG_FIELDS)
def test_p_02_a_wrong_field(name: str, wrong_field: tuple[str, Any]) -> None:
    """A field of another type is refused, and so is none."""
    assert problems(official(**{name: wrong_field}).SerializeToString()) == [(name, "P-02")]


def test_p_02_a_timestamp_of_another_type() -> None:
    """An attribute with another type must not be in the field for Timestamps."""
    for name in ("protobool", "subject", "sampledrate"):
        assert problems(MIN + entry(name, bytes_field(7, b"\x08\x01"))) == [(name, "P-02")]


LENIENT: dict[str, tuple[bytes, str | None]] = {
    **{
        name: (official(**{name: wrong}).SerializeToString(), text)
        for (name, wrong), text in zip(
            WRONG_FIELDS.items(),
            [
                "5",
                "https://x/",
                "s:",
                "2018-04-05T17:31:00Z",
                "true",
                "1",
                "u:",
                "1",
                "u:",
                "u:",
                "L3I=",
                None,
            ],
            strict=True,
        )
    },
    "x": (official(x=("ce_uri", "/r")).SerializeToString(), "/r"),
    "y": (official(y=("ce_uri_ref", "a b")).SerializeToString(), "a b"),
}


@each(("name", "case"), LENIENT.items(), ids=LENIENT)
def test_lenient_reading_keeps_the_value_of_a_wrong_field(name: str, case: tuple[bytes, str | None]) -> None:
    """The event has the text of the value, and the field is reported; a changed event keeps the text."""
    value, text = case
    record = Record(headers=[("content-type", b"application/cloudevents+protobuf")], value=value)
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded)
    assert item.event.text(name) == text
    assert {problem.attribute for problem in item.tolerated} == {name}
    assert isinstance(item.tolerated[0], LeftOut) is (text is None)
    if name != "prototime":  # the format has no field for such a Timestamp
        again = to_record(item.event.replace(id="2"), like=record)
        assert from_record(again, lenient=True) == item.event.replace(id="2")


@each(("content_type", "text"), [("application/json", '{"a":1}'), ("text/plain", "abc")])
def test_data_is_of_the_content_type_in_a_wrong_field(content_type: str, text: str) -> None:
    """Lenient reading keeps the content type, so it reads the data as if the field were right."""
    records = [official(datacontenttype=(field, content_type)) for field in ("ce_string", "ce_uri_ref")]
    headers: Any = [("content-type", b"application/cloudevents+protobuf")]
    events = []
    for message in records:
        message.text_data = text
        item = decode(Record(headers=headers, value=message.SerializeToString()), lenient=True)
        assert isinstance(item, Decoded)
        events.append(item.event)
    assert events[0] == events[1]
    assert events[0].data == events[1].data


@each(
    "attributes",
    [
        entry("x", b"\x08\x01\x10\x05"),  # two fields of the oneof
        entry("x", b"\x08\x01") * 2,
        entry("subject", b"\x10\x05") * 2,
        entry("id", bytes_field(3, b"2")),
    ],
)
def test_lenient_reading_refuses_attributes_with_several_values(attributes: bytes) -> None:
    """If it is unknown which value of an attribute is right, the record is refused."""
    headers: Any = [("content-type", b"application/cloudevents+protobuf")]
    assert isinstance(decode(Record(headers=headers, value=MIN + attributes), lenient=True), Undecodable)


def test_lenient_reading_leaves_out_a_time_that_is_no_date() -> None:
    """The report has the seconds and nanoseconds of the time."""
    value = MIN + entry("time", bytes_field(7, b"\x08" + varint.encode(10**15)))
    headers: Any = [("content-type", b"application/cloudevents+protobuf")]
    item = decode(Record(headers=headers, value=value), lenient=True)
    assert isinstance(item, Decoded)
    assert "time" not in item.event
    left_out = [one.value for one in item.tolerated if isinstance(one, LeftOut)]
    assert left_out == ["(1000000000000000, 0)"]


def test_a_wrong_field_is_reported_with_the_allowed_ones() -> None:
    """The error names each allowed field once."""
    for name, fields in (
        ("partitionkey", "field ce_string, got"),
        ("dataref", "field ce_uri_ref or ce_uri or ce_string, got"),
    ):
        with pytest.raises(InvalidEvent, match=fields):
            PROTOBUF.decode(official(**{name: ("ce_integer", 5)}).SerializeToString())


@each(
    ("field", "value", "clause"),
    [
        ("ce_uri", "/r", "T-10"),
        ("ce_uri", "", "T-10"),
        ("ce_uri_ref", "a b", "T-11"),
        ("ce_string", "\n", "T-06"),
    ],
)
def test_a_value_that_is_not_of_its_fields_type(field: str, value: str, clause: str) -> None:
    """An unknown extension must have the type of its field."""
    assert problems(official(x=(field, value)).SerializeToString()) == [("x", clause)]


@each("name", ["id", "source", "specversion", "type"])
def test_p_01_required_attributes_are_fields(name: str) -> None:
    """A required attribute in the map is refused, with its field or without."""
    there = entry(name, bytes_field(3, b"1.0"))
    assert problems(MIN + there) == [(name, "P-01")]
    field = {"id": "id", "source": "source", "specversion": "spec_version", "type": "type"}[name]
    message = official()
    message.ClearField(field)
    assert problems(message.SerializeToString() + there) == [(name, "P-01")]
    assert problems(message.SerializeToString()) == [(name, "R-01")]
    assert problems(MIN + entry("spec_version", bytes_field(3, b"1.0"))) == [("spec_version", "N-01")]


def test_n_05_repeats() -> None:
    """Repeated attributes and data, which generated code merges, are refused."""
    assert problems(MIN + b"\x0a\x011") == [("id", "N-05")]
    assert problems(MIN + b"\x0a\x012") == [("id", "N-05")]
    assert problems(MIN + entry("k", bytes_field(3, b"1")) * 2) == [("k", "N-05")]
    assert problems(MIN + entry("k", bytes_field(3, b"1")) + entry("k", b"\x10\x01")) == [("k", "N-05")]
    assert problems(MIN + entry("k", bytes_field(3, b"1") + bytes_field(3, b"1"))) == [("k", "P-02")]
    assert problems(MIN + entry("k", bytes_field(3, b"1") + bytes_field(5, b"u:"))) == [("k", "P-02")]
    assert problems(MIN + entry("k", b"\x08\x01\x08\x01")) == [("k", "P-02")]
    for more in (b"\x32\x00\x32\x00", b"\x32\x00\x3a\x00", b"\x3a\x011\x3a\x012", b"\x3a\x00\x42\x00"):
        assert problems(MIN + more) == [("data", "P-03")]
        assert CloudEvent.FromString(MIN + more).WhichOneof("data")


def test_every_problem_is_reported() -> None:
    """One error has the problems of all attributes."""
    value = (
        b"\x12\x00\x1a\x030.9\x22\x01t"
        + entry("My", bytes_field(3, b"x"))
        + entry("time", bytes_field(7, b"\x10\x80\x94\xeb\xdc\x03"))
        + entry("id", bytes_field(3, b"x"))
        + entry("subject", b"\x10\x05")
        + b"\x32\x00\x3a\x00"
    )
    assert sorted(problems(value), key=str) == [
        ("My", "N-01"),
        ("data", "P-03"),
        ("id", "P-01"),
        ("source", "R-04"),
        ("specversion", "R-05"),
        ("subject", "P-02"),
        ("time", "P-02"),
    ]


def test_a_number_beyond_32_bits_is_refused() -> None:
    """Generated code silently cuts it to 32 bits."""
    for number in (b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"):
        value = MIN + entry("k", b"\x10" + number)
        assert CloudEvent.FromString(value).attributes["k"].ce_integer < 2**31
        assert problems(value) == [("k", "T-04")]


# --- times -----------------------------------------------------------------------


@each(
    ("text", "seconds", "nanos", "again"),
    [
        ("2018-04-05T17:31:00.123456789Z", 1522949460, 123456789, None),
        ("2018-04-05T19:31:00.5+02:00", 1522949460, 500000000, "2018-04-05T17:31:00.5Z"),
        ("2018-04-05t17:31:00.120000000000z", 1522949460, 120000000, "2018-04-05T17:31:00.12Z"),
        ("0001-01-01T00:00:00Z", -62135596800, 0, None),
        ("9999-12-31T23:59:59.999999999Z", 253402300799, 999999999, None),
        ("1969-12-31T23:59:59.999999999Z", -1, 999999999, None),
    ],
)
def test_instants(text: str, seconds: int, nanos: int, again: str | None) -> None:
    """All digits are kept; the offset is lost, the instant is not."""
    event = least(time=text)
    moment = CloudEvent.FromString(PROTOBUF.encode(event)).attributes["time"].ce_timestamp
    assert (moment.seconds, moment.nanos) == (seconds, nanos)
    read = PROTOBUF.decode(PROTOBUF.encode(event))
    assert read == event
    assert read.text("time") == (again or text)


@each(
    "text",
    [
        "2016-12-31T23:59:60Z",
        "2018-04-05T17:31:00.1234567891Z",
        "0000-06-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
    ],
)
def test_an_instant_without_epoch_seconds_is_refused(text: str) -> None:
    """An instant is not changed."""
    for name in ("time", "prototime"):
        with pytest.raises(EncodeError, match=rf"{name}.*P-02"):
            PROTOBUF.encode(least(**{name: text}))


@each(
    ("seconds", "nanos"),
    [(-62135596801, 0), (253402300800, 0), (2**63 - 1, 0), (0, -1), (0, 10**9), (0, -(2**63))],
)
def test_a_time_out_of_range_is_refused(seconds: int, nanos: int) -> None:
    """A time has the years 1 to 9999 and nanoseconds below 10^9, as its type demands."""
    value = MIN + entry(
        "time",
        bytes_field(7, b"\x08" + varint.encode(seconds % 2**64) + b"\x10" + varint.encode(nanos % 2**64)),
    )
    assert problems(value) == [("time", "P-02")]
