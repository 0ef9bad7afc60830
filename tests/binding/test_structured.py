"""Structured mode: one header, and the event in the value."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka import (
    BrokenEvent,
    EncodeError,
    Event,
    EventProducer,
    Record,
    UnsupportedBatch,
    UnsupportedFormat,
    from_record,
    register_format,
    to_record,
)
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.testing import FakeProducer
from tests.support import strategies as make
from tests.support.cases import each

EVENT = Event(id="1", source="/", type="t")
VALUE = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}'


def of(content_type: bytes, value: bytes | None = VALUE, more: Any = ()) -> Record:
    return Record(headers=[*more, ("content-type", content_type)], value=value)


def test_the_record() -> None:
    """The content-type is that of the format; there are no ce_ headers, and the value is not null."""
    record = to_record(Event(id="1", source="/", type="t", datacontenttype="text/plain"), mode="structured")
    assert record.headers == [("content-type", b"application/cloudevents+json")]
    assert record.value == VALUE[:-1] + b',"datacontenttype":"text/plain"}'
    assert to_record(EVENT, mode="structured", format="avro").headers == [
        ("content-type", b"application/cloudevents+avro")
    ]


def test_empty_formats_and_modes_are_refused() -> None:
    """An empty format or mode is refused, not replaced by the default."""
    producer = EventProducer(FakeProducer(), topic="t", mode="structured")
    like = of(b"application/cloudevents+json")
    for write in (
        lambda: to_record(EVENT, mode="structured", format=""),
        lambda: to_record(EVENT, format="", like=like),
        lambda: producer.send(EVENT, format=""),
        lambda: EventProducer(FakeProducer(), topic="t", mode="structured", format="").send(EVENT),
    ):
        with pytest.raises(EncodeError, match="format must be one of json"):
            write()
    with pytest.raises(EncodeError, match="got ''"):
        to_record(EVENT, mode="", like=like)  # type: ignore[arg-type]  # which is the point


@each(
    "content_type",
    [
        b"application/cloudevents+json",
        b"Application/CloudEvents+JSON; charset=UTF-8",
        b'application/cloudevents+json; charset="utf-8"',
        b"application/cloudevents+json;charset=us-ascii",
        b"application/cloudevents+json ;x=y",
    ],
)
def test_the_format_is_found_by_its_media_type(content_type: bytes) -> None:
    """The media type may have any case, parameters and other ce_ headers."""
    assert from_record(of(content_type)) == EVENT
    assert (
        from_record(of(content_type, more=[("ce_id", b"2"), ("ce_my_ext", b"\xff"), *make.required_headers]))
        == EVENT
    )


@each(
    ("record", "error", "expected"),
    [
        (of(b"application/cloudevents+json", None), BrokenEvent, "K-08"),
        (of(b"application/cloudevents+json", b""), BrokenEvent, "J-01"),
        (of(b"application/cloudevents+json; charset=utf-16"), BrokenEvent, "K-15"),
        (of(b"application/cloudevents+avro; charset=latin-1"), BrokenEvent, "K-15"),
        (of(b"application/cloudevents+json;\xff"), BrokenEvent, "K-06"),
        (of(b"application/cloudevents+json", more=[("content-type", b"text/plain")]), BrokenEvent, "N-05"),
        (of(b"application/cloudevents+json", b"\xef\xbb\xbf" + VALUE), BrokenEvent, "byte order mark"),
        (of(b"application/cloudevents"), UnsupportedFormat, "K-10"),
        (
            of(b"application/cloudevents+xyz", more=make.required_headers),
            UnsupportedFormat,
            r"'application/cloudevents\+xyz'",
        ),
        (of(b"application/cloudevents+xml"), UnsupportedFormat, "register the format"),
        (of(b"application/cloudevents-batch+json", b"[]"), UnsupportedBatch, "K-01"),
        (of(b"Application/CloudEvents-Batch+xyz", more=make.required_headers), UnsupportedBatch, "K-01"),
    ],
)
def test_unreadable_records(record: Record, error: type[Exception], expected: str) -> None:
    """Each failure has an error type and a clause."""
    with pytest.raises(error, match=expected):
        from_record(record)


@each(
    ("others", "clauses"),
    [
        ([b"application/cloudevents+json"], ["N-05", "R-02"]),
        ([b"application/cloudevents+json; charset=utf-8"], ["N-05"]),
        ([b"application/cloudevents+avro"], ["N-05"]),
    ],
)
def test_a_repeated_content_type_does_not_hide_problems(others: list[bytes], clauses: list[str]) -> None:
    """The problems of the value are reported too if both headers name one format."""
    record = of(
        b"application/cloudevents+json",
        VALUE.replace(b'"1"', b'""'),
        more=[("content-type", other) for other in others],
    )
    with pytest.raises(BrokenEvent) as caught:
        from_record(record)
    assert [p.clause for p in caught.value.problems] == clauses


@each("name", ["xyz", "", "JSON", "batch+json"])
def test_unknown_formats_are_not_written(name: str) -> None:
    """The error names the known formats."""
    with pytest.raises(EncodeError, match="one of json, avro"):
        to_record(EVENT, mode="structured", format=name)


class Shouting(JsonFormat):
    """A user's format, whose events are of a class of the user's."""

    def decode(self, value: Any) -> Event:
        return Loud(**super().decode(value).attributes)


class Loud(Event):
    """An event of a class of the user's."""


class Broken(JsonFormat):
    """A format with a mistake."""

    def decode(self, value: Any) -> Any:
        return value.decode().missing if b"u" in value else {"id": "1"}


def make_nothing() -> Any:
    raise LookupError("there is no schema")


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["json", "yaml"])
@pytest.mark.parametrize(
    ("make_format", "value", "why"),
    [
        (make_nothing, VALUE, "its make raised LookupError"),
        (Broken, VALUE, "its decode raised AttributeError"),
        (Broken, b"{}", "its decode returned a dict, not an Event"),
    ],
)
def test_a_users_format_may_have_mistakes(name: str, make_format: Any, value: bytes, why: str) -> None:
    """A record in such a format is a broken event with the mistake."""
    register_format(name, make_format)
    with pytest.raises(BrokenEvent, match=rf"{why} \(K-15"):
        from_record(of(b"application/cloudevents+" + name.encode(), value))


@pytest.mark.usefixtures("registry")
def test_a_users_json_format_reads_and_may_return_a_class_of_its_own() -> None:
    """It is used in place of the known one, which is faster."""
    register_format("json", Shouting)
    assert type(from_record(of(b"application/cloudevents+json"))) is Loud


def test_the_one_content_type_that_is_not_utf8_is_reported() -> None:
    """A null header is not counted, and one of two is not read."""
    wrong = of(b"application/cloudevents+json\xff", more=[("content-type", None)])
    with pytest.raises(BrokenEvent, match="header value must be UTF-8") as caught:
        from_record(wrong)
    assert [problem.clause for problem in caught.value.problems] == ["K-06"]


def test_a_message_shows_three_values_of_a_repeated_header() -> None:
    """Each value is shown once, in one order, and a record with many has a short message."""
    json = b"application/cloudevents+json"
    for others in ([1, 2], [2, 1, 2], range(9, 0, -1)):
        record = of(json, more=[("content-type", b"%b;a=%d" % (json, number)) for number in others])
        with pytest.raises(BrokenEvent) as caught:
            from_record(record)
        shown = " and ".join(f"'{json.decode()}{more}'" for more in ("", ";a=1", ";a=2"))
        assert caught.value.problems[0].value == shown
