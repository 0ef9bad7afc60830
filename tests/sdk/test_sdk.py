"""The functions of the SDK's version 2, with the SDK itself as the peer."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings import kafka
from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v03.event import CloudEvent as OldCloudEvent
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    BrokenEvent,
    EncodeError,
    Event,
    EventProducer,
    InvalidEvent,
    NotAnEvent,
    from_record,
    sdk,
    to_record,
)
from cloudevents_kafka.sdk import _v2_reading
from cloudevents_kafka.testing import FakeProducer
from tests.support import strategies as make
from tests.support.cases import each

TIME = datetime(2026, 11, 23, 9, 30, 0, 123456, tzinfo=UTC)
FUNCTIONS = [name for name in vars(kafka) if name.startswith(("to_", "from_"))]
NAMED = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.placed"}
HEADERS = {f"ce_{name}": value.encode() for name, value in NAMED.items()}
JSON_EVENT = {"content-type": b"application/cloudevents+json"}


def event_with(data: Any = None, /, **attributes: Any) -> CloudEvent:
    return CloudEvent({**NAMED, "time": TIME, **attributes}, data)


def parts(event: Any) -> tuple[type, dict[str, Any], Any]:
    return type(event), dict(event.get_attributes()), event.get_data()


@each("name", FUNCTIONS)
def test_names_and_signatures_are_those_of_the_sdk(name: str) -> None:
    """Each function of the SDK's module has the same parameters, defaults and annotations here."""
    assert inspect.signature(getattr(sdk, name)) == inspect.signature(getattr(kafka, name))


def test_no_function_is_missing() -> None:
    """The SDK has ten functions, and its message and its type of key mappers are here, too."""
    assert len(FUNCTIONS) == 10
    assert (sdk.KafkaMessage, sdk.KeyMapper) == (kafka.KafkaMessage, kafka.KeyMapper)


texts = make.json_texts.filter(lambda text: text.isprintable())
events = st.builds(
    lambda content, more, data: CloudEvent({**NAMED, "time": TIME, **content, **more}, data),
    st.sampled_from([{"datacontenttype": "application/json"}, {"datacontenttype": "application/x+json"}]),
    st.fixed_dictionaries({}, optional={"subject": texts.filter(bool), "partitionkey": texts.filter(bool)}),
    st.dictionaries(texts, st.one_of(texts, st.integers(-(2**53), 2**53), st.booleans(), st.none())),
)


@make.examples(60)
@given(events, st.sampled_from([("to_binary_event", "from_binary_event"), ("to_structured_event",) * 2]))
def test_each_reads_what_the_other_writes(event: CloudEvent, names: tuple[str, str]) -> None:
    """Data of objects is the same, whichever of the two writes and whichever reads; so are keys."""
    write, read = names[0], names[1].replace("to_", "from_")
    ours, theirs = getattr(sdk, write)(event), getattr(kafka, write)(event)
    assert (ours.key, ours.headers) == (theirs.key, theirs.headers)
    for message in (ours, theirs):
        assert parts(getattr(sdk, read)(message)) == parts(event)
        assert parts(getattr(kafka, read)(message)) == parts(event)
        assert parts(sdk.from_kafka_event(message)) == parts(event)
    assert from_record(ours) == Event.of(event)


def test_what_is_written_is_what_to_record_writes() -> None:
    """A message has the headers and the value of a record; the key is the SDK's default."""
    event = event_with({"total": "9.50"}, partitionkey="c-4", flag=True)
    binary, record = sdk.to_binary_event(event), to_record(event)
    assert ([*binary.headers.items()], binary.value, binary.key) == (record.headers, record.value, "c-4")
    assert binary.headers["ce_flag"] == b"true"
    structured, record = sdk.to_structured_event(event), to_record(event, mode="structured")
    assert ([*structured.headers.items()], structured.value) == (record.headers, record.value)
    assert structured.key == "c-4"
    assert sdk.to_binary_event(Event.of(event)) == binary


