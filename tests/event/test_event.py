"""Events: immutable values that have only what was set, and keep no references to it."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given

from cloudevents_kafka import DataError, Event, InvalidEvent, Record, decode, from_record, to_record
from cloudevents_kafka.codecs.payload import DataKind
from tests.support import strategies as make
from tests.support.cases import each

FULL = Event(
    id="1",
    source="/s",
    type="t",
    datacontenttype="application/json",
    dataschema="https://a.example/s",
    subject="x",
    time="2018-04-05T17:31:00.123456789+02:00",
    data={"a": 1},
    sampledrate=5,
    deprecated=True,
    dssematerial=b"Ma",
    expirytime="2018-04-05T17:31:00Z",
    extension="e",
)


def least(**more: Any) -> Event:
    return Event(**{"id": "1", "source": "/", "type": "t", **more})


def test_no_attribute_is_added() -> None:
    """An event has the attributes that were set, and specversion."""
    event = least()
    assert dict(event.attributes) == {"specversion": "1.0", "id": "1", "source": "/", "type": "t"}
    for value in (
        event.time,
        event.subject,
        event.dataschema,
        event.datacontenttype,
        event.payload,
        event.data,
    ):
        assert value is None
    assert event.get("time") is event.text("time") is None
    assert not event.extensions


def test_attributes_by_property_and_by_name() -> None:
    """Each attribute has its type by property and name, and its canonical text."""
    assert (FULL.id, FULL.source, FULL.type, FULL.specversion) == ("1", "/s", "t", "1.0")
    assert (FULL.subject, FULL.dataschema, FULL.datacontenttype) == (
        "x",
        "https://a.example/s",
        "application/json",
    )
    assert FULL.time == datetime(2018, 4, 5, 17, 31, 0, 123456, timezone(timedelta(hours=2)))
    assert FULL["expirytime"] == datetime(2018, 4, 5, 17, 31, tzinfo=UTC)
    assert dict(FULL.extensions) == {
        "sampledrate": 5,
        "deprecated": True,
        "dssematerial": b"Ma",
        "expirytime": FULL["expirytime"],
        "extension": "e",
    }
    assert [FULL.text(n) for n in FULL][-5:] == ["5", "true", "TWE=", "2018-04-05T17:31:00Z", "e"]
    assert FULL.text("time") == "2018-04-05T17:31:00.123456789+02:00"
    assert "extension" in FULL
    assert "other" not in FULL
    assert 5 not in FULL
    assert list(FULL) == list(FULL.attributes)
    with pytest.raises(KeyError):
        FULL["other"]


def test_an_event_cannot_be_changed() -> None:
    """Attributes and the mappings of them cannot be set."""
    event = least(x="1")
    for name in ("id", "data", "payload", "other"):
        with pytest.raises(AttributeError):
            setattr(event, name, "2")
    for mapping in (event.attributes, event.extensions):
        assert isinstance(mapping, MappingProxyType)
    event.get_attributes().clear()
    assert event == least(x="1")


def test_later_changes_do_not_reach_the_event() -> None:
    """Changes to arguments and to returned objects do not change the event."""
    data, raw, attribute = {"a": [1]}, bytearray(b"raw"), bytearray(b"b")
    event = least(data=data)
    binary = least(data=raw, x=attribute)
    data["a"].append(2)
    raw[:] = b"new"
    attribute[:] = b"n"
    assert event.payload == b'{"a":[1]}'
    assert (binary.payload, binary["x"]) == (b"raw", b"b")
    event.data["a"].append(3)
    for way in ("json", "avro"):
        plain = least(data={"a": "b"})
        plain.data["a"] = "c"
        assert from_record(to_record(plain, mode="structured", format=way)).data == {"a": "b"}
    assert from_record(to_record(event)).data == {"a": [1]}


class _Type(StrEnum):
    CREATED = "order.created"


@each(
    ("given", "kept"),
    [
        (datetime(2018, 4, 5, tzinfo=UTC), "2018-04-05T00:00:00Z"),
        (datetime(2018, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2018-04-05T00:00:00+02:00"),
        (5, 5),
        (True, True),
        (b"", b""),
        (_Type.CREATED, "order.created"),
        ('\u00e9 "\\', '\u00e9 "\\'),
    ],
)
def test_values_of_each_type_are_kept(given: Any, kept: Any) -> None:
    """Values of Python's types are those of the type system, in a constructor and in another's event."""
    event = least(x=given)
    again = Event.of(_Foreign(MappingProxyType({**event.attributes, "x": given, "y": None})))
    assert event["x"] == again["x"] == kept
    assert type(event["x"]) is type(again["x"]) is type(kept)
    assert again == event


@each(
    ("attributes", "clauses"),
    [
        ({"x": 2**31}, ["T-04"]),
        ({"x": -(2**70)}, ["T-04"]),
        ({"x": 1.5, "id": None}, ["T-01", "R-01"]),
        ({"x": "\x00"}, ["T-06"]),
        ({"x": "\x7f"}, ["T-06"]),
        ({"x": "\ud800"}, ["T-06"]),
        ({"subject": 5}, ["R-12"]),
        ({"sampledrate": True}, ["T-05"]),
        ({"time": datetime(2018, 4, 5)}, ["T-01"]),  # noqa: DTZ001  # without an offset
        ({"x": datetime(2018, 4, 5), "y": object()}, ["T-01", "T-01"]),  # noqa: DTZ001  # as above
    ],
)
def test_every_value_of_a_wrong_type_is_a_problem(attributes: Any, clauses: list[str]) -> None:
    """Each value that an attribute cannot have is reported, next to values of any type."""
    with pytest.raises(InvalidEvent) as caught:
        least(**attributes)
    assert [problem.clause for problem in caught.value.problems] == clauses


UUID_TEXT = "got UUID('00000000-0000-0000-0000-000000000005'); pass id=str(uuid4())"
NOT_A_TIME = "time: must be a datetime or a text of RFC 3339"
FROM_SECONDS = "datetime.fromtimestamp(…, UTC) for seconds"
PASS_A_TIME = "a datetime with an offset, such as datetime.now(UTC), or a text such as '2026-01-31T12:00:00Z'"


class Color(Enum):
    RED = 1


@each(
    ("attributes", "message"),
    [
        ({"id": UUID(int=5)}, f"id: must be a str, {UUID_TEXT} (R-02, "),
        ({"id": None}, "id: is required; pass id=str(uuid4()) (R-01, "),
        ({"source": 5}, "source: must be a str, got 5; pass source=str(…) (R-04, "),
        ({"source": Path("/x")}, "got a PosixPath; pass source=str(…)"),
        ({"source": "my shop"}, "must be a URI-reference, got 'my shop'; pass source='my%20shop' (T-11, "),
        ({"source": "/100% sure"}, "got '/100% sure'; pass source='/100%25%20sure' (T-11, "),
        ({"source": "/%7E%7"}, "got '/%7E%7'; pass source='/%7E%257' (T-11, "),
        ({"source": "//[::1"}, "got '//[::1'; pass source='/shop' (T-11, "),
        ({"type": Color.RED}, "type: must be a str, got a Color; pass type=….value (R-06, "),
        ({"type": None}, "type: is required; pass type='order.placed'"),
        ({"subject": date(2026, 1, 31)}, "got datetime.date(2026, 1, 31); pass subject=….isoformat()"),
        (
            {"time": 1700000000},
            f"{NOT_A_TIME}, got 1700000000; pass {FROM_SECONDS}, or {PASS_A_TIME} (R-13, ",
        ),
        ({"time": 1.5}, "got 1.5; pass datetime.fromtimestamp"),
        ({"time": date(2026, 1, 31)}, f"got datetime.date(2026, 1, 31); pass {PASS_A_TIME}"),
        ({"time": "2026-01-31"}, f"must be an RFC 3339 timestamp, got '2026-01-31'; pass {PASS_A_TIME}"),
        (
            {"time": datetime(2026, 1, 31)},  # noqa: DTZ001  # on purpose
            f"must have an offset (tzinfo), as an RFC 3339 timestamp has; pass {PASS_A_TIME}",
        ),
        ({"specversion": 1.0}, "specversion: must be a str, got 1.0; pass specversion='1.0', or nothing"),
        ({"datacontenttype": "json"}, "got 'json'; pass datacontenttype='application/json'"),
        ({"dataschema": "order"}, "got 'order'; pass dataschema='https://example.com/order'"),
        (
            {"order_id": "5"},
            "order_id: an attribute name must have only a-z and 0-9, got 'order_id'; write orderid",
        ),
        ({"Ä": "5"}, "an attribute name must have only a-z and 0-9, got 'Ä' (N-01"),
        (
            {"price": 1.5},
            "price: must be a str, int, bool, bytes or datetime, got 1.5; pass price=str(…) (T-01, ",
        ),
        ({"tags": ["a"]}, "got a list; an attribute has one value; put several values into data (T-01, "),
        ({"x": object()}, "got an object; pass x=str(…)"),
    ],
)
def test_errors_say_what_to_pass(attributes: Any, message: str) -> None:
    """The message has what was passed and what to pass, and so has that of `replace`."""
    with pytest.raises(InvalidEvent) as caught:
        least(**attributes)
    assert message in str(caught.value)
    with pytest.raises(InvalidEvent) as caught:
        least().replace(**attributes)
    assert message in str(caught.value)


@each(
    ("data", "got"),
    [
        (object(), "an object; convert it, or pass bytes"),
        ({"a": [Path()]}, "a PosixPath; convert it, or pass bytes"),
        (Color, "the class Color; convert it, or pass bytes"),
        ({(1, 2): 3}, "a tuple"),
    ],
)
def test_data_that_is_not_json_is_named(data: Any, got: str) -> None:
    """The message names the class of the value, also within others, and what to do."""
    with pytest.raises(InvalidEvent, match=r"data cannot be written as JSON: .* must be .*") as caught:
        least(data=data)
    assert f"got {got} (J-10" in str(caught.value)


def test_a_dict_of_an_event_has_its_attributes() -> None:
    """`dict` and ``**`` make a new mapping of the attributes, without the data."""
    assert dict(FULL) == {**FULL} == dict(FULL.attributes) == FULL.get_attributes()
    assert list(FULL.keys()) == list(FULL)
    assert Event(**dict(least(x=5)), data=1) == least(x=5, data=1)


class _Foreign:
    """An event of another library."""

    def __init__(self, attributes: Any) -> None:
        self.attributes = attributes

    def get_attributes(self) -> Any:
        return self.attributes

    def get_data(self) -> Any:
        return None


def test_data_is_decoded_once_on_access() -> None:
    """A malformed payload raises an error on access only."""
    event = least(datacontenttype="application/json", data=b"{")
    assert event.payload == b"{"
    with pytest.raises(DataError, match="not JSON"):
        _ = event.data
    assert FULL.data is FULL.data


@each("data", [None, b"", "", "null", b"null", 0, False, [], {}])
def test_no_data_and_empty_data_differ(data: Any) -> None:
    """Only None means no data; other false values are a payload."""
    event = least(data=data)
    assert (event.payload is None) is (data is None)
    assert event.data == data
    assert type(event.data) is type(data)


def test_an_explicit_json_null_is_data() -> None:
    """The payload null is data, though its value is None."""
    event = least(datacontenttype="application/json", data=b"null")
    assert event.payload == b"null"
    assert event.data is None
    assert event != least(datacontenttype="application/json")


@each(
    ("one", "other", "same"),
    [
        (least(), least(), True),
        (least(), least(id="2"), False),
        (least(x="1"), least(), False),
        (least(x="1"), least(x=1), False),
        (least(x=1), least(x=True), False),
        (least(x=b"Ma"), least(x="TWE="), False),
        (least(x="1", y="2"), least(y="2", x="1"), True),
        (least(data=b""), least(), False),
        (least(data={"a": 1}), least(data=b'{"a":1}'), True),
        (least(data=b'{"a": 1}'), least(data=b'{"a":1}'), False),
        (least(time="2018-04-05T17:31:00Z"), least(time="2018-04-05T18:31:00.000+01:00"), True),
        (least(time="2018-04-05T17:31:00.1234567Z"), least(time="2018-04-05T17:31:00.1234568Z"), False),
        (least(time="2018-04-05T17:31:00.1234567Z"), least(time="2018-04-05t17:31:00.12345670z"), True),
        (least(time="2016-12-31T23:59:60Z"), least(time="2016-12-31T23:59:59.999999Z"), False),
        (least(expirytime="2018-04-05T17:31:00Z"), least(expirytime="2018-04-05T17:31:00-00:00"), True),
        (least(x="2018-04-05T17:31:00Z"), least(x="2018-04-05T17:31:00-00:00"), False),
        (least(datacontenttype="text/plain"), least(datacontenttype="TEXT/plain"), False),
        (least(), "another thing", False),
    ],
)
def test_equality(one: Event, other: object, same: bool) -> None:  # noqa: FBT001 - a column
    """Events are equal if attributes (times by instant) and payloads are equal."""
    assert (one == other) is same
    assert (other == one) is same
    if same:
        assert hash(one) == hash(other)


@given(make.events())
def test_events_are_values(event: Event) -> None:
    """A pickled, copied or replaced event is equal in all parts."""
    assert copy.copy(event) is event
    assert copy.deepcopy([event])[0] is event
    for again in (pickle.loads(pickle.dumps(event)), event.replace()):
        assert again == event
        assert hash(again) == hash(event)
        assert repr(again) == repr(event)
        assert (again.payload, again.kind, list(again)) == (event.payload, event.kind, list(event))
    assert {event: 1}[event.replace()] == 1


class Placed(Event):
    """An event of one type."""

    __slots__ = ()


def test_a_subclass_keeps_its_class() -> None:
    """An event that a subclass makes from an Event, and each copy of it, is of the subclass and is equal."""
    value = b'{ "specversion":"1.0","id":"1","source":"/","type":"t","time":"%b","data":{}}'
    time = "2018-04-05T17:31:00.123456789Z"
    headers: Any = [("content-type", b"application/cloudevents+json")]
    record = Record(headers=headers, value=value % time.encode())
    for event in (from_record(record), Event(id="1", source="/", type="t", data=b"{", time=time)):
        placed = Placed.of(event)
        again = (placed, pickle.loads(pickle.dumps(placed)), placed.replace(), placed.read_with(str))
        for one in again:
            assert (type(one), one, one.text("time")) == (Placed, event, time)
    assert to_record(Placed.of(from_record(record)), mode="structured").value == record.value
    assert Placed.of(event.read_with(lambda _: 17)).data == 17


def test_repr_has_attributes_and_no_data() -> None:
    """Attributes may be logged, data may not."""
    assert (
        repr(least(data="secret", x=True)) == "Event(id='1', source='/', type='t', x='true', data=<8 bytes>)"
    )
    assert "data" not in repr(least())
    assert repr(least(data=b"x")).endswith("data=<1 byte>)")


def test_replace() -> None:
    """A changed event is validated; None removes an attribute; the old event stays the same."""
    changed = FULL.replace(id="2", subject=None, extension=None, other=5)
    assert (changed.id, changed.subject, changed["other"]) == ("2", None, 5)
    assert "extension" not in changed
    assert (changed.payload, changed.kind) == (FULL.payload, FULL.kind)
    assert FULL.id == "1"
    assert FULL.replace(data=None).payload is None
    assert FULL.replace(data=b"x").payload == b"x"
    for bad in ({"id": None}, {"id": ""}, {"time": "noon"}, {"Bad": "x"}, {"data": object()}):
        with pytest.raises(InvalidEvent):
            FULL.replace(**bad)


def test_self_may_name_an_attribute() -> None:
    """The name self is a valid extension."""
    event = least(self="x", cls="y", given="z")
    assert event["self"] == "x"
    assert event.replace(self="w")["self"] == "w"


@each(
    ("event", "content_type", "kind", "data"),
    [
        (least(data={"a": 1}), "application/json", DataKind.BYTES, {"a": 1}),
        (least(data={"a": 1}), "text/plain", DataKind.BYTES, '{"a":1}'),
        (least(data={"a": 1}, datacontenttype="application/json"), None, DataKind.BYTES, b'{"a":1}'),
        (least(data="x", datacontenttype="application/xml"), "text/html", DataKind.BYTES, "x"),
        (least(data="x", datacontenttype="text/plain"), None, DataKind.BYTES, b"x"),
        (least(data="x", datacontenttype="text/plain"), "text/plain", DataKind.TEXT, "x"),
        (least(data="x"), None, DataKind.JSON, "x"),
        (least(data=b"x"), "text/plain", DataKind.BYTES, "x"),
    ],
)
def test_a_new_content_type_keeps_the_payload(
    event: Event, content_type: str | None, kind: DataKind, data: Any
) -> None:
    """The payload stays the same; its kind follows the new content type."""
    changed = event.replace(datacontenttype=content_type)
    assert (changed.payload, changed.kind, changed.data) == (event.payload, kind, data)


def test_a_changed_event_is_encoded_again() -> None:
    """A structured record of a changed event has the change, and the exact data."""
    value = b'{"specversion":"1.0","id":"1","source":"/","type":"t","data": {"a" : 1.0} }'
    event = from_record(Record(value=value, headers=[("content-type", b"application/cloudevents+json")]))
    assert to_record(event, mode="structured").value == value
    changed = to_record(event.replace(subject="x"), mode="structured").value or b""
    assert b'"subject":"x"' in changed
    assert b'"data":{"a" : 1.0}' in changed


def test_invalid_times_of_lenient_reading() -> None:
    """An invalid time is returned as its text."""
    headers: Any = [*make.required_headers, ("ce_expirytime", b"soon")]
    event = decode(Record(headers=headers), lenient=True).event  # type: ignore[union-attr]  # it is read
    assert event["expirytime"] == event.get("expirytime") == event.text("expirytime") == "soon"
    assert event.attributes["expirytime"] == event.extensions["expirytime"] == "soon"
    assert event == copy.deepcopy(event)
    assert event != least(expirytime="2018-04-05T17:31:00Z")


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_an_extension_has_the_type_that_is_asked_for(mode: Any) -> None:
    """A header has texts only; the value is the same in each mode."""
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    event = Event(id="1", source="/s", type="t", n=5, flag=True, raw=b"\x00", at=moment, word="7")
    event = from_record(to_record(event, mode=mode))
    assert event.extension("n", int) == 5
    assert event.extension("n", str) == "5"
    assert event.extension("flag", bool) is True
    assert event.extension("raw", bytes) == b"\x00"
    assert event.extension("at", datetime) == moment
    assert event.extension("word", str) == "7"
    assert event.extension("absent", int) is None


def test_a_value_of_another_type_is_an_error() -> None:
    """The error names the attribute, the rule, its clause and the value."""
    event = Event(id="1", source="/s", type="t", word="x", flag=True)
    for name, kind in [("word", int), ("flag", int), ("word", bool), ("word", datetime), ("flag", bytes)]:
        with pytest.raises(InvalidEvent, match=f"{name}: must be a value of the type .*, got "):
            event.extension(name, kind)
    with pytest.raises(TypeError, match="the type of word must be str, int, bool, bytes or datetime"):
        event.extension("word", float)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("content_type", "it is event.datacontenttype"),
        ("event_type", "it is event.type"),
        ("eventId", "it is event.id"),
        ("schema_url", "it is event.dataschema"),
        ("partitionkey", "read an extension with event['partitionkey'] or event.get('partitionkey')"),
        ("eventtype", "read an extension with event['eventtype'] or event.get('eventtype')"),
    ],
)
def test_a_wrong_name_that_is_read_names_the_right_one(name: str, advice: str) -> None:
    """A wrong name of a core attribute has the right one; an extension of that name stays an extension."""
    with pytest.raises(AttributeError) as caught:
        getattr(least(eventtype="x"), name)
    assert str(caught.value) == f"'Event' object has no attribute {name!r}; {advice}"
