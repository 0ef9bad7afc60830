"""The official SDK: each accepts the events of the other, in both versions of the SDK."""

from __future__ import annotations

import copy
import json
from collections import ChainMap, OrderedDict, UserDict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings import http, kafka
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from cloudevents.v1.http import CloudEvent as OldCloudEvent
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    Codec,
    Event,
    InvalidEvent,
    Record,
    from_record,
    partition_key,
    register_codec,
    to_record,
)
from cloudevents_kafka.codecs.payload import DataKind
from tests.support import strategies as make
from tests.support.cases import each

TIME = datetime(2018, 4, 5, 17, 31, tzinfo=UTC)
ATTRIBUTES: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
EVENT = Event(
    id="1",
    source="/s",
    type="t",
    subject="é",
    time=TIME,
    datacontenttype="application/json",
    data={"a": 1},
    ext="x",
    n=5,
)


def record_of(message: kafka.KafkaMessage) -> Record:
    """Return the record that the SDK passes to a client."""
    return Record.of({"key": message.key, "value": message.value, "headers": message.headers})


# --- our events in the SDK -----------------------------------------------------------


def test_an_event_has_the_protocol_of_the_sdk() -> None:
    """All getters of the SDK return values of its types."""
    event: BaseCloudEvent = EVENT
    assert (event.get_id(), event.get_source(), event.get_type()) == ("1", "/s", "t")
    assert (event.get_specversion(), event.get_subject(), event.get_time()) == ("1.0", "é", TIME)
    assert (event.get_datacontenttype(), event.get_dataschema()) == ("application/json", None)
    assert (event.get_extension("ext"), event.get_extension("none")) == ("x", None)
    assert event.get_data() == {"a": 1}
    attributes = event.get_attributes()
    assert attributes["time"] == TIME
    attributes.clear()
    assert event.get_attributes()


def test_the_json_format_of_the_sdk() -> None:
    """The SDK writes an event that both read as equal."""
    written = JSONFormat().write(EVENT)
    assert json.loads(written)["time"] == "2018-04-05T17:31:00Z"
    headers: Any = [("content-type", b"application/cloudevents+json")]
    assert from_record(Record(headers=headers, value=written)).replace(data=EVENT.payload) == EVENT
    assert JSONFormat().read(None, written).get_data() == {"a": 1}


@pytest.mark.parametrize(
    "event", [EVENT, EVENT.replace(data=b"\xff", datacontenttype="image/png"), EVENT.replace(data=None)]
)
def test_the_http_binding_of_the_sdk(event: Event) -> None:
    """An event is equal after binary and structured HTTP messages."""
    for message in (http.to_binary(event, JSONFormat()), http.to_structured(event, JSONFormat())):
        again = Event.of(http.from_http(message, JSONFormat()))
        assert (again.id, again.time, again.subject, again["ext"]) == (
            event.id,
            event.time,
            event.subject,
            event["ext"],
        )
        assert again.data == event.data


@pytest.mark.parametrize("event", [EVENT, EVENT.replace(data=b"\xff\x00", datacontenttype="image/png")])
def test_the_kafka_binding_of_the_sdk(event: Event) -> None:
    """Records of the SDK have the same headers and bytes in binary mode, the same event in both."""
    binary = record_of(kafka.to_binary(event, JSONFormat()))
    assert sorted(binary.headers) == sorted(to_record(event).headers)
    assert from_record(binary).data == event.data
    structured = from_record(record_of(kafka.to_structured(event, JSONFormat())))
    assert structured.replace(data=None) == event.replace(data=None)
    assert structured.data == event.data


@given(
    make.attributes(make.texts),
    st.one_of(st.none(), st.binary(min_size=1), st.dictionaries(make.json_texts, make.json_texts)),
)
def test_the_sdk_reads_our_records(attributes: dict[str, Any], data: Any) -> None:
    """The SDK reads the event of a structured record, for any texts, times and data."""
    for name in ("dssematerial", "partitionkey", "expirytime"):  # which have other types, or a key, there
        attributes.pop(name, None)
    if "time" in attributes:
        attributes["time"] = TIME
    event = Event(**attributes, data=data)
    record = to_record(event, mode="structured")
    headers = {name: value or b"" for name, value in record.headers}
    message = kafka.KafkaMessage(headers=headers, key=None, value=record.value or b"")
    again = kafka.from_structured(message, JSONFormat())
    found = dict(again.get_attributes())
    assert {name: found[name] for name in event} == event.get_attributes()
    assert again.get_data() == event.data


