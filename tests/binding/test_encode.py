"""Writing: modes, formats, keys and headers of records, and records like others."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Message

from cloudevents_kafka import (
    EncodeError,
    Event,
    InvalidEvent,
    Record,
    decode,
    from_record,
    to_record,
)
from cloudevents_kafka.binding import _encode
from tests.support import strategies as make
from tests.support.cases import each

CE = make.required_headers
JSON = ("content-type", b"application/cloudevents+json")
VALUE = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}'
EVENT = Event(id="1", source="/", type="t", subject="s", data=b"raw")


@each("name", ["content-type", "Content-Type", "ce_id", "ce_other", "CE_ID", "Ce_x", "ce_"])
@each("mode", ["binary", "structured"])
def test_headers_of_the_event_cannot_be_added(name: str, mode: Any) -> None:
    """A user's header that could be read as an attribute is refused, in any case."""
    for headers in ({name: b"x"}, [(name, None)]):
        with pytest.raises(EncodeError, match="belongs to the event"):
            to_record(EVENT, headers=headers, mode=mode)
        with pytest.raises(EncodeError, match="belongs to the event"):
            to_record(EVENT, headers=headers, like=to_record(EVENT, mode=mode))


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_other_headers_are_last_in_order(mode: Any) -> None:
    """Repeated, null and empty headers are kept; the caller's list is neither kept nor changed."""
    headers: list[tuple[str, bytes | None]] = [("a", b"\xff"), ("a", None), ("b", b"")]
    record = to_record(EVENT, headers=headers, mode=mode)
    assert record.headers[-3:] == headers
    record.headers.clear()
    assert len(headers) == 3
    assert to_record(EVENT, headers=headers, mode=mode).headers[-3:] == headers
    assert to_record(EVENT, headers={"a": "é"}, mode=mode).headers[-1] == ("a", "é".encode())


@each(
    ("arguments", "expected"),
    [
        ({"mode": "batch"}, "mode must be 'binary' or 'structured', got 'batch'"),
        ({"mode": ""}, "mode must be 'binary' or 'structured'"),
        ({"format": "json"}, "use mode='structured'"),
        ({"mode": "binary", "format": "avro"}, "use mode='structured'"),
        ({"mode": "structured", "format": "xml"}, "one of json, avro"),
    ],
)
def test_wrong_modes_and_formats_are_refused(arguments: Any, expected: str) -> None:
    """A wrong mode or format is an EncodeError that lists the known ones."""
    with pytest.raises(EncodeError, match=expected):
        to_record(EVENT, **arguments)


@each("thing", [None, {}, "x", b"", object(), CE])
def test_other_objects_are_refused(thing: object) -> None:
    """Objects that are not events are a TypeError."""
    with pytest.raises(TypeError, match="an event must have get_attributes"):
        to_record(thing)


@each(
    "headers",
    [
        CE,
        CE[::-1],
        [("foo", b"\xff"), *CE[:2], ("foo", None), *CE[2:], ("foo", b"\xff")],
        [*CE, ("content-type", b"a/b"), ("ce_datacontenttype", b"a/b")],
        [("ce_datacontenttype", b"a/b"), *CE, ("content-type", b"a/b")],
        [*CE, ("ce_subject", None), ("content-type", None)],
        [("ce_subject", None), *CE, ("ce_subject", b"x"), ("ce_subject", None)],
        [*CE, ("ce_opcuastatus", b"-0")],
        [*CE, ("ce_dssematerial", b"TQ=="), ("ce_deprecated", b"true"), ("ce_sampledrate", b"5")],
        [*CE, ("ce_time", b"2018-04-05t17:31:00.1000000001-00:00")],
        [*CE, ("CE_ID", b"x"), ("ce-id", b"y"), ("ce_", b"z"), ("Content-Type", b"a")],
    ],
    ids=lambda headers: repr(headers)[-50:],
)
def test_an_unchanged_event_has_the_same_record(headers: Any) -> None:
    """In binary mode, order, nulls, copies, spelling and other headers are kept."""
    for key in (None, b"", b"\xff"):
        record = Record(headers=headers, key=key, value=b"\x00v")
        again = to_record(from_record(record), like=record)
        assert (again.headers, again.key, again.value) == (headers, key, b"\x00v")


