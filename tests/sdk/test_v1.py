"""The functions of the SDK's version 1, with the SDK itself as the peer."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from enum import StrEnum
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    BrokenData,
    BrokenEvent,
    EncodeError,
    Event,
    InvalidEvent,
    NotAnEvent,
    from_record,
)
from cloudevents_kafka.sdk import _writing, v1
from cloudevents_kafka.sdk._installed import HAS_VERSION_2, exceptions, http, kafka, kafka_exceptions
from tests.support import strategies as make
from tests.support.cases import each

CloudEvent, KeyMapperError = http.CloudEvent, kafka_exceptions.KeyMapperError
TIME = "2026-11-23T09:30:00.123456789Z"
NAMED = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.placed"}
HEADERS = {f"ce_{name}": value.encode() for name, value in NAMED.items()}
JSON_EVENT = {"content-type": b"application/cloudevents+json"}
FUNCTIONS = ["from_binary", "from_structured", "to_binary", "to_structured"]


def event_with(data: Any = None, /, **attributes: Any) -> CloudEvent:
    return CloudEvent({**NAMED, "time": TIME, **attributes}, data)


@pytest.mark.skipif(not HAS_VERSION_2, reason="version 1.11 annotates fewer parameters")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_names_and_signatures_are_those_of_the_sdk(name: str) -> None:
    """Each function of the SDK's module has the same parameters, defaults and annotations here."""
    assert inspect.signature(getattr(v1, name)) == inspect.signature(getattr(kafka, name))


def test_no_function_is_missing() -> None:
    """What the SDK's module exports is here, too."""
    assert set(kafka.__all__) == {*FUNCTIONS, "KafkaMessage", "KeyMapper"}
    assert (v1.KafkaMessage, v1.KeyMapper) == (kafka.KafkaMessage, kafka.KeyMapper)


texts = make.json_texts.filter(lambda text: text.isprintable())
values = st.one_of(texts, st.integers(-(2**53), 2**53), st.booleans(), st.lists(texts), st.just('{"a": 1}'))
events = st.builds(
    lambda more, data: event_with(data, datacontenttype="application/json", **more),
    st.fixed_dictionaries({}, optional={"subject": texts.filter(bool), "partitionkey": texts.filter(bool)}),
    st.one_of(values, st.dictionaries(texts, values)),
)


@make.examples(60)
@given(events)
def test_each_reads_what_the_other_writes(event: CloudEvent) -> None:
    """JSON data is the same, whichever of the two writes and whichever reads; so are keys."""
    ours, theirs = v1.to_binary(event), kafka.to_binary(event)
    assert ours.key == theirs.key
    assert {name: one for name, one in ours.headers.items() if name != "ce_partitionkey"} == theirs.headers
    assert from_record(ours).payload == ours.value
    for message in (ours, theirs):
        assert v1.from_binary(message) == kafka.from_binary(message) == event
    ours, theirs = v1.to_structured(event), kafka.to_structured(event)
    assert ours.key == theirs.key
    assert from_record(ours)["id"] == "1"
    assert v1.from_structured(ours) == v1.from_structured(theirs) == kafka.from_structured(theirs) == event


def fail(_: Any) -> Any:
    raise ZeroDivisionError("secret")


