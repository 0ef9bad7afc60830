"""Key mappers: from an event to the key of its record, and back; all opt-in.

By default a record has the key that the user gives, or none (Kafka binding 3.1). A
mapper neither changes the event nor adds to it; what it maps from is sent as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cloudevents_kafka.attributes.types import is_name
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record

KeyMapper = Callable[[Event], str | bytes | None]
"""Gives the key for an event; text becomes UTF-8, None is no key."""

ReverseKeyMapper = Callable[[Event, Record], Event]
"""Gives the event that a receiver wants, from the one that was read and its record."""


def partition_key(event: Event) -> str | None:
    """Map the ``partitionkey`` extension to the key, as it is (Kafka binding 3.1)."""
    return event.text("partitionkey")


# Mappers are partials of functions of this module, so that they can be pickled for other processes.


def attribute_key(name: str) -> KeyMapper:
    """Return a mapper of any attribute's canonical text: ``attribute_key("subject")``."""
    return partial(_attribute_text, name)


def _attribute_text(name: str, event: Event) -> str | None:
    return event.text(name)


def first_of(*mappers: KeyMapper) -> KeyMapper:
    """Return a mapper that asks several in turn, and takes the first key that is not None."""
    return partial(_first_key, mappers)


def _first_key(mappers: tuple[KeyMapper, ...], event: Event) -> str | bytes | None:
    return next((key for mapper in mappers if (key := mapper(event)) is not None), None)


def key_to_attribute(name: str) -> ReverseKeyMapper:
    """Return a reverse mapper that puts the key's text into an attribute that the event does not have.

    What the event says of itself stays. A key that is null, empty or not UTF-8 adds
    nothing: the specification defines no such mapping, so it must not break the event.
    `ValueError` for a name that no attribute can have.
    """
    if not is_name(name):
        raise ValueError(f"{name!r} cannot name an attribute: lower-case a-z and 0-9, and not data")

    return partial(_with_key, name)


def _with_key(name: str, event: Event, record: Record) -> Event:
    if not record.key or name in event:
        return event
    try:
        return event.replace(**{name: record.key.decode()})
    except ValueError:  # no UTF-8, or a text that this attribute cannot have
        return event
