"""Key mappers, which choose the key of an event's record, and mappers that add a record's key to its event.

Without a key mapper, the key of a record is the key that the caller passes, or null. A key mapper must not
change the event (K-14: "A mapping function MUST NOT modify the CloudEvent"): the record contains all
attributes of the event.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cloudevents_kafka.attributes.types import is_name
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record

KeyMapper = Callable[[Event], str | bytes | None]
"""A function that returns the key of an event's record: bytes, a str, or None for no key."""

ReverseKeyMapper = Callable[[Event, Record], Event]
"""A function that takes an event and its record, and returns the event that the consumer returns."""


def partition_key(event: Event) -> str | None:
    """Return the ``partitionkey`` extension as the key (K-13: "as-is, if present").

    Examples:
        >>> from cloudevents_kafka import Event, partition_key, to_record
        >>> event = Event(id="1", source="/shop", type="order.placed", partitionkey="customer-4")
        >>> to_record(event, key_mapper=partition_key).key
        b'customer-4'
    """
    return event.text("partitionkey")


# The mappers below are partials of module functions, so that they can be pickled.


def attribute_key(name: str) -> KeyMapper:
    """Return a key mapper whose keys are the canonical texts of one attribute, such as ``subject``.

    Examples:
        >>> from cloudevents_kafka import Event, attribute_key, to_record
        >>> event = Event(id="1", source="/shop", type="order.placed", subject="order-17")
        >>> to_record(event, key_mapper=attribute_key("subject")).key
        b'order-17'
    """
    return partial(_attribute_text, name)


def _attribute_text(name: str, event: Event) -> str | None:
    return event.text(name)


def first_of(*mappers: KeyMapper) -> KeyMapper:
    """Return a key mapper that calls ``mappers`` in turn and returns the first key that is not None.

    Examples:
        >>> from cloudevents_kafka import Event, attribute_key, first_of, partition_key, to_record
        >>> mapper = first_of(partition_key, attribute_key("subject"))
        >>> to_record(Event(id="1", source="/shop", type="order.placed", subject="17"), key_mapper=mapper).key
        b'17'
    """
    return partial(_first_key, mappers)


def _first_key(mappers: tuple[KeyMapper, ...], event: Event) -> str | bytes | None:
    return next((key for mapper in mappers if (key := mapper(event)) is not None), None)


def key_to_attribute(name: str) -> ReverseKeyMapper:
    """Return a function that sets an absent attribute of an event to the text of the record's key.

    The event is unchanged if the key is null, empty or not UTF-8, or if the key's text is not a valid value
    of the attribute. The CloudEvents specification does not define how the key of a record becomes an
    attribute, so a key must not make the event invalid. Raises `ValueError` if ``name`` is not a valid
    attribute name.

    Examples:
        >>> from cloudevents_kafka import EventConsumer, key_to_attribute
        >>> events = EventConsumer(consumer, strict=True, reverse_key_mapper=key_to_attribute("customer"))
        >>> [item.event["customer"] for item in events.items(idle_timeout=0)]
        ['customer-4', 'customer-4']
    """
    if not is_name(name):
        raise ValueError(f"an attribute name must have only a-z and 0-9 and not be 'data', got {name!r}")

    return partial(_with_key, name)


def _with_key(name: str, event: Event, record: Record) -> Event:
    if not record.key or name in event:
        return event
    try:
        return event.replace(**{name: record.key.decode()})
    except ValueError:  # not UTF-8, or a text that this attribute cannot have
        return event


def check_key_mapper(mapper: object) -> None:
    """Raise `TypeError` unless a key mapper is a function or None."""
    if mapper is not None and not callable(mapper):
        advice = f"attribute_key({mapper!r})" if isinstance(mapper, str) else "partition_key"
        raise TypeError(f"key_mapper must be a function of an event, got {mapper!r}; use {advice}") from None
