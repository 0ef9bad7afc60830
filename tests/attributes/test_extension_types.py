"""Known extensions: documented and registered ones."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka import Event, InvalidEvent, Record, decode, from_record, to_record
from cloudevents_kafka.attributes.extension_types import (
    parse_value,
    parse_values,
    register_extension,
    type_of,
)
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue
from cloudevents_kafka.attributes.validation import find_problems
from tests.support import strategies as make
from tests.support.cases import each
from tests.support.strategies import GOOD


@each(
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
    """The text of a header becomes the type of its extension; no type is guessed."""
    assert parse_value(name, text) == value
    assert type(parse_value(name, text)) is type(value)


@pytest.mark.usefixtures("registry")
def test_a_registered_type_applies_everywhere() -> None:
    """A registered extension has its type from headers and from JSON, and is validated in all events."""
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
def test_registering_again_invalidates_caches() -> None:
    """A value that was valid before a registration is checked by the new rule."""
    given = {**GOOD, "mytext": "loud"}
    assert accept(given)
    register_extension("mytext", AttributeType.STRING, rule="must be quiet", accepts=lambda v: v != "loud")
    assert not accept(given)
    assert [p.rule for p in find_problems(given)] == ["must be quiet"]
    register_extension("mytext", AttributeType.STRING)
    assert find_problems(given) == []


@each("name", ["", "data", "My", "my_ext", "id", "time", "a\n", None, 5])
def test_invalid_names_are_not_registered(name: Any) -> None:
    """An extension must have a valid name, and not that of a core attribute."""
    with pytest.raises(ValueError, match="the name of an extension must"):
        register_extension(name, AttributeType.STRING)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("other", ["X-Y", "", "data"])
def test_needs_must_be_names(other: str) -> None:
    """An extension cannot need a name that no attribute can have; the error has the first."""
    with pytest.raises(ValueError, match=rf"for mine, needs must have attribute names.*, got '{other}'$"):
        register_extension("mine", AttributeType.STRING, needs=["subject", other, "Y"])


def test_texts_are_not_copied() -> None:
    """Attributes without a known type are returned themselves, others with their values."""
    texts: dict[str, AttributeValue] = {"id": "1", "unheardof": "5"}
    assert parse_values(texts) is texts
    assert parse_values({**texts, "sampledrate": "5"}) == {**texts, "sampledrate": 5}
    wrong: dict[str, AttributeValue] = {"sampledrate": "five"}
    assert parse_values(wrong) == wrong
    assert parse_values(wrong) is not wrong


@pytest.mark.usefixtures("registry")
def test_an_exception_in_a_rule_refuses_the_value() -> None:
    """A rule that raises for untrusted input makes the event invalid, and stops no loop."""
    register_extension("attempt", AttributeType.STRING, rule="must be odd", accepts=lambda v: int(v) % 2 == 1)
    for text, good in ((b"5", True), (b"4", False), (b"five", False)):
        result = decode(Record(headers=[*make.required_headers, ("ce_attempt", text)]))
        assert ("must be odd" in str(getattr(result, "error", ""))) is not good


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("type_", "more", "expected"),
    [
        ("Integer", {}, "must be an AttributeType"),
        (AttributeType.STRING, {"needs": "subject"}, "needs must be a list of names, got 'subject'"),
        (AttributeType.STRING, {"needs": 5}, "needs must be a list of names, got 5"),
        (AttributeType.STRING, {"needs": [5]}, "needs must be a list of names"),
        (AttributeType.STRING, {"needs": b"ab"}, "needs must be a list of names"),
        (AttributeType.STRING, {"rule": 5}, "rule must be a str"),
        (AttributeType.STRING, {"accepts": True}, "accepts must be a function"),
    ],
)
def test_arguments_of_other_types_are_refused(type_: Any, more: Any, expected: str) -> None:
    """Registration checks its arguments at once."""
    with pytest.raises(TypeError, match=expected):
        register_extension("mine", type_, **more)