@each(
    "headers",
    [
        [JSON],
        [("content-type", b"Application/CloudEvents+JSON; charset=UTF-8")],
        [
            ("ce_id", b"other"),
            ("foo", None),
            JSON,
            ("ce_id", b"\xff"),
            ("ce_datacontenttype", b"x"),
            ("ce_subject", None),
        ],
    ],
)
def test_a_structured_record_is_relayed_with_all_its_headers(headers: Any) -> None:
    """The value is the received one, and copies of attributes in headers are kept."""
    record = Record(
        headers=headers, value=VALUE[:-1] + b' , "time":null, "data":{"b": 1.0, "a":2}} \n', key=b"k"
    )
    again = to_record(from_record(record), like=record)
    assert again == record


def test_a_changed_event_changes_what_it_must() -> None:
    """Headers keep their places; removed attributes and stale copies are removed, new headers are last."""
    record = Record(
        headers=[
            ("foo", b"1"),
            ("ce_subject", b"s"),
            *CE,
            ("content-type", b"a/b"),
            ("ce_datacontenttype", b"a/b"),
            ("bar", None),
        ],
        value=b"x",
        key=b"k",
    )
    changed = from_record(record).replace(subject=None, id="2", datacontenttype="a/c", other="new")
    again = to_record(changed, like=record, headers={"added": b""})
    assert again.headers == [
        ("foo", b"1"),
        ("ce_specversion", b"1.0"),
        ("ce_id", b"2"),
        ("ce_source", b"/"),
        ("ce_type", b"t"),
        ("content-type", b"a/c"),
        ("bar", None),
        ("ce_other", b"new"),
        ("added", b""),
    ]
    assert (again.key, again.value) == (b"k", b"x")


def test_a_zero_that_was_a_minus_zero_is_another_for_texts() -> None:
    """Only an Integer has two texts for one value; a changed text is written."""
    record = Record(headers=[*CE, ("ce_subject", b"-0")])
    changed = from_record(record).replace(subject="0")
    assert to_record(changed, like=record).headers[-1] == ("ce_subject", b"0")


def test_a_null_header_gives_its_place_to_a_new_value() -> None:
    """The header of a new attribute replaces its null header."""
    record = Record(headers=[("ce_subject", None), *CE])
    changed = from_record(record).replace(subject="s")
    assert to_record(changed, like=record).headers == [("ce_subject", b"s"), *CE]


def test_null_headers_and_right_copies_stay_in_their_mode() -> None:
    """A changed event in binary mode keeps them; structured mode has no headers of attributes."""
    more = [("ce_subject", None), ("content-type", b"a/b"), ("ce_datacontenttype", b"a/b")]
    record = Record(headers=[*CE, *more])
    changed = from_record(record).replace(id="2")
    assert to_record(changed, like=record).headers[4:] == more
    assert to_record(changed, like=record, mode="structured").headers == [JSON]


@pytest.mark.parametrize(
    ("mode", "format_name", "headers"),
    [
        ("structured", None, [JSON, ("foo", None)]),
        ("structured", "avro", [("content-type", b"application/cloudevents+avro"), ("foo", None)]),
    ],
)
def test_the_mode_can_be_changed_on_the_way(mode: Any, format_name: str | None, headers: Any) -> None:
    """From binary to structured mode and back, ce_ headers change and other headers are kept."""
    record = Record(headers=[*CE, ("ce_subject", None), ("foo", None)], value=b"x", key=b"k")
    event = from_record(record)
    other = to_record(event, like=record, mode=mode, format=format_name)
    assert sorted(other.headers, key=str) == sorted(headers, key=str)
    assert from_record(other) == event
    back = to_record(from_record(other), like=other, mode="binary")
    assert sorted(back.headers, key=str) == sorted([("foo", None), *CE], key=str)
    assert (back.value, back.key) == (b"x", b"k")


def test_key_and_topic_with_like() -> None:
    """An explicit key or mapper takes precedence over the record's key; the topic is not copied."""
    record = Record(headers=CE, key=b"k", topic="t", partition=1, offset=2, timestamp=3)
    event = from_record(record)
    assert to_record(event, like=record, key=b"own").key == b"own"
    assert to_record(event, like=record, key_mapper=lambda _: "mapped").key == b"mapped"
    assert to_record(event, like=record, key_mapper=lambda _: None).key == b"k"
    again = to_record(event, like=record, topic="other")
    assert (again.topic, again.partition, again.offset, again.timestamp) == ("other", None, None, None)


