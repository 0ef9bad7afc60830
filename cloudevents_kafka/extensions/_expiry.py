"""Expiry: events past their ``expirytime``, and event types past their sunset.

Consumers and intermediaries may skip an event from its ``expirytime`` on (extension expirytime);
they do not have to, and clocks differ. Intermediaries may change the time but not remove it.
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
    """Return the event's ``expirytime``, or None if it has none."""
    moment = event.get("expirytime")
    return moment if isinstance(moment, datetime) else None


def is_expired(event: Event, now: datetime | None = None) -> bool:
    """Return whether the event's ``expirytime`` is now or earlier (extension expirytime, Usage).

    ``now`` is the current time by default. Times are compared exactly, to the last digit.
    Raises `ValueError` if ``now`` has no offset.
    """
    return _has_passed(event.text("expirytime"), now, inclusive=True)


def is_past_sunset(event: Event, now: datetime | None = None) -> bool:
    """Return whether the ``deprecationsunset`` of the event's type is earlier than now.

    After it, consumers should not process such events, and producers should not send them
    (extension deprecation, Usage). ``now`` is as in `is_expired`.
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
    """Yield the items of an `EventConsumer` except expired events."""
    for item in items:
        if isinstance(item, Undecodable) or not is_expired(item.event, clock()):
            yield item
