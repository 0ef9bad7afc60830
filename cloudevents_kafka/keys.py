"""Key mappers: from an event to the key of its record, and back; all opt-in.

By default a record has the key that the user gives, or none (Kafka binding 3.1). A
mapper neither changes the event nor adds to it; what it maps from is sent as well.
"""

from __future__ import annotations

from collections.abc import Callable

from cloudevents_kafka.attributes import is_name
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record

KeyMapper = Callable[[Event], str | bytes | None]
"""Gives the key for an event; text becomes UTF-8, None is no key."""

ReverseKeyMapper = Callable[[Event, Record], Event]
"""Gives the event that a receiver wants, from the one that was read and its record."""


def partition_key(event: Event) -> str | None:
    """Map the ``partitionkey`` extension to the key, as it is (Kafka binding 3.1)."""
    return event.text("partitionkey")


def attribute_key(name: str) -> KeyMapper:
    """Make a mapper of any attribute's canonical text: ``attribute_key("subject")``."""

    def from_attribute(event: Event) -> str | None:
        return event.text(name)

    return from_attribute


def first_of(*mappers: KeyMapper) -> KeyMapper:
    """Make a mapper that asks several in turn, and takes the first key that is not None."""

    def first(event: Event) -> str | bytes | None:
        return next((key for mapper in mappers if (key := mapper(event)) is not None), None)

    return first


def key_to_attribute(name: str) -> ReverseKeyMapper:
    """Make a reverse mapper that puts the key's text into an attribute, where it has none.

    What the event says of itself stays. A key that is null, empty or not UTF-8 adds
    nothing: the specification defines no such mapping, so it must not break the event.
    `ValueError` for a name that no attribute can have.
    """
    if not is_name(name):
        raise ValueError(f"{name!r} cannot name an attribute: lower-case a-z and 0-9, and not data")

    def to_attribute(event: Event, record: Record) -> Event:
        if not record.key or name in event:
            return event
        try:
            return event.replace(**{name: record.key.decode()})
        except ValueError:  # no UTF-8, or a text that this attribute cannot have
            return event

    return to_attribute
