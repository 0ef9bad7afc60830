"""Expiry: events that are of no use after a moment (extension expirytime).

Consumers and intermediaries may pass over an event from that moment on; nobody has to,
and clocks differ. Who forwards an event may change the moment but not take it away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from cloudevents_kafka.convert import Decoded, Undecodable
from cloudevents_kafka.event import Event
from cloudevents_kafka.timestamps import from_datetime, instant, is_timestamp

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


def expires_at(event: Event) -> datetime | None:
    """Return the moment after which the event is of no use; None where it tells none."""
    moment = event.get("expirytime")
    return moment if isinstance(moment, datetime) else None


def is_expired(event: Event, now: datetime | None = None) -> bool:
    """Tell whether an event's moment has come: at it, and after it (extension expirytime, Usage).

    ``now`` has an offset; it is the clock's if None. Exact to the last digit.
    """
    text = event.text("expirytime")
    if text is None or not is_timestamp(text):
        return False
    return instant(text) <= instant(from_datetime(_now() if now is None else now))


def unexpired(items: Iterable[Decoded | Undecodable], clock: Clock = _now) -> Iterator[Decoded | Undecodable]:
    """Pass over the events of a consumer whose moment has come; all else is given on.

    ``for item in unexpired(EventConsumer(client)): …``
    """
    for item in items:
        if isinstance(item, Undecodable) or not is_expired(item.event, clock()):
            yield item