@pytest.mark.parametrize("write", [sdk.to_binary_event, sdk.to_structured_event])
def test_a_key_mapper_is_used_and_cannot_change_the_message(write: Any) -> None:
    """It gets the SDK's event; its key is kept as it is; its error passes; what it changes is not written."""
    event = event_with()

    def mapper(given: Any) -> bytes:
        assert given is event
        given.get_attributes()["subject"] = "changed"
        return b"\xff"

    message = write(event, key_mapper=mapper)
    assert message.key == b"\xff"
    assert b"changed" not in b"".join(message.headers.values()) + (message.value or b"")
    with pytest.raises(ZeroDivisionError):
        write(event_with(), key_mapper=lambda _: 1 // 0)


class Upper(JSONFormat):
    """A format of a user: data in capital letters, and a content type of its own."""

    def write_data(self, data: Any, datacontenttype: Any) -> bytes:
        return super().write_data(data, datacontenttype).upper()

    def read_data(self, body: bytes, datacontenttype: Any) -> Any:
        return body.decode().lower()

    def get_content_type(self) -> str:
        return "application/cloudevents+upper"

    def write(self, event: Any) -> bytes:
        return super().write(event).upper()

    def read(self, event_factory: Any, data: str | bytes) -> Any:
        return super().read(event_factory, data.lower())


def test_a_format_of_the_user_writes_and_reads() -> None:
    """Another format than the SDK's own is called for data and events; attributes are checked here."""
    event = event_with("abc", datacontenttype="text/plain", subject="s")
    binary = sdk.to_binary(event, Upper())
    assert binary.value == b"ABC"
    assert binary.headers == sdk.to_binary_event(event).headers
    assert parts(sdk.from_kafka(binary, Upper())) == parts(event)
    assert sdk.to_binary(event_with(), Upper()).value is None
    assert sdk.from_binary(kafka.KafkaMessage(HEADERS, None, None), Upper()).get_data() is None  # type: ignore[arg-type]
    structured = sdk.to_structured(event, Upper())
    assert structured.headers == {"content-type": b"application/cloudevents+upper"}
    assert b'"SUBJECT": "S"' in structured.value
    message = kafka.KafkaMessage(structured.headers, "k", structured.value)
    for read in (sdk.from_structured, sdk.from_kafka):
        assert parts(read(message, Upper()))[1]["partitionkey"] == "k"
    wrong = kafka.KafkaMessage({}, None, b'{"SPECVERSION": "1.0", "SOURCE": "/", "TYPE": ""}')
    with pytest.raises(CloudEventValidationError) as caught:
        sdk.from_structured(wrong, Upper())
    assert isinstance(caught.value, BrokenEvent)
    assert caught.value.errors.keys() == {"id", "type"}
    with pytest.raises(InvalidEvent):
        sdk.to_structured(event_with(source="a b"), Upper())


@pytest.mark.parametrize("read", [sdk.from_binary, sdk.from_kafka])
def test_a_factory_makes_the_event(read: Any) -> None:
    """It gets attributes and data, as the SDK passes them."""
    made = read(kafka.KafkaMessage(HEADERS, b"k", b"[1]"), JSONFormat(), lambda *both: both)
    assert made == ({**NAMED, "partitionkey": "k"}, [1])


@pytest.mark.parametrize("fast", [True, False])
def test_the_event_is_one_that_the_sdk_makes(monkeypatch: pytest.MonkeyPatch, *, fast: bool) -> None:
    """It has what the constructor of the SDK sets; without the fast way it is the constructor's."""
    monkeypatch.setattr(_v2_reading, "_IS_PLAIN", fast)
    event = event_with({"a": 1}, datacontenttype="application/json")
    made = sdk.from_kafka_event(sdk.to_binary_event(event))
    assert (type(made), vars(made)) == (CloudEvent, vars(event))
    assert sdk.from_kafka_event(kafka.KafkaMessage(HEADERS, None, b"")).get_attributes() == NAMED


def test_nothing_is_invented() -> None:
    """A message without a time has none; one without an id is refused at each read."""
    assert sdk.from_kafka_event(kafka.KafkaMessage(HEADERS, None, b"")).get_time() is None
    value = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}'
    for headers in (JSON_EVENT, {}):
        assert sdk.from_kafka_event(kafka.KafkaMessage(headers, None, value)).get_time() is None
    with pytest.raises(CloudEventValidationError, match="ce_id is missing"):
        sdk.from_kafka_event(kafka.KafkaMessage({**HEADERS, "ce_id": None}, None, b""))  # type: ignore[dict-item]