def test_like_a_record_that_is_not_an_event() -> None:
    """The event is written in binary mode, with the other headers of that record."""
    record = Record(headers=[("foo", b"1")], value=b"x", key=b"k")
    again = to_record(EVENT, like=record)
    assert again.headers == [("foo", b"1"), *to_record(EVENT).headers]
    assert (again.key, again.value) == (b"k", b"raw")


def test_writing_does_not_change_its_arguments() -> None:
    """Event, record and headers do not change, and the result shares no list with them."""
    record = Record(headers=[*CE, ("foo", None)], value=b"x")
    event = from_record(record)
    for _ in range(2):
        again = to_record(event, like=record)
        assert again == record
        assert again.headers is not record.headers
        again.headers.clear()
    first, second = to_record(event), to_record(event)
    assert first == second
    assert first.headers is not second.headers


class SdkShape:
    """An object with the methods of an SDK's event."""

    def __init__(self, attributes: Any, data: Any = None) -> None:
        self.attributes = attributes
        self.payload = data

    def get_attributes(self) -> Any:
        return self.attributes

    def get_data(self) -> Any:
        return self.payload


@each(
    ("options", "message"),
    [
        ({"key": 5}, r"^key must be a str, bytes or None, got an int; pass str\(…\)$"),
        ({"headers": {"x": 5}}, r"^header 'x' must be a str, bytes or None, got an int; pass str\(…\)$"),
        ({"headers": {5: "x"}}, r"^a header name must be a str, got int 5; pass it as text$"),
        ({"like": {"headers": [("x", 5)]}}, "^header 'x' must be a str, bytes or None"),
    ],
)
def test_errors_name_the_wrong_part(options: Any, message: str) -> None:
    """An error of a key or a header says which it is, what it was, and what to pass."""
    for mode in ("binary", "structured"):
        with pytest.raises(TypeError, match=message):
            to_record(EVENT, mode=mode, **options)


@pytest.mark.parametrize("options", [{"key": "\ud800"}, {"headers": [("a", "\ud800")]}])
def test_lone_surrogates_are_refused(options: Any) -> None:
    """A lone surrogate in a key or in a header is an EncodeError."""
    name = "key" if "key" in options else "header 'a'"
    with pytest.raises(EncodeError, match=f"^{name} must be bytes or text in UTF-8, but character 0 cannot"):
        to_record(Event(id="1", source="/s", type="t"), **options)


def test_an_sdk_event_that_breaks_rules_is_refused() -> None:
    """Every problem is reported; the object does not change."""
    attributes = {"id": "", "source": "/", "time": None, "x": [1]}
    with pytest.raises(InvalidEvent) as caught:
        to_record(SdkShape(attributes, object()))
    assert {p.attribute for p in caught.value.problems} == {"specversion", "id", "type", "x", "data"}
    assert attributes == {"id": "", "source": "/", "time": None, "x": [1]}


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_like_may_be_a_record_of_a_client(mode: Any) -> None:
    """A consumer's message is accepted as `like`."""
    record = to_record(EVENT, mode=mode, key=b"k", headers=[("trace", b"1")])
    message = Message(topic="t", value=record.value, key=record.key, headers=record.headers)
    assert to_record(from_record(message), like=message) == record


@each(
    "write",
    [
        lambda text: to_record(EVENT, like=Record(headers=[("a", text)])),
        lambda text: to_record(EVENT, headers=[("a", text)]),
        lambda text: to_record(EVENT, key=text),
        lambda text: Record(key=text),
        lambda text: Record(value=text),
        lambda text: decode({"value": b"", "headers": [("a", text)]}),
    ],
)
def test_errors_do_not_show_refused_text(write: Any) -> None:
    """The error is not a codec's, whose message and object have the text."""
    with pytest.raises((EncodeError, ValueError), match="character 1 cannot be encoded") as caught:
        write("S\ud83d")
    assert not isinstance(caught.value, UnicodeError)
    assert "ud83d" not in str(caught.value)


