"""Clauses that vectors cannot show: about Python values, side effects and whole ranges of input.

The name of a test begins with its clause: ``test_t_07_…`` is about T-07.
"""

from __future__ import annotations

import copy
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    Decoded,
    EncodeError,
    Event,
    EventConsumer,
    EventProducer,
    InvalidEvent,
    Record,
    Undecodable,
    UnsupportedFormat,
    decode,
    from_record,
    sniff,
    to_record,
)
from cloudevents_kafka.extensions import SequenceTracker, Step, sequence_numbers
from cloudevents_kafka.extensions.signing import sign, verify
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.testing import FakeConsumer, FakeProducer
from tests.support.ids import stable

MINIMUM = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
HEADERS: list[tuple[str, bytes | None]] = [(f"ce_{name}", value.encode()) for name, value in MINIMUM.items()]
JSON = [("content-type", b"application/cloudevents+json")]
MODES = [("binary", None), ("structured", "json"), ("structured", "avro")]


class SdkEvent:
    """An event of an SDK, with the two methods that all of them have."""

    def __init__(self, attributes: dict[str, Any], data: Any = None) -> None:
        self.attributes = attributes
        self.data = data

    def get_attributes(self) -> dict[str, Any]:
        return self.attributes

    def get_data(self) -> Any:
        return self.data


def test_n_04_sdk_event_with_an_attribute_called_data() -> None:
    """An SDK's event with an attribute called data is refused."""
    with pytest.raises(InvalidEvent, match="N-04"):
        Event.of(SdkEvent({**MINIMUM, "data": "x"}))


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_r_01_attributes_are_not_invented(mode: str) -> None:
    """An event has the attributes of its constructor, before and after it is sent."""
    event = Event(id="1", source="/s", type="t")
    assert dict(event.attributes) == MINIMUM
    assert dict(from_record(to_record(event, mode=mode)).attributes) == MINIMUM


@pytest.mark.parametrize("name", MINIMUM)
def test_r_01_sdk_event_without_a_required_attribute(name: str) -> None:
    """A missing attribute of an SDK's event, including its version, is not filled in."""
    with pytest.raises(InvalidEvent) as caught:
        Event.of(SdkEvent({n: v for n, v in MINIMUM.items() if n != name}))
    assert [problem.attribute for problem in caught.value.problems] == [name]


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        1.0,
        Decimal(1),
        date(2018, 4, 5),
        timedelta(1),
        (),
        set(),
        object(),
        b"x".__class__,
    ],
    ids=stable,
)
def test_t_01_python_values_without_a_type(value: Any) -> None:
    """A Python value that has none of the seven types is refused, not converted to text."""
    with pytest.raises(InvalidEvent):
        Event(id="1", source="/s", type="t", x=value)


@pytest.mark.parametrize("text", ["2018-04-05T17:31:00Z", "2018-04-05T18:31:00.1230+01:00"])
def test_t_02_time_from_text(text: str) -> None:
    """A time set from a text has that text and its instant."""
    event = Event(id="1", source="/s", type="t", time=text)
    assert event.text("time") == text
    assert event.time is not None
    assert event.time.replace(microsecond=0) == datetime(2018, 4, 5, 17, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2018, 4, 5, 17, 31, tzinfo=UTC), "2018-04-05T17:31:00Z"),
        (datetime(2018, 4, 5, 18, 31, tzinfo=timezone(timedelta(hours=1))), "2018-04-05T18:31:00+01:00"),
        (datetime(2018, 4, 5, 17, 31, 0, 5, tzinfo=UTC), "2018-04-05T17:31:00.000005Z"),
    ],
)
def test_t_02_time_from_datetime(moment: datetime, text: str) -> None:
    """A time set from a datetime has its canonical text and equals it."""
    event = Event(id="1", source="/s", type="t", time=moment)
    assert event.text("time") == text
    assert event.time == moment


