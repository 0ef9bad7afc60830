"""Expiry: events that are of no use after a moment (extension expirytime), and types after their sunset.

Consumers and intermediaries may pass over an event from that moment on; nobody has to,
and clocks differ. Who forwards an event may change the moment but not take it away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from cloudevents_kafka.attributes.timestamps import instant, is_timestamp
from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.event import Event

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


def expires_at(event: Event) -> datetime | None:
    """Return the moment after which the event is of no use; None where it tells none."""
    moment = event.get("expirytime")
    return moment if isinstance(moment, datetime) else None


def is_expired(event: Event, now: datetime | None = None) -> bool:
    """Tell whether an event's moment has come: at it, and after it (extension expirytime, Usage).

    ``now`` has an offset, else `ValueError`; it is the clock's if None. Exact to the last digit.
    """
    return _is_over(event.text("expirytime"), now, at_it=True)


def is_past_sunset(event: Event, now: datetime | None = None) -> bool:
    """Tell whether the sunset of an event's type was before now (extension deprecation, Usage).

    From then on consumers should stop processing such events, and producers sending them.
    """
    return _is_over(event.text("deprecationsunset"), now, at_it=False)


def _is_over(text: str | None, now: datetime | None, *, at_it: bool) -> bool:
    if text is None or not is_timestamp(text):
        return False
    clock = _now() if now is None else now
    if clock.utcoffset() is None:
        raise ValueError("now needs an offset (tzinfo), as every expiry has one: datetime.now(UTC)")
    moment, told = instant(text), (clock, "")
    return moment < told or (at_it and moment == told)


def unexpired(items: Iterable[Decoded | Undecodable], clock: Clock = _now) -> Iterator[Decoded | Undecodable]:
    """Pass over the events of a consumer whose moment has come; all else is given on.

    ``for item in unexpired(EventConsumer(client)): …``
    """
    for item in items:
        if isinstance(item, Undecodable) or not is_expired(item.event, clock()):
            yield item
