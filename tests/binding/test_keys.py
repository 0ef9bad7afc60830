"""Key mappers are opt-in, pure, and replaced by an explicit key."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from cloudevents_kafka import (
    Event,
    Record,
    attribute_key,
    first_of,
    from_record,
    key_to_attribute,
    partition_key,
    to_record,
)
from tests.support.cases import each

EVENT = Event(id="1", source="/", type="t", subject="s", partitionkey="é", count=5)


@each(
    ("mapper", "key"),
    [
        (partition_key, "é".encode()),
        (attribute_key("subject"), b"s"),
        (attribute_key("count"), b"5"),
        (attribute_key("absent"), None),
        (first_of(attribute_key("absent"), attribute_key("subject"), partition_key), b"s"),
        (first_of(), None),
        (first_of(lambda _: b"", partition_key), b""),
        (lambda _: b"\xff\xfe", b"\xff\xfe"),
        (lambda _: "", b""),
    ],
)
@each("mode", ["binary", "structured"])
def test_a_mapper_returns_the_key_and_changes_nothing(mapper: Any, key: bytes | None, mode: Any) -> None:
    """The event does not change, and the mapped attribute is sent as well."""
    before = copy.deepcopy(dict(EVENT.attributes))
    record = to_record(EVENT, key_mapper=mapper, mode=mode)
    assert record.key == key
    assert dict(EVENT.attributes) == before
    assert dict(from_record(record).attributes).keys() == before.keys()
    assert from_record(record)["partitionkey"] == "é"


@each("key", [b"own", "own", b"", ""])
def test_an_explicit_key_wins(key: Any) -> None:
    """The mapper is not called if a key is passed, also an empty one."""

    def unasked(_: Event) -> str:
        raise AssertionError

    assert to_record(EVENT, key=key, key_mapper=unasked).key == (
        key if isinstance(key, bytes) else key.encode()
    )


def test_without_a_mapper_there_is_no_key() -> None:
    """The partitionkey extension alone does not set the key."""
    assert to_record(EVENT).key is None
    assert to_record(EVENT, key=None, key_mapper=None).key is None


@each("key", [5, 1.5, True, ["k"]])
def test_other_keys_are_refused(key: Any) -> None:
    """Objects are not converted to their Python text."""
    for arguments in ({"key": key}, {"key_mapper": lambda _: key}):
        with pytest.raises(TypeError, match="bytes or None"):
            to_record(EVENT, **arguments)


def test_a_mutable_key_is_copied() -> None:
    """Later changes to the caller's buffer do not change the record."""
    key: Any = bytearray(b"k")
    record = to_record(EVENT, key=key)
    key[:] = b"x"
    assert record.key == b"k"


@each(
    ("name", "key", "value"),
    [
        ("partitionkey", b"k", "é"),
        ("other", b"k", "k"),
        ("self", b"k", "k"),
        ("other", "é".encode(), "é"),
        ("other", None, None),
        ("other", b"", None),
        ("other", b"\xff", None),
        ("other", b"\x00", None),
        ("sampledrate", b"5", 5),
        ("sampledrate", b"many", None),
        ("datacontenttype", b"xyz", None),
    ],
)
def test_key_to_attribute(name: str, key: bytes | None, value: Any) -> None:
    """A valid key becomes the attribute if the event does not have it; else the event is unchanged."""
    event = key_to_attribute(name)(EVENT, Record(key=key))
    assert event.get(name) == value
    if value is None or name == "partitionkey":
        assert event is EVENT


@each("name", ["", "data", "my_ext", "Key"])
def test_key_to_attribute_needs_a_valid_name(name: str) -> None:
    """A mapper to an invalid name is refused when it is created."""
    with pytest.raises(ValueError, match="an attribute name must have"):
        key_to_attribute(name)


@each("key", [None, b"", b"k", b"\xff\xfe\x00"])
def test_reading_ignores_the_key(key: bytes | None) -> None:
    """Any bytes may be a key, and reading adds no attribute for them."""
    record = to_record(Event(id="1", source="/", type="t"), key=key)
    assert from_record(record) == Event(id="1", source="/", type="t")


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_a_hop_may_change_or_drop_the_partitionkey(mode: Any) -> None:
    """A removed partitionkey leaves the record's key; a changed one changes it if a mapper is passed."""
    event = Event(id="1", source="/", type="t", partitionkey="p")
    record = to_record(event, mode=mode, key_mapper=partition_key)
    dropped = to_record(event.replace(partitionkey=None), like=record)
    assert "partitionkey" not in from_record(dropped)
    assert dropped.key == b"p"
    changed = event.replace(partitionkey="q")
    assert to_record(changed, like=record).key == b"p"
    moved = to_record(changed, like=record, key_mapper=partition_key)
    assert (moved.key, from_record(moved)["partitionkey"]) == (b"q", "q")


@each("mapper", [partition_key, attribute_key("subject"), first_of(attribute_key("none"), partition_key)])
def test_mappers_are_pickled(mapper: Any) -> None:
    """Mappers can be pickled for Spark's workers and process pools."""
    again = pickle.loads(pickle.dumps(mapper))
    assert again(EVENT) == mapper(EVENT)


def test_reverse_mappers_are_pickled() -> None:
    """Reverse mappers can be pickled, too."""
    mapper = pickle.loads(pickle.dumps(key_to_attribute("customer")))
    assert mapper(EVENT, Record(key=b"c-4"))["customer"] == "c-4"