@pytest.mark.parametrize(
    "moment",
    [datetime(2018, 4, 5), datetime(2018, 4, 5, tzinfo=timezone(timedelta(seconds=5)))],  # noqa: DTZ001
    ids=["no offset", "seconds in the offset"],
)
def test_t_12_datetime_without_a_timestamp(moment: datetime) -> None:
    """A datetime that RFC 3339 cannot express is refused."""
    with pytest.raises(InvalidEvent):
        Event(id="1", source="/s", type="t", time=moment)


def test_t_02_enum_is_written_as_its_value() -> None:
    """A member of a StrEnum is written as its value, not as its name."""

    class Kind(StrEnum):
        ORDER = "com.example.order"

    record = to_record(Event(id="1", source="/s", type=Kind.ORDER))
    assert ("ce_type", b"com.example.order") in record.headers


NONCHARACTERS = [
    *range(0xFDD0, 0xFDF0),
    *(plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF)),
]


@pytest.mark.parametrize("code", NONCHARACTERS, ids=hex)
def test_t_07_all_noncharacters(code: int) -> None:
    """All 66 noncharacters are refused, by the constructor and in a header."""
    with pytest.raises(InvalidEvent):
        Event(id="1", source="/s", type="t", x=chr(code))
    with pytest.raises(InvalidEvent):
        from_record(Record(headers=[*HEADERS, ("ce_x", chr(code).encode())]))


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0)], ids=hex)
def test_t_06_all_controls(code: int) -> None:
    """All 65 control characters are refused, by the constructor and in a header."""
    with pytest.raises(InvalidEvent):
        Event(id="1", source="/s", type="t", x=chr(code))
    with pytest.raises(InvalidEvent):
        from_record(Record(headers=[*HEADERS, ("ce_x", chr(code).encode())]))


@pytest.mark.parametrize("name", ["a" * 21, "a" * 200])
def test_n_06_long_names(name: str) -> None:
    """A name of more than 20 characters is valid in every mode."""
    event = Event(id="1", source="/s", type="t", **{name: "v"})
    for mode, format in MODES:
        assert from_record(to_record(event, mode=mode, format=format)) == event


def test_r_03_an_event_sent_again_is_the_same_event() -> None:
    """An event that is written twice keeps id and source, so receivers recognise it."""
    event = Event(id="1", source="/s", type="t")
    first, second = (from_record(to_record(event)) for _ in range(2))
    assert len({(first.source, first.id), (second.source, second.id)}) == 1
    assert {first, second} == {event}


def test_r_17_types_without_a_domain() -> None:
    """A type without a reverse DNS name is accepted."""
    assert from_record(to_record(Event(id="1", source="/s", type="placed"))).type == "placed"


@pytest.mark.parametrize("source", ["https://example.com/s", "urn:a:b", "/s", "s", "#s"])
def test_r_18_relative_sources(source: str) -> None:
    """A source may be absolute or relative, and is preserved."""
    assert from_record(to_record(Event(id="1", source=source, type="t"))).source == source


@pytest.mark.parametrize(("mode", "format"), MODES)
def test_t_14_texts_are_preserved(mode: str, format: str | None) -> None:
    """Digits, offsets and letters of times and URIs are preserved in every mode."""
    texts = {"time": "2018-04-05t18:31:00.1230000001+01:00", "source": "HTTP://Example.com/%7e/../a"}
    event = Event(id="1", type="t", **texts)
    again = from_record(to_record(event, mode=mode, format=format))
    assert {name: again.text(name) for name in texts} == texts


def test_e_04_copies_in_other_headers_are_ignored() -> None:
    """A traceparent header without prefix belongs to the transport: it does not change the attribute."""
    headers = [*HEADERS, ("traceparent", b"hop"), ("ce_traceparent", b"start")]
    assert from_record(Record(headers=headers)).text("traceparent") == "start"
    assert "traceparent" not in from_record(Record(headers=headers[:-1]))


def test_d_06_modes_and_formats_are_documented() -> None:
    """A page names both modes, every format, and that Kafka has no batches."""
    text = (Path(__file__).parents[2] / "docs" / "modes_and_formats.md").read_text("utf-8")
    table = text[text.index("| event format |") :].partition("\n\n")[0]
    for name in formats.names():
        assert f"`{name}`" in table, name