KEYS = [(b"k", "k"), ("k", "k"), (b"", ""), ("", ""), (None, None), (b"\xff\xfe",) * 2, (b"a\x00", "a\x00")]


@each(("key", "expected"), KEYS)
@each("write", [sdk.to_binary_event, sdk.to_structured_event])
def test_keys_survive(write: Any, key: Any, expected: Any) -> None:
    """A key becomes partitionkey, a text if it is UTF-8; the event is written with the same key."""
    written = write(event_with())
    message = kafka.KafkaMessage(written.headers, key, written.value)
    event = sdk.from_kafka_event(message)
    assert event.get_extension("partitionkey") == expected
    again = write(event)
    assert again.key == expected
    is_attribute = expected == "k"
    assert from_record(again).get("partitionkey") == (expected if is_attribute else None)


def test_a_key_of_bytes_that_the_sdk_writes() -> None:
    """Its Python text, which the SDK writes into a header, is not taken for the key."""
    theirs = kafka.to_binary_event(event_with({"a": 1}, partitionkey=b"k"))
    assert theirs.headers["ce_partitionkey"] == b"b'k'"
    assert parts(sdk.from_kafka_event(theirs)) == parts(kafka.from_kafka_event(theirs))


def test_an_attribute_has_precedence_over_the_key() -> None:
    """A partitionkey that was sent is not replaced by the key of the record."""
    message = sdk.to_binary_event(event_with(partitionkey="c-4"), key_mapper=lambda _: "k-9")
    assert kafka.from_kafka_event(message).get_extension("partitionkey") == "k-9"
    assert sdk.from_kafka_event(message).get_extension("partitionkey") == "c-4"


@each(
    ("content_type", "value", "data"),
    [
        (None, b'{"a":1}', {"a": 1}),
        (None, b"hello", "hello"),
        ("Application/JSON ; charset=utf-8", b"[1]", [1]),
        ("application/json; charset=utf-16be", "[1]".encode("utf-16be"), [1]),
        ("application/json", b"{bad", "{bad"),
        ("application/json", b"\xff", b"\xff"),
        ("text/plain; charset=latin-1", b"\xe9", "é"),
        ("application/xml", b"<a/>", "<a/>"),
        ("application/octet-stream", b"\x00\xff", b"\x00\xff"),
        ("image/png", b"", b""),
        ("application/json", None, None),
    ],
)
def test_data_of_binary_messages(content_type: str | None, value: bytes | None, data: Any) -> None:
    """Data is JSON by its type, else a text in its charset, else bytes; an empty value is not a null one."""
    headers = {**HEADERS, **({"content-type": content_type.encode()} if content_type else {})}
    event = sdk.from_kafka_event(kafka.KafkaMessage(headers, None, value))  # type: ignore[arg-type]
    assert event.get_data() == data
    if data != "{bad" and content_type and value is not None:
        assert sdk.to_binary_event(event).value == value.replace(b" ", b"")


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_no_data_is_a_null_value(mode: str) -> None:
    """In binary mode an event without data is a tombstone (K-07), and one with empty data is not."""
    write = getattr(sdk, f"to_{mode}_event")
    for data in (None, b""):
        message = write(event_with(data))
        assert message.value == data or mode == "structured"
        assert sdk.from_kafka_event(message).get_data() == data


