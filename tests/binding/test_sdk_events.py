"""Events of the SDK in one pass: the same records and errors as by way of an `Event`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest
import strategies as make
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import EncodeError, Event, InvalidEvent, Record, to_record
from cloudevents_kafka.attributes.extension_types import current, register_extension, restore
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.binding import _sdk_events
from cloudevents_kafka.binding._sdk_events import take_event
from cloudevents_kafka.event import raw_parts

TIME = datetime(2018, 4, 5, 17, 31, tzinfo=UTC)
GOOD: dict[str, Any] = {
    "specversion": "1.0",
    "id": "1",
    "source": "/s",
    "type": "t",
    "time": TIME,
    "ext": "x",
}


class Color(StrEnum):
    """A text whose class is not str."""

    RED = "red"


class Source:
    """An event as the SDK has it."""

    def __init__(self, attributes: dict[str, Any], data: Any = None) -> None:
        self.attributes = attributes
        self.data = data

    def get_attributes(self) -> dict[str, Any]:
        return self.attributes

    def get_data(self) -> Any:
        return self.data


hostile = st.one_of(
    st.sampled_from(
        [None, "", "a\n", "\x7f", "é", "\ud800", '"', "\\", "a b", "\ufffe", "1.0", "x", Color.RED, 5, 2**31]
    ),
    st.sampled_from(
        [True, b"x", bytearray(b"x"), 1.5, TIME, TIME.replace(tzinfo=None), "application/cloudevents"]
    ),
    st.sampled_from([TIME.replace(tzinfo=timezone(timedelta(hours=2, seconds=1))), "2018-04-05T17:31:00Z"]),
)
data = st.one_of(
    st.none(), st.binary(), make.json_values, st.just(float("nan")), st.sampled_from(["é", {1: b"x"}, {1}])
)


def outcome(work: Any) -> Any:
    """Return the record, or the text and the class of the error."""
    try:
        return work()
    except (InvalidEvent, EncodeError) as error:
        return type(error), str(error)


def by_event(source: Source) -> Record:
    """Return the record of a source by way of an `Event`, which nothing compiles."""
    return to_record(Event.of(source))


@given(
    make.attributes(), st.sampled_from([None, "application/json", "text/plain", "image/png"]), data, st.data()
)
def test_records_and_errors_are_those_of_the_event(
    attributes: dict[str, Any], content_type: str | None, payload: Any, more: st.DataObject
) -> None:
    """The first record of a source, the next, and that of a source with one other value."""
    attributes["specversion"] = "1.0"
    if content_type is not None:
        attributes["datacontenttype"] = content_type
    name = more.draw(st.sampled_from(list(attributes)))
    other = Source({**attributes, name: more.draw(hostile)}, more.draw(data))
    for source in (
        Source(attributes, payload),
        Source(attributes, payload),
        other,
        Source(attributes, payload),
    ):
        before = dict(source.attributes)
        assert outcome(lambda source=source: to_record(source)) == outcome(
            lambda source=source: by_event(source)
        )
        assert source.attributes == before


@pytest.mark.parametrize("more", [{}, {"n": 5, "b": False, "raw": b"Ma"}, {"time": "2018-04-05T17:31:00Z"}])
def test_the_second_event_is_taken_in_one_pass(more: dict[str, Any], registry: None) -> None:
    """Its attributes, payload and kind are those of `Event.of`, and the headers need no other function."""
    restore({})
    source = Source({**GOOD, **more}, {"a": 1})
    event, written = take_event(source)
    assert written is None
    for _ in range(2):
        again, written = take_event(source)
        assert written is not None
        assert (raw_parts(again), again.payload, again.kind) == (raw_parts(event), event.payload, event.kind)
        assert written == (to_record(event).headers, b'{"a":1}')


def test_types_that_vary_are_not_compiled_again(registry: None) -> None:
    """After an event with other types the names have no function any more, and records stay right."""
    restore({})
    for value in ("x", "x", 5, "x", 5):
        source = Source({**GOOD, "ext": value})
        assert to_record(source) == by_event(source)
    assert current.table.writers == {tuple(GOOD): None}


@pytest.mark.parametrize("value", [None, Color.RED])
def test_values_that_change_their_class(value: Any, registry: None) -> None:
    """A null is left out, and an enum becomes a text, also in the second event with these names."""
    restore({})
    for _ in range(2):
        source = Source({**GOOD, "ext": value})
        assert to_record(source) == by_event(source)
        assert type(take_event(source)[0].text("ext")) is (str if value else type(None))


def test_registrations_apply_to_the_next_event(registry: None) -> None:
    """A name that was any text becomes an Integer."""
    source = Source({**GOOD, "ext": "five"})
    for _ in range(3):
        to_record(source)
    register_extension("ext", AttributeType.INTEGER)
    for _ in range(2):
        with pytest.raises(InvalidEvent, match="ext"):
            to_record(source)
        assert take_event(Source({**GOOD, "ext": "5"}))[0]["ext"] == 5


def test_the_functions_are_bounded(registry: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a number of names is kept, none that are long or many."""
    restore({})
    monkeypatch.setattr(_sdk_events, "_MAX_WRITERS", 5)
    for number in range(20):
        for more in (
            {f"x{number}y{index}": "v" for index in range(100)},
            {"x" * 300: "v"},
            {f"x{number}": "v"},
        ):
            source = Source({**GOOD, **more})
            assert to_record(source) == to_record(source) == by_event(source)
    assert list(current.table.writers) == [(*GOOD, f"x{number}") for number in range(5)]


def test_a_content_type_of_cloudevents_is_refused() -> None:
    """K-20, also if the same names were written before."""
    for _ in range(2):
        to_record(Source({**GOOD, "datacontenttype": "text/plain"}, b""))
    with pytest.raises(EncodeError, match="K-20"):
        to_record(Source({**GOOD, "datacontenttype": "application/cloudevents+json"}, b""))
