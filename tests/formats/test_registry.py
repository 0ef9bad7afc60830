"""The registry of event formats: built-in and registered ones."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka import (
    BrokenEvent,
    EncodeError,
    Event,
    Record,
    Undecodable,
    UnsupportedFormat,
    decode,
    from_record,
    sniff,
    to_record,
)
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.formats.registry import find, media_type_of, names, register_format, writable
from tests.support.cases import each

EVENT = Event(id="1", source="/", type="t")


class Loud(JsonFormat):
    """JSON with a prefix."""

    def encode(self, event: Event) -> bytes:
        return b"!" + super().encode(event)

    def decode(self, value: bytes) -> Event:
        return super().decode(value[1:])


pytestmark = pytest.mark.usefixtures("registry")


def test_built_in_formats() -> None:
    """Each format is created once, and found by its exact suffix."""
    assert names() == ("json", "avro", "protobuf", "avro-compact", "avrocompact")
    for name in names():
        found = find(name)
        assert found is not None
        assert found is find(name)
        assert found.name == name
        assert media_type_of(name) == f"application/cloudevents+{name}"
    assert find("JSON") is find("") is find(None) is None
    assert set(names()) - set(writable()) == {"avrocompact"}


def test_a_registered_format_is_used_everywhere() -> None:
    """It is sniffed, read and written; it is created once, on first use."""
    made: list[Loud] = []

    def make() -> Loud:
        made.append(Loud())
        return made[-1]

    headers = [("content-type", b"application/cloudevents+x-loud.1")]
    record = Record(headers=[*headers], value=b"!" + JsonFormat().encode(EVENT))
    for lenient in (False, True):
        result = decode(record, lenient=lenient)
        assert isinstance(getattr(result, "error", None), UnsupportedFormat)
    register_format("x-loud.1", make)
    assert made == []
    assert (sniff(record.headers).mode, sniff(record.headers).format) == ("structured", "x-loud.1")
    assert from_record(record) == EVENT
    assert from_record(record, lenient=True) == EVENT
    assert to_record(EVENT, mode="structured", format="x-loud.1") == record
    assert len(made) == 1


def test_a_format_can_be_replaced() -> None:
    """A registered format named json replaces the built-in one."""
    event = Event(id="1", source="/", type="t", datacontenttype="text/plain", data=b"hi")
    assert b"data_base64" in (to_record(event, mode="structured").value or b"")
    register_format("json", lambda: JsonFormat(text_data=True))
    assert b'"data":"hi"' in (to_record(event, mode="structured").value or b"")


@each("name", [None, 5, "", "JSON", "a b", "é", "a+b", "-", "a/b", "²"])
def test_invalid_suffixes_are_refused(name: str) -> None:
    """A name that no media type can end in would never be found."""
    with pytest.raises(ValueError, match="name must be a suffix of a media type"):
        register_format(name, JsonFormat)


class Rude(JsonFormat):
    """A format that breaks the contract of the protocol."""

    def encode(self, event: Event) -> bytes:
        return str(event)  # type: ignore[return-value]  # which is what it does wrong

    def decode(self, value: bytes) -> Event:
        return {}[int(value)]


@each("lenient", [False, True])
@each(("value", "said"), [(b"?", "raised ValueError"), (b"1", "raised KeyError")])
def test_an_exception_in_a_format_is_a_broken_event(value: bytes, said: str, *, lenient: bool) -> None:
    """One record does not stop a loop; the error has the cause."""
    register_format("rude", Rude)
    record = Record(headers=[("content-type", b"application/cloudevents+rude")], value=value)
    result = decode(record, lenient=lenient)
    assert isinstance(result, Undecodable)
    assert isinstance(result.error, BrokenEvent)
    assert said in str(result.error)
    assert result.error.__cause__ is not None


def test_results_of_a_format_are_checked() -> None:
    """Decode must return an Event, encode bytes."""
    register_format("rude", Rude)
    with pytest.raises(EncodeError, match="format 'rude': its encode returned a str, not bytes"):
        to_record(EVENT, mode="structured", format="rude")
    register_format("none", type("None", (Rude,), {"decode": lambda *_: None}))
    with pytest.raises(BrokenEvent, match="returned a NoneType, not an Event"):
        from_record(Record(headers=[("content-type", b"application/cloudevents+none")], value=b""))


def test_a_factory_must_be_callable() -> None:
    """Registration checks the factory at once."""
    with pytest.raises(TypeError, match=r"make must be callable, .* got a JsonFormat"):
        register_format("mine", JsonFormat())  # type: ignore[arg-type]  # which is the point


def lacks() -> JsonFormat:
    raise ImportError("no such package")


def lookup() -> JsonFormat:
    return {}["x"]  # type: ignore[no-any-return]  # it never does


@each("lenient", [False, True])
@each(
    ("make", "said", "cause"),
    [
        (lacks, "its make raised ImportError", "no such package"),
        (lookup, "its make raised KeyError", "'x'"),
        (
            lambda: None,
            "its make raised TypeError",
            "factory of event format 'mine' must return an object with name, encode and decode",
        ),
        (
            lambda: 5,
            "its make raised TypeError",
            "must return an object with name, encode and decode, got an int",
        ),
    ],
)
def test_an_exception_in_a_factory(make: Any, said: str, cause: str, *, lenient: bool) -> None:
    """Its records are broken events, and none can be written; each error has the cause."""
    register_format("mine", make)
    record = Record(headers=[("content-type", b"application/cloudevents+mine")], value=b"")
    for _ in range(2):
        result = decode(record, lenient=lenient)
        assert isinstance(result, Undecodable)
        assert isinstance(result.error, BrokenEvent)
        assert said in str(result.error)
        assert cause in str(result.error.__cause__)
        with pytest.raises(EncodeError, match=f"format 'mine': {said}") as caught:
            to_record(EVENT, mode="structured", format="mine")
        assert cause in str(caught.value.__cause__)


class Full(JsonFormat):
    def encode(self, event: Event) -> bytes:
        raise self.error

    error: Exception = KeyError("x")


def test_an_exception_in_encode_is_an_encode_error() -> None:
    """An EncodeError of the format itself is not wrapped."""
    register_format("full", Full)
    with pytest.raises(EncodeError, match="in the format 'full': its encode raised KeyError") as caught:
        to_record(EVENT, mode="structured", format="full")
    assert isinstance(caught.value.__cause__, KeyError)
    mine = EncodeError("no room")
    register_format("full", type("Fuller", (Full,), {"error": mine}))
    with pytest.raises(EncodeError) as caught:
        to_record(EVENT, mode="structured", format="full")
    assert caught.value is mine