@each(
    ("content_type", "data", "value"),
    [
        ("application/json", ["a", True, None], b'["a",true,null]'),
        (None, 5, b"5"),
        ("application/xml", {"a": 1}, b'{"a":1}'),
        ("application/x-own", [1], b"[1]"),
        ("text/plain", "é", "é".encode()),
        ("application/json", '{"a": 1}', b'{"a": 1}'),
        ("application/json", "hello", b'"hello"'),
        ("application/json", b'{"a": 1}', b'{"a": 1}'),
        ("image/png", memoryview(b"\x01"), b"\x01"),
    ],
)
@each("mode", ["binary", "structured"])
def test_both_modes_write_the_same_data(content_type: Any, data: Any, value: bytes, mode: str) -> None:
    """The data is the same in both modes, where the SDK writes a Python text in one of them."""
    more = {"datacontenttype": content_type} if content_type else {}
    message = getattr(sdk, f"to_{mode}_event")(event_with(data, **more))
    assert from_record(message).payload == value


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_events_of_0_3_are_left_to_the_sdk(mode: str) -> None:
    """They are written and read as the SDK does it, by each function, with each format."""
    old = OldCloudEvent({"id": "1", "source": "/", "type": "t", "time": TIME, "schemaurl": "a:b"}, {"a": 1})
    write, read = f"to_{mode}_event", f"from_{mode}_event"
    message = getattr(kafka, write)(old, None, lambda _: "k")
    assert getattr(sdk, write)(old, None, lambda _: "k") == message
    expected = parts(kafka.from_kafka_event(message))
    assert parts(getattr(sdk, read)(message)) == parts(sdk.from_kafka_event(message)) == expected

    class Own(JSONFormat):
        pass

    assert parts(sdk.from_kafka(message, Own())) == expected
    assert getattr(sdk, f"to_{mode}")(old, Own(), lambda _: "k") == message


def test_an_old_event_without_a_content_type() -> None:
    """Its version is in the value; an event of 1.0 with such data is not old."""
    value = b'{"specversion":"0.3","id":"1","source":"/","type":"t"}'
    assert type(sdk.from_kafka_event(kafka.KafkaMessage({}, None, value))) is OldCloudEvent
    value = b'{"specversion":"1.0","id":"","source":"/","type":"t","data":{"specversion":"0.3"}}'
    with pytest.raises(BrokenEvent, match="id: must not be empty"):
        sdk.from_kafka_event(kafka.KafkaMessage(JSON_EVENT, None, value))


def test_the_content_type_decides_the_mode() -> None:
    """A structured message with ce_ headers is read from its value; from_binary refuses it."""
    structured = sdk.to_structured_event(event_with({"a": 1}, datacontenttype="application/json"))
    message = kafka.KafkaMessage({**HEADERS, **structured.headers}, None, structured.value)
    assert sdk.from_kafka_event(message).get_data() == {"a": 1}
    assert kafka.from_kafka_event(message).get_data() != {"a": 1}
    with pytest.raises(BrokenEvent, match=r"content-type: must not name an event format.*K-09"):
        sdk.from_binary_event(message)


def test_from_structured_reads_the_value_of_any_message() -> None:
    """The headers do not matter if the value is an event; else the message is not an event."""
    value = sdk.to_structured_event(event_with({"a": 1})).value
    for headers in ({}, HEADERS, {"content-type": b"application/json"}):
        assert sdk.from_structured_event(kafka.KafkaMessage(headers, None, value)).get_data() == {"a": 1}
        for broken, place in ((b"17", "JSON"), (value.replace(b'{"a":1}', b"NaN"), r"\(byte [0-9]+\)")):
            with pytest.raises(CloudEventValidationError, match=f"the value is not a JSON event.*{place}"):
                sdk.from_structured_event(kafka.KafkaMessage(headers, None, broken))


def test_headers_in_other_letters() -> None:
    """Names of headers may have capital letters, as the SDK reads them, also the content type."""
    headers = {name.upper(): value for name, value in HEADERS.items()}
    event = sdk.from_kafka_event(kafka.KafkaMessage({**headers, "Content-Type": b"text/plain"}, None, b"1"))
    assert (event.get_id(), event.get_datacontenttype(), event.get_data()) == ("1", "text/plain", "1")