@each(
    ("call", "sdk_class", "own_class"),
    [
        (lambda: v1.to_binary(event_with(), key_mapper=fail), KeyMapperError, EncodeError),
        (lambda: v1.to_structured(event_with(), key_mapper=fail), KeyMapperError, EncodeError),
        (lambda: v1.to_binary(event_with(), fail), exceptions.DataMarshallerError, EncodeError),
        (lambda: v1.to_structured(event_with(), fail), exceptions.DataMarshallerError, EncodeError),
        (lambda: v1.to_structured(event_with(), None, fail), exceptions.DataMarshallerError, EncodeError),
        (lambda: v1.to_binary(event_with(time="now")), exceptions.InvalidRequiredFields, InvalidEvent),
        (lambda: v1.to_binary(event_with(float("nan"))), exceptions.DataMarshallerError, InvalidEvent),
        (lambda: v1.to_structured(event_with({"a": fail})), exceptions.DataMarshallerError, InvalidEvent),
        (
            lambda: v1.from_binary(kafka.KafkaMessage(HEADERS, None, b"1"), None, fail),
            exceptions.DataUnmarshallerError,
            BrokenData,
        ),
        (
            lambda: v1.from_binary(
                kafka.KafkaMessage({**HEADERS, "content-type": b"application/json"}, None, b"{")
            ),
            exceptions.DataUnmarshallerError,
            BrokenData,
        ),
        (
            lambda: v1.from_binary(kafka.KafkaMessage({"ce_id": b"1"}, None, b"{}")),
            exceptions.MissingRequiredFields,
            NotAnEvent,
        ),
        (
            lambda: v1.from_structured(kafka.KafkaMessage({}, None, b"{")),
            exceptions.DataUnmarshallerError,
            NotAnEvent,
        ),
        (
            lambda: v1.from_structured(kafka.KafkaMessage({}, None, b""), None, None, fail),
            exceptions.DataUnmarshallerError,
            BrokenEvent,
        ),
        (
            lambda: v1.from_structured(kafka.KafkaMessage({}, None, b"{}"), None, None, json.loads),
            exceptions.MissingRequiredFields,
            BrokenEvent,
        ),
        (
            lambda: v1.from_structured(kafka.KafkaMessage({}, None, b"[]"), None, None, lambda _: [1]),
            exceptions.DataUnmarshallerError,
            BrokenEvent,
        ),
    ],
)
def test_errors_are_those_of_both(call: Any, sdk_class: type, own_class: type) -> None:
    """Each error is one of the SDK's and of this library, and no message has what a function said."""
    with pytest.raises(sdk_class) as caught:
        call()
    assert isinstance(caught.value, own_class)
    assert "secret" not in str(caught.value)


def test_marshallers_are_used() -> None:
    """What they return is written, a text as UTF-8; bytes are base64 in structured mode."""
    event = event_with({"a": 1}, datacontenttype="application/json")
    assert v1.to_binary(event, lambda data: f"é{data}").value == "é{'a': 1}".encode()
    assert v1.to_binary(event, lambda _: b"\xff").value == b"\xff"
    assert v1.to_binary(event, lambda _: None).value is None  # type: ignore[arg-type,return-value]
    structured = v1.to_structured(event, lambda _: b"[1]")
    assert json.loads(structured.value)["data_base64"] == "WzFd"
    assert v1.from_structured(structured, data_unmarshaller=json.loads).data == [1]
    own = v1.to_structured(event, None, lambda members: repr(sorted(members)))
    assert (own.headers, own.value) == (
        {},
        repr(sorted([*NAMED, "time", "datacontenttype", "data"])).encode(),
    )
    assert v1.to_structured(event, None, json.dumps).headers == JSON_EVENT


def test_unmarshallers_are_used() -> None:
    """They get the value, the member data, or its decoded base64; not for a message without data."""
    message = kafka.KafkaMessage({**HEADERS, "content-type": b"text/plain"}, None, b"1")
    assert v1.from_binary(message, None, lambda value: [value]).data == [b"1"]
    assert v1.from_binary(kafka.KafkaMessage(HEADERS, None, None), None, fail).data is None  # type: ignore[arg-type]
    members = {**NAMED, "data_base64": "/w==", "subject": None}
    message = kafka.KafkaMessage({}, "k", json.dumps(members))
    for envelope in (None, json.loads):
        event = v1.from_structured(message, None, lambda data: [data], envelope)
        assert (event.data, event["partitionkey"]) == ([b"\xff"], "k")
        assert "subject" not in event
    members = {**NAMED, "data_base64": "!"}
    with pytest.raises(BrokenEvent, match="J-14"):
        v1.from_structured(kafka.KafkaMessage({}, None, b""), None, None, lambda _: members)


