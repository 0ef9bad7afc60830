"""The expiry of events (extension expirytime), and the sunset of event types (extension deprecation).

Consumers and intermediaries may skip an event when its ``expirytime`` has come (extension expirytime).
Consumers may also process an expired event, and clocks may differ. Intermediaries may change the
``expirytime`` but must not remove it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from cloudevents_kafka.attributes.timestamps import instant, is_timestamp
from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.event import Event

ItemT = TypeVar("ItemT", bound=Decoded | Undecodable)
Clock = Callable[[], datetime]
_utc_now = partial(datetime.now, UTC)


def expires_at(event: Event) -> datetime | None:
    """Return the event's ``expirytime``, or None if the event has no ``expirytime``.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import expires_at
        >>> expires_at(Event(id="1", source="/shop", type="t", expirytime="2026-01-01T11:00:00Z"))
        datetime.datetime(2026, 1, 1, 11, 0, tzinfo=datetime.timezone.utc)
    """
    moment = event.get("expirytime")
    return moment if isinstance(moment, datetime) else None


def is_expired(event: Event, now: datetime | None = None) -> bool:
    """Return whether the event's ``expirytime`` is now or earlier (extension expirytime, Usage).

    By default, ``now`` is the current time. Times are compared exactly, with all digits of the fraction of a
    second. Raises `ValueError` if ``now`` has no UTC offset.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import is_expired
        >>> is_expired(Event(id="1", source="/shop", type="t", expirytime="2026-01-01T11:00:00Z"))
        True
    """
    return _has_passed(event.text("expirytime"), now, inclusive=True)


def is_past_sunset(event: Event, now: datetime | None = None) -> bool:
    """Return whether the ``deprecationsunset`` of the event's type is earlier than now.

    After the ``deprecationsunset``, consumers should not process events of the type, and producers should not
    send these events (extension deprecation, Usage). The argument ``now`` has the same meaning as in
    `is_expired`.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import is_past_sunset
        >>> event = Event(id="1", source="/shop", type="t", deprecated=True)
        >>> is_past_sunset(event.replace(deprecationsunset="2026-01-01T00:00:00Z"))
        True
    """
    return _has_passed(event.text("deprecationsunset"), now, inclusive=False)


def _has_passed(text: str | None, now: datetime | None, *, inclusive: bool) -> bool:
    if text is None or not is_timestamp(text):
        return False
    clock = _utc_now() if now is None else now
    if clock.utcoffset() is None:
        raise ValueError("now must have an offset (tzinfo), such as datetime.now(UTC)")
    moment, current = instant(text), (clock, "")
    return moment < current or (inclusive and moment == current)


def unexpired(items: Iterable[ItemT], clock: Clock = _utc_now) -> Iterator[ItemT]:
    """Yield all items of an `EventConsumer`, except events that are expired.

    Examples:
        >>> from cloudevents_kafka import EventConsumer
        >>> from cloudevents_kafka.extensions import unexpired
        >>> with EventConsumer(consumer, strict=True) as events:
        ...     print([item.event.id for item in unexpired(events.items(idle_timeout=0.1))])
        ['1', '2']
    """
    for item in items:
        if isinstance(item, Undecodable) or not is_expired(item.event, clock()):
            yield item