def test_other_prefixes_are_not_read() -> None:
    """Headers of HTTP's binding are not those of an event, which the SDK does not read either."""
    headers = {name.replace("_", "-"): value for name, value in HEADERS.items()}
    for read in (sdk.from_kafka_event, sdk.from_binary_event, kafka.from_kafka_event):
        with pytest.raises(ValueError if read is kafka.from_kafka_event else NotAnEvent):
            read(kafka.KafkaMessage(headers, None, b"hello"))


def test_other_headers_are_ignored() -> None:
    """A header of another system may be null or not UTF-8, at which the SDK fails."""
    message = kafka.KafkaMessage({**HEADERS, "trace": b"\xff", "null": None}, None, b"1")  # type: ignore[dict-item]
    assert sdk.from_kafka_event(message).get_attributes() == NAMED


def test_other_formats_are_read() -> None:
    """An Avro event is read by its content type with the SDK's JSONFormat; a batch has its verdict."""
    record = to_record(event_with({"a": 1}), mode="structured", format="avro")
    message = kafka.KafkaMessage(dict(record.headers), None, record.value)  # type: ignore[arg-type]
    assert parts(sdk.from_kafka_event(message)) == parts(event_with({"a": 1}))
    batch = kafka.KafkaMessage({"content-type": b"application/cloudevents-batch+json"}, None, b"[]")
    with pytest.raises(CloudEventValidationError, match="Kafka has no batch mode"):
        sdk.from_kafka_event(batch)


def test_types_of_attributes() -> None:
    """In binary mode attributes are texts, in structured mode those of JSON; the time is a datetime."""
    event = event_with(n=5, flag=True, raw=b"Ma", sampledrate=7)
    binary = sdk.from_kafka_event(sdk.to_binary_event(event)).get_attributes()
    assert [binary[name] for name in ("n", "flag", "raw", "sampledrate")] == ["5", "true", "TWE=", "7"]
    structured = sdk.from_kafka_event(sdk.to_structured_event(event)).get_attributes()
    assert [structured[name] for name in ("n", "flag", "raw", "sampledrate")] == [5, True, "TWE=", 7]
    assert binary["time"] == structured["time"] == TIME


def test_sending_an_event_of_the_sdk() -> None:
    """A producer sends the SDK's event as `to_record` writes it: a text that is JSON is the document."""
    client = FakeProducer()
    with EventProducer(client, topic="orders", mode="structured") as producer:
        producer.send(event_with('{"a": 1}', datacontenttype="application/json"))
    (message,) = client.log
    assert b'"data":{"a": 1}' in message.value()


def test_what_cannot_be_written() -> None:
    """An event that breaks a rule is an error of both libraries, and so is one that the mode cannot have."""
    with pytest.raises(InvalidEvent) as caught:
        sdk.to_binary_event(event_with({"a": float("nan")}, source="a b"))
    assert isinstance(caught.value, CloudEventValidationError)
    assert caught.value.errors.keys() == {"source", "data"}
    with pytest.raises(EncodeError, match="K-20"):
        sdk.to_binary_event(event_with(datacontenttype="application/cloudevents+json"))


@each(("attribute", "value"), [("time", "2026-01-01T10:00:00"), ("id", ""), ("type", 5)])
def test_the_error_is_that_of_the_value(attribute: str, value: Any) -> None:
    """A record of version 1 that version 2 refuses is a broken event, and the error says why."""
    members = {**NAMED, attribute: value}
    message = kafka.KafkaMessage({"content-type": b"application/json"}, None, json.dumps(members).encode())
    with pytest.raises(BrokenEvent) as caught:
        sdk.from_structured_event(message)
    assert [problem.attribute for problem in caught.value.problems] == [attribute]
    assert caught.value.record.headers == [("content-type", b"application/json")]