def test_the_structured_record_is_an_event_of_the_binding() -> None:
    """The content type is that of the event format, and the value has datacontenttype, unlike the SDK's."""
    event = event_with({"a": 1}, datacontenttype="application/json", partitionkey="c-4")
    ours, theirs = v1.to_structured(event), kafka.to_structured(event)
    assert ours.headers == JSON_EVENT
    assert theirs.headers == {"content-type": b"application/json"}
    assert json.loads(ours.value) == {**json.loads(theirs.value), "datacontenttype": "application/json"}
    assert from_record(ours) == Event.of(event)
    assert v1.to_binary(event).headers["ce_partitionkey"] == b"c-4"


@each(
    ("content_type", "data", "value", "again"),
    [
        ("text/plain", "hello", b"hello", "hello"),
        ("text/plain", "17", b"17", 17),
        ("application/json", '{"a": 1}', b'"{\\"a\\": 1}"', '{"a": 1}'),
        ("application/xml", {"a": 1}, b'{"a":1}', {"a": 1}),
        ("image/png", b"\xff", b"\xff", b"\xff"),
        ("application/avro", b"\x00\x02", b"\x00\x02", b"\x00\x02"),
        ("application/json", None, None, None),
        ("application/json", b"", b"", b""),
        (None, bytearray(b"1"), b"1", 1),
        (None, b"\x00", b"\x00", b"\x00"),
    ],
)
def test_data_of_any_type(content_type: Any, data: Any, value: bytes | None, again: Any) -> None:
    """Text and bytes are written as they are, where the SDK quotes a text and refuses bytes."""
    event = event_with(data, **({"datacontenttype": content_type} if content_type else {}))
    message = v1.to_binary(event)
    assert message.value == value
    assert v1.from_binary(message).data == again
    structured = v1.to_structured(event)
    assert from_record(structured).payload == value
    assert v1.from_structured(structured).data == (
        value if isinstance(data, bytes | dict | bytearray) else data
    )