@each(("name", "error"), [(b"trace", TypeError), (5, TypeError), ("\udcff", EncodeError)])
def test_like_has_header_names_that_can_be_written(name: Any, error: type[Exception]) -> None:
    """A header name of `like` that a producer cannot send is refused as one in `headers` is."""
    for like in (Record(headers=[(name, b"1")]), Record(headers=[JSON, (name, b"1")], value=VALUE)):
        with pytest.raises(error, match="a header name must be"):
            to_record(EVENT, like=like)
    with pytest.raises(error, match="a header name must be"):
        to_record(EVENT, headers=[(name, b"1")])


FOREIGN = ("trace", b"\xff")


@each(
    ("headers", "value"),
    [
        ([*CE, FOREIGN], b"data"),
        ([FOREIGN, *CE], b"data"),
        ([JSON], VALUE),
        ([FOREIGN, JSON], VALUE),
        (
            [("content-type", b"application/cloudevents+avro")],
            to_record(EVENT, mode="structured", format="avro").value,
        ),
    ],
)
def test_a_valid_record_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch, headers: list[tuple[str, bytes]], value: bytes
) -> None:
    """Its event, or one that `replace` returns for it, is written like it without another reading."""
    record = Record(value=value, headers=headers)
    event = from_record(record)
    with monkeypatch.context() as patch:
        patch.delattr(_encode, "decode")
        assert to_record(event, like=record) == record
        changed = to_record(event.replace(type="changed"), like=record)
    assert FOREIGN not in headers or FOREIGN in changed.headers
    assert from_record(changed) == event.replace(type="changed")


ID = ("__value_schema_id", b"\0\0\0\0\1")


@each("mode", ["binary", "structured"])
def test_the_id_of_a_schema_belongs_to_the_data(mode: Any) -> None:
    """The header with the id of the data's schema stays if the data stays, and goes with the data."""
    record = to_record(EVENT.replace(data=b"\2"), mode=mode, headers=[ID, ("h", b"1")])
    read = from_record(record)
    assert ID in to_record(read.replace(type="other"), like=record).headers
    assert ID in to_record(read, like=record, mode="structured").headers
    for data in (b"\4", None):
        changed = to_record(read.replace(data=data), like=record).headers
        assert ID not in changed
        assert ("h", b"1") in changed
    other = Record(value=b"\2", headers=[ID])  # not an event
    assert ID in to_record(EVENT.replace(data=b"\2"), like=other).headers
    assert ID not in to_record(EVENT.replace(data=b"\4"), like=other).headers


def test_the_id_of_a_schema_needs_no_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is not decoded to decide whether the id of its data's schema stays."""
    record = to_record(EVENT.replace(data=b"\2"), headers=[ID])
    read = from_record(record)
    with monkeypatch.context() as patch:
        patch.delattr(_encode, "decode")
        assert ID in to_record(read.replace(type="other"), like=record).headers
        assert ID not in to_record(read.replace(data=b"\4"), like=record).headers


@each("mode", ["binary", "structured"])
def test_the_id_of_a_schema_belongs_to_the_key(mode: Any) -> None:
    """The header with the id of the key's schema stays if the key stays, and goes with the key."""
    record = to_record(EVENT, mode=mode, key=b"\2", headers=[("__key_schema_id", b"1"), ("h", b"1")])
    read = from_record(record)
    for event in (read, read.replace(type="other")):
        for key in (None, b"\2"):
            assert ("__key_schema_id", b"1") in to_record(event, like=record, key=key).headers
        changed = to_record(event, like=record, key=b"\4").headers
        assert ("__key_schema_id", b"1") not in changed
        assert ("h", b"1") in changed


@each("mode", ["binary", "structured"])
def test_added_headers_replace_those_of_like(mode: Any) -> None:
    """A header that is passed replaces all headers of ``like`` with its name; it may itself be repeated."""
    like = to_record(EVENT, mode=mode, headers=[("t", b"1"), ("u", b"2"), ("t", None)])
    for event in (EVENT, EVENT.replace(type="other")):
        headers = to_record(event, like=like, headers=[("t", b"3"), ("t", b"4")]).headers
        assert [header for header in headers if header[0] in {"t", "u"}] == [
            ("u", b"2"),
            ("t", b"3"),
            ("t", b"4"),
        ]