# --- the SDK's events here --------------------------------------------------------------


@each("kind", [CloudEvent, OldCloudEvent])
@each(
    ("more", "data", "payload", "data_kind"),
    [
        ({}, None, None, DataKind.BYTES),
        ({"datacontenttype": "application/json"}, {"a": 1}, b'{"a":1}', DataKind.JSON),
        ({}, {"a": 1}, b'{"a":1}', DataKind.JSON),
        ({"datacontenttype": "text/plain"}, "é", b"\xc3\xa9", DataKind.TEXT),
        ({"datacontenttype": "application/json"}, "hi", b'"hi"', DataKind.JSON),
        ({"datacontenttype": "image/png"}, b"\xff", b"\xff", DataKind.BYTES),
        ({}, b"", b"", DataKind.BYTES),
        ({"subject": "s", "ext": "x", "dataschema": "a:b"}, None, None, DataKind.BYTES),
    ],
)
def test_events_of_both_sdk_versions(
    kind: Any, more: Any, data: Any, payload: bytes | None, data_kind: DataKind
) -> None:
    """Attributes and data are equal; the object of the SDK does not change."""
    sdk = kind({**ATTRIBUTES, "time": TIME if kind is CloudEvent else "2018-04-05T17:31:00Z", **more}, data)
    before = copy.deepcopy((dict(sdk.get_attributes()), sdk.get_data()))
    event = Event.of(sdk)
    assert (event.payload, event.kind) == (payload, data_kind)
    assert {n: event[n] for n in event} == {**ATTRIBUTES, "time": TIME, **more}
    assert from_record(to_record(sdk)).data == from_record(to_record(event)).data
    assert to_record(sdk, mode="structured") == to_record(event, mode="structured")
    assert (dict(sdk.get_attributes()), sdk.get_data()) == before