def test_e_03_foreign_headers_are_in_the_record() -> None:
    """The record of an outcome has the foreign headers, with any bytes and nulls."""
    foreign: list[tuple[str, bytes | None]] = [("foo", b"\xff"), ("foo", None), ("Bar", b"")]
    outcome = decode(Record(headers=[*HEADERS, *foreign]))
    assert isinstance(outcome, Decoded)
    assert outcome.record.headers[-3:] == foreign
    assert set(outcome.event.attributes) == set(MINIMUM)


def test_d_04_problems_name_attribute_rule_and_clause() -> None:
    """Each problem is one line that names attribute, rule, clause and value."""
    with pytest.raises(InvalidEvent) as caught:
        Event(id="", source="/s", type="t", time="noon", my_ext="v")
    assert {problem.attribute for problem in caught.value.problems} == {"id", "time", "my_ext"}
    for problem in caught.value.problems:
        assert problem.section
        assert problem.rule
        assert "\n" not in str(problem)
        assert str(problem) in str(caught.value)


@pytest.mark.parametrize("data", [None, b"", b"null"])
def test_j_13_no_data_no_bytes_and_null_differ(data: bytes | None) -> None:
    """No data, no bytes and an explicit null differ in every mode."""
    event = Event(id="1", source="/s", type="t", datacontenttype="application/json", data=data)
    for mode, format in MODES:
        assert from_record(to_record(event, mode=mode, format=format)).payload == data


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("nan")]}, object()])
def test_j_10_values_that_json_cannot_represent(value: Any) -> None:
    """Data that JSON cannot represent is refused when the event is constructed."""
    with pytest.raises(InvalidEvent):
        Event(id="1", source="/s", type="t", datacontenttype="application/json", data=value)


def test_k_01_a_list_of_events_is_refused() -> None:
    """A list of events is refused: each event is one record."""
    with pytest.raises(TypeError):
        to_record([Event(id="1", source="/s", type="t")])


@pytest.mark.parametrize(("name", "good"), [("größe", True), ("\ud800", False), ("a\udcff", False)])
def test_k_06_names_of_headers_are_utf8(name: str, *, good: bool) -> None:
    """A header of the user keeps its name; a name that UTF-8 cannot encode is refused."""
    event = Event(**MINIMUM)
    if good:
        assert to_record(event, headers={name: b"x"}).headers[-1] == (name, b"x")
    else:
        with pytest.raises(EncodeError, match="UTF-8"):
            to_record(event, headers={name: b"x"})


def test_k_07_no_data_is_a_null_value() -> None:
    """An event without data has a null value, which deletes the key in a compacted topic."""
    record = to_record(Event(id="1", source="/s", type="t"), key=b"k")
    assert record.value is None


def test_k_10_unknown_format_has_the_record() -> None:
    """The error for an unknown format has media type and record, so that the record can be forwarded."""
    record = Record(
        key=b"\xff", value=b"\x00", headers=[("content-type", b"application/cloudevents+xyz"), ("a", None)]
    )
    outcome = decode(record)
    assert isinstance(outcome, Undecodable)
    assert isinstance(outcome.error, UnsupportedFormat)
    assert outcome.error.media_type == "application/cloudevents+xyz"
    assert outcome.error.record is record


def test_k_12_text_as_key() -> None:
    """A key that is a text is encoded in UTF-8."""
    assert to_record(Event(id="1", source="/s", type="t"), key="é").key == b"\xc3\xa9"


def test_k_14_mapper_cannot_change_the_event() -> None:
    """A mapper that tries to change the event fails or changes a copy."""

    def change(event: Event) -> str:
        event.get_attributes()["id"] = "changed"
        with pytest.raises(TypeError):
            event.attributes["id"] = "changed"  # type: ignore[index]  # must fail
        with pytest.raises(AttributeError):
            event.id = "changed"  # type: ignore[misc]  # must fail
        return "k"

    event = Event(id="1", source="/s", type="t", partitionkey="p")
    record = to_record(event, key_mapper=change)
    assert record.key == b"k"
    assert from_record(record) == event
    assert event.id == "1"


