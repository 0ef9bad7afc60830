"""Extensions: those that are documented, and those that users register."""

from __future__ import annotations

from typing import Any

import pytest
import strategies as make
from strategies import GOOD

from cloudevents_kafka import Event, InvalidEvent, Record, decode, from_record, to_record
from cloudevents_kafka.attributes.extension_types import parse_value, register_extension, type_of
from cloudevents_kafka.attributes.fast_validation import is_valid_fast
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.attributes.validation import find_problems


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sampledrate", "5", 5),
        ("deprecated", "true", True),
        ("dssematerial", "TWE=", b"Ma"),
        ("bamptxcompleted", "false", False),
        ("partitionkey", "5", "5"),
        ("unheardof", "5", "5"),
        ("unheardof", "true", "true"),
        ("sampledrate", "five", "five"),
    ],
)
def test_known_types_are_read_from_text(name: str, text: str, value: object) -> None:
    """A header's text becomes the type that its extension has, and nothing is guessed."""
    assert parse_value(name, text) == value
    assert type(parse_value(name, text)) is type(value)


@pytest.mark.usefixtures("registry")
def test_a_registered_type_counts_everywhere() -> None:
    """Once registered, an extension is typed from headers and from JSON, and checked in all events."""
    headers = [*make.required_headers, ("ce_mycount", b"5")]
    assert from_record(Record(headers=headers))["mycount"] == "5"
    register_extension(
        "mycount", AttributeType.INTEGER, rule="must be odd", accepts=lambda v: bool(int(v) % 2)
    )
    assert type_of("mycount") is AttributeType.INTEGER
    event = from_record(Record(headers=headers))
    assert event["mycount"] == 5
    assert event.text("mycount") == "5"
    assert Event(id="1", source="/", type="t", mycount="5") == event
    assert from_record(to_record(event, mode="structured")) == event
    assert b'"mycount":5' in (to_record(event, mode="structured").value or b"")
    for bad in (b"4", b"five"):
        assert "mycount" in str(
            getattr(decode(Record(headers=[*make.required_headers, ("ce_mycount", bad)])), "error", "")
        )
    with pytest.raises(InvalidEvent, match="must be odd"):
        Event(id="1", source="/", type="t", mycount=4)


@pytest.mark.usefixtures("registry")
def test_registering_a_text_again_brings_its_rule_into_force() -> None:
    """Nothing that proved good before is remembered against a new rule."""
    given = {**GOOD, "mytext": "loud"}
    assert is_valid_fast(given)
    register_extension("mytext", AttributeType.STRING, rule="must be quiet", accepts=lambda v: v != "loud")
    assert not is_valid_fast(given)
    assert [p.rule for p in find_problems(given)] == ["must be quiet"]
    register_extension("mytext", AttributeType.STRING)
    assert find_problems(given) == []


@pytest.mark.parametrize("name", ["", "data", "My", "my_ext", "id", "time", "a\n", None, 5])
def test_what_is_no_extension_cannot_be_registered(name: Any) -> None:
    """A core attribute's type stands in the specification."""
    with pytest.raises(ValueError, match="the name of an extension must"):
        register_extension(name, AttributeType.STRING)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("other", ["X-Y", "", "data"])
def test_what_no_attribute_is_named_cannot_be_needed(other: str) -> None:
    """Else no event with the extension would be good."""
    with pytest.raises(ValueError, match=r"for mine, needs must have names of attributes"):
        register_extension("mine", AttributeType.STRING, needs=["subject", other])


@pytest.mark.usefixtures("registry")
def test_a_rule_that_fails_turns_the_value_down() -> None:
    """Strangers send what its author did not think of, and that must not stop a loop."""
    register_extension("attempt", AttributeType.STRING, rule="must be odd", accepts=lambda v: int(v) % 2 == 1)
    for text, good in ((b"5", True), (b"4", False), (b"five", False)):
        result = decode(Record(headers=[*make.required_headers, ("ce_attempt", text)]))
        assert ("must be odd" in str(getattr(result, "error", ""))) is not good


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("kind", "more", "said"),
    [
        ("Integer", {}, "must be an AttributeType"),
        (AttributeType.STRING, {"needs": "subject"}, "needs must be a list of names, got 'subject'"),
        (AttributeType.STRING, {"needs": 5}, "needs must be a list of names, got 5"),
        (AttributeType.STRING, {"needs": [5]}, "needs must be a list of names"),
        (AttributeType.STRING, {"needs": b"ab"}, "needs must be a list of names"),
        (AttributeType.STRING, {"rule": 5}, "rule a str"),
        (AttributeType.STRING, {"accepts": True}, "accepts must be a function"),
    ],
)
def test_what_makes_no_extension_is_refused(kind: Any, more: Any, said: str) -> None:
    """At once, and not when the first event has it."""
    with pytest.raises(TypeError, match=said):
        register_extension("mine", kind, **more)