class Frozen(Mapping[str, Any]):
    """A mapping with nothing but what a mapping needs."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@each("kind", [dict, Frozen, ChainMap, OrderedDict, UserDict])
@each("view", [lambda values: values, MappingProxyType])
def test_attributes_are_any_mapping(kind: Any, view: Any) -> None:
    """The event has attributes of its own if the object returns another mapping, or a view of one."""

    class Source:
        def get_attributes(self) -> Any:
            return view(given)

        def get_data(self) -> None:
            return None

    given = kind({**ATTRIBUTES, "time": TIME})
    event = Event.of(Source())
    assert dict(given) == event.get_attributes() == {**ATTRIBUTES, "time": TIME}
    assert list(event) == list(given)
    assert to_record(Source()) == to_record(Source()) == to_record(event)


def test_event_of_an_event() -> None:
    """An Event is not copied."""
    assert Event.of(EVENT) is EVENT


JSON_TEXTS = ['{"a": 1} ', "[1]", "123", "true", "null", '"x"', r'"\ud800"', "[" * 100 + "]" * 100]
OTHER_TEXTS = ["hello", "", "NaN", "{a: 1}", "1 2", "\ufeff1", "'x'"]


@pytest.mark.parametrize("kind", [CloudEvent, OldCloudEvent], ids=["new", "old"])
@pytest.mark.parametrize("content_type", ["application/json", "Application/X+JSON; a=b", None])
@each("text", JSON_TEXTS + OTHER_TEXTS)
def test_a_text_of_the_sdk_that_is_json_is_the_document(
    kind: Any, content_type: str | None, text: str
) -> None:
    """Where data is JSON, a text that parses is the data as it stands, in both modes; others are strings."""
    sdk = kind({**ATTRIBUTES, **({"datacontenttype": content_type} if content_type else {})}, text)
    document = text if text in JSON_TEXTS else json.dumps(text, ensure_ascii=False)
    assert to_record(sdk).value == document.encode()
    structured = to_record(sdk, mode="structured").value
    assert structured is not None
    assert structured.endswith(f',"data":{document}}}'.encode())
    assert from_record(to_record(sdk, mode="structured")).payload == document.strip().encode()
    assert Event.of(sdk).kind is DataKind.JSON


@each("text", JSON_TEXTS + OTHER_TEXTS)
def test_a_text_of_another_type_stays_a_text(text: str) -> None:
    """A text of the SDK that is not JSON by its type is written as it stands; one of an Event is a string."""
    sdk = CloudEvent({**ATTRIBUTES, "datacontenttype": "text/plain"}, text)
    assert (Event.of(sdk).payload, Event.of(sdk).kind) == (text.encode(), DataKind.TEXT)
    event = Event(id="1", source="/", type="t", datacontenttype="application/json", data=text)
    assert json.loads(event.payload or b"") == text


def test_a_document_in_another_charset() -> None:
    """A text of the SDK that is JSON is encoded in the charset of its content type."""
    sdk = CloudEvent({**ATTRIBUTES, "datacontenttype": "application/json; charset=utf-16le"}, '{"é": 1}')
    assert Event.of(sdk).payload == '{"é": 1}'.encode("utf-16le")
    assert Event.of(sdk).data == {"é": 1}


@pytest.mark.usefixtures("registry")
def test_a_codec_gets_the_text_of_the_sdk() -> None:
    """A codec that is registered for JSON decides what a text becomes."""
    register_codec("application/json", Codec(None, lambda text: json.dumps([text]).encode()))
    assert (
        Event.of(CloudEvent({**ATTRIBUTES, "datacontenttype": "application/json"}, "1")).payload == b'["1"]'
    )


def test_a_text_with_a_lone_surrogate_is_refused() -> None:
    """A text of the SDK that UTF-8 cannot encode is a problem of the data."""
    with pytest.raises(InvalidEvent) as caught:
        Event.of(CloudEvent(dict(ATTRIBUTES), "\ud800"))
    assert [problem.clause for problem in caught.value.problems] == ["J-10"]


def test_types_of_sdk_events() -> None:
    """Extensions keep the types that the SDK allows."""
    sdk = CloudEvent(
        {**ATTRIBUTES, "n": 5, "b": True, "raw": b"Ma", "t": TIME.astimezone(timezone(timedelta(hours=2)))}
    )
    event = Event.of(sdk)
    assert (event["n"], event["b"], event["raw"], event["t"]) == (5, True, b"Ma", "2018-04-05T19:31:00+02:00")
    assert ("ce_b", b"true") in to_record(sdk).headers


def test_a_key_in_bytes_becomes_the_text_of_the_partitionkey() -> None:
    """Version 1 of the SDK stores a key in bytes as partitionkey; bytes that are not UTF-8 are refused."""
    event = OldCloudEvent({**ATTRIBUTES, "partitionkey": "k-é".encode()}, None)
    assert Event.of(event)["partitionkey"] == "k-é"
    assert to_record(event, key_mapper=partition_key).key == "k-é".encode()
    event["partitionkey"] = b"\xff"
    with pytest.raises(InvalidEvent) as caught:
        Event.of(event)
    assert [problem.attribute for problem in caught.value.problems] == ["partitionkey"]


@each(
    ("more", "data", "clauses"),
    [
        ({"x": [1]}, None, {"T-01"}),
        ({"x": 2**31}, None, {"T-04"}),
        ({"abc\n": "x"}, None, {"N-01"}),
        ({"x": "a\nb"}, None, {"T-06"}),
        ({"source": "a b"}, None, {"T-11"}),
        ({"datacontenttype": "xyz"}, None, {"R-07"}),
        ({"datacontenttype": "text/plain"}, {"a": 1}, {"J-10"}),
        ({"partitionkey": "", "x": 1.5}, float("nan"), {"X-01", "T-01", "J-10"}),
    ],
)
def test_invalid_events_of_the_sdk(more: Any, data: Any, clauses: set[str]) -> None:
    """Every problem that the SDK does not check is reported with its clause."""
    sdk = CloudEvent({**ATTRIBUTES, "time": TIME, **more}, data)
    for refuse in (Event.of, to_record):
        with pytest.raises(InvalidEvent) as caught:
            refuse(sdk)
        assert {p.clause for p in caught.value.problems} == clauses


def test_records_of_the_sdk() -> None:
    """A tombstone of the SDK is an empty payload; an event without time has none."""
    sdk = CloudEvent({**ATTRIBUTES, "time": TIME, "partitionkey": "p"}, None)
    record = record_of(kafka.to_binary(sdk, JSONFormat()))
    event = from_record(record)
    assert (record.key, event["partitionkey"], event.payload) == (b"p", "p", b"")
    assert from_record(Record(headers=make.required_headers)).get_attributes().keys() == ATTRIBUTES.keys()