@each("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@each("content_type", [None, "application/json", "text/plain"])
def test_json_in_each_encoding_of_unicode(encoding: str, content_type: str | None) -> None:
    """JSON in UTF-8, UTF-16 or UTF-32 is read as the SDK reads it, in both modes."""
    more = {} if content_type is None else {"content-type": content_type.encode()}
    value = '{"a": "é"}'.encode(encoding)
    message = v1.KafkaMessage(HEADERS | {"ce_time": TIME.encode()} | more, None, value)
    assert v1.from_binary(message) == kafka.from_binary(message)
    envelope = json.dumps({**NAMED, "time": TIME, "data": {"a": "é"}}, ensure_ascii=False)
    message = v1.KafkaMessage(more, None, envelope.encode(encoding))
    assert v1.from_structured(message).data == kafka.from_structured(message).data == {"a": "é"}


@each("key", [b"k", "k", b"\xff", b"", "", "a\x00"])
@each("mode", ["binary", "structured"])
def test_keys_are_kept_as_they_are(key: Any, mode: str) -> None:
    """A key of bytes stays bytes, and is the key of what is written again, in both modes."""
    write, read = getattr(v1, f"to_{mode}"), getattr(v1, f"from_{mode}")
    event = read(write(event_with())._replace(key=key))
    assert event["partitionkey"] == key
    assert write(event).key == key
    assert from_record(write(event)).get("partitionkey") == ("k" if key in {b"k", "k"} else None)


def test_no_time_is_invented() -> None:
    """An event of a message without a time has none, and times keep each digit."""
    assert "time" not in v1.from_binary(kafka.KafkaMessage(HEADERS, None, b"1"))
    assert v1.from_binary(v1.to_binary(event_with()))["time"] == TIME


def test_the_class_of_the_event() -> None:
    """The event is made by the class that is passed in."""

    class Own(CloudEvent):
        pass

    assert type(v1.from_binary(kafka.KafkaMessage(HEADERS, None, b"1"), Own)) is Own
    assert type(v1.from_structured(v1.to_structured(event_with()), Own)) is Own


def test_headers_are_not_attributes() -> None:
    """A structured message may have other headers, which the SDK takes for attributes."""
    message = v1.to_structured(event_with(1))
    message = kafka.KafkaMessage({**message.headers, "trace-id": b"\xff", "ce_id": b"2"}, None, message.value)
    assert v1.from_structured(message) == event_with(1)


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_events_of_0_3_are_left_to_the_sdk(mode: str) -> None:
    """They are written and read as the SDK does it."""
    old = event_with({"a": 1}, specversion="0.3", datacontenttype="application/json")
    write, read = f"to_{mode}", f"from_{mode}"
    message = getattr(kafka, write)(old)
    assert getattr(v1, write)(old) == message
    assert getattr(v1, read)(message) == getattr(kafka, read)(message)
    if mode == "structured":
        assert v1.from_structured(message, None, None, json.loads) == kafka.from_structured(message)


def test_pydantic_events() -> None:
    """The SDK's class for pydantic is written and read as the SDK does, also names that break rules."""
    if HAS_VERSION_2:
        from cloudevents.v1.pydantic import CloudEvent as Model
    else:
        pydantic = pytest.importorskip("cloudevents.pydantic", exc_type=Exception)
        Model = pydantic.CloudEvent  # noqa: N806
    model = Model(
        {**NAMED, "time": TIME, "datacontenttype": "application/json", "partitionkey": "c"}, {"a": 1}
    )
    for mode in ("binary", "structured"):
        write, read = getattr(v1, f"to_{mode}"), getattr(v1, f"from_{mode}")
        assert read(write(model), Model) == model
        event = event_with({"a": 1}, datacontenttype="application/json", **{"extension-key": "x"})
        theirs = getattr(kafka, f"to_{mode}")(event)
        assert read(theirs, Model) == getattr(kafka, f"from_{mode}")(theirs, Model)
        assert read(theirs, Model)["extension-key"] == "x"


class Text(StrEnum):
    """A text of a subclass."""

    VALUE = "text"


VALUES = (
    *("1", "/shop", "", " ", "a\nb", "a\x7f", "Bücher", "\ud800", "2026-01-01T00:00:00Z", "0.3"),
    *("application/json", "application/cloudevents+json", "utf8 text", None, 5, True, b"k", Text.VALUE),
)
FITTING = {
    "specversion": "1.0",
    "time": TIME,
    "datacontenttype": "a/b",
    "dataschema": "a:b",
    "sampledrate": 1,
}
NAMES = (*FITTING, "subject", "partitionkey", "id", "source", "type", "own", "otherName")
MARSHALLERS = (
    *(lambda _: b"b", lambda _: "t", lambda _: Text.VALUE, lambda _: None, lambda _: bytearray(b"a")),
    lambda _: 1 / 0,
)


def test_the_short_way_of_writing_is_as_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random events, valid and invalid, have the same message, or the same error, on both ways."""
    random, seen = Random(7), Counter[bool]()
    for _ in range(2_000):
        event = event_with([1])
        for name in random.sample(NAMES, random.randrange(5)):
            event[name] = random.choice(VALUES) if random.random() < 0.2 else FITTING.get(name, "text")
        marshaller = random.choice(MARSHALLERS)
        outcomes = []
        for way in (_writing.text_headers, lambda _: None):
            monkeypatch.setattr(v1, "text_headers", way)
            try:
                message = v1.to_binary(event, marshaller)
                outcomes.append((list(message.headers.items()), message[1:], type(message.value)))
            except Exception as error:  # noqa: BLE001
                outcomes.append((type(error).__name__, str(error)))  # type: ignore[arg-type]
        assert outcomes[0] == outcomes[1], event.get_attributes()
        seen[_writing.text_headers(event.get_attributes()) is not None] += 1
    assert min(seen.values()) > 400