def test_k_14_objects_of_the_caller_are_not_changed() -> None:
    """Writing does not change an SDK's event, its data or a list of headers."""
    attributes, data = {**MINIMUM, "partitionkey": "p"}, {"a": [1]}
    headers: list[tuple[str, bytes | None]] = [("foo", b"1")]
    before = copy.deepcopy((attributes, data, headers))
    record = to_record(SdkEvent(attributes, data), headers=headers, key_mapper=lambda event: event.text("id"))
    record.headers.append(("bar", b"2"))
    assert (attributes, data, headers) == before


def test_k_14_an_event_is_a_copy() -> None:
    """A later change of the caller's objects does not change the event."""
    attributes, data = dict(MINIMUM), {"a": [1]}
    event = Event.of(SdkEvent(attributes, data))
    attributes["id"] = "2"
    data["a"].append(2)
    assert event.id == "1"
    assert event.payload == b'{"a":[1]}'


NAMES = st.sampled_from(["content-type", "ce_id", "ce_", "ce_data", "CE_ID", "ce-id", "", "x"]) | st.text()
VALUES = st.none() | st.binary() | st.sampled_from([b"application/cloudevents+json", b"1.0", b"1"])


@given(headers=st.lists(st.tuples(NAMES, VALUES)), value=st.none() | st.binary(), lenient=st.booleans())
def test_k_09_any_record_has_a_verdict(
    headers: list[tuple[str, bytes | None]], value: bytes | None, *, lenient: bool
) -> None:
    """Sniffing and decoding return a verdict for any bytes and raise nothing."""
    record = Record(value=value, headers=headers)
    assert sniff(headers).reason
    assert isinstance(decode(record, lenient=lenient), Decoded | Undecodable)


def test_x_19_an_expired_event_is_received() -> None:
    """A consumer returns every event, expired or not, unless expired events are skipped on request."""
    expired = Event(**MINIMUM, expirytime="2001-01-01T00:00:00Z")
    with EventProducer(fake := FakeProducer(), topic="orders") as producer:
        producer.send(expired)
    consumer = FakeConsumer(fake.log)
    consumer.subscribe(["orders"])
    with EventConsumer(consumer) as events:
        (item,) = events.items(idle_timeout=0.1)
    assert isinstance(item, Decoded)
    assert item.event == expired


def test_x_57_a_signed_sequence_shows_a_missing_event() -> None:
    """Each event that arrives is verified; only the sequence shows that one is missing."""

    def key(message: bytes) -> bytes:
        return sha256(message).digest()

    def check(message: bytes, signature: bytes) -> bool:
        return key(message) == signature

    events = [Event(**{**MINIMUM, "id": text}, sequence=text) for text in islice(sequence_numbers(), 3)]
    sent = [to_record(sign(event, key, keyid="k", extensions=["sequence"])) for event in events]
    del sent[1]
    results = [verify(from_record(record), {"k": check}) for record in sent]
    assert {result.verified for result in results} == {"core and extensions"}
    watch = SequenceTracker()
    assert [watch.observe(result.event) for result in results] == [Step("first"), Step("gap", 1)]


@pytest.mark.parametrize(("mode", "format"), MODES)
def test_x_66_a_forwarder_may_change_expirytime(mode: Any, format: str | None) -> None:
    """A forwarder may change expirytime; everything else is kept."""
    received = to_record(
        Event(**MINIMUM, expirytime="2026-01-01T00:00:00Z"), mode=mode, format=format, key="k"
    )
    changed = from_record(received).replace(expirytime="2027-01-01T00:00:00Z")
    sent = to_record(changed, like=received)
    assert (sent.key, from_record(sent)) == (b"k", Event(**MINIMUM, expirytime="2027-01-01T00:00:00Z"))
