"""The events of a small shop: orders are placed, paid, shipped, delivered, cancelled or returned.

The same seed generates the same events, byte for byte. Their times run over some days of March
2026, and the events are in the order of their times.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from cloudevents_kafka.event import Event

_FIRST_DAY: Final = datetime(2026, 3, 2, 7, 30, tzinfo=UTC)
_STEP: Final = timedelta(minutes=10)
_TYPE_PREFIX: Final = "com.example.shop"
_SCHEMAS: Final = "https://schemas.example.com/shop"
# Article number, name, price in cents. The names have letters outside ASCII and outside Latin.
_ARTICLES: Final = (
    ("TEA-0007", "Darjeeling, 100 g", 1290),
    ("TEA-0031", "Sencha, 100 g", 1450),
    ("CUP-0002", "Tasse, weiß", 990),
    ("CUP-0013", "湯呑み", 2350),
    ("POT-0001", "Théière", 4900),
    ("HON-0005", "Miód lipowy, 250 g", 890),
    ("BIS-0009", "Shortbread, 200 g", 540),
)
_NOTES: Final = ("Happy birthday, Zoë! 🎂", "Für die beste Nachbarin", "ありがとう", "See you soon — M.")
_WAREHOUSES: Final = ("berlin", "lyon", "gdańsk")
_CARRIERS: Final = ("post", "bike", "parcel-network")


def generate_events(seed: int, count: int) -> Iterator[Event]:
    """Yield the first ``count`` events of the shop, in the order of their times."""
    shop = _Shop(Random(seed))
    pending: list[tuple[datetime, int, Event]] = []  # a heap; the serial number keeps equal times in order
    yielded = serial = 0
    while yielded < count:
        order_time, events = shop.next_order()
        while pending and pending[0][0] <= order_time and yielded < count:
            yield heapq.heappop(pending)[2]
            yielded += 1
        for event in events:
            serial += 1
            heapq.heappush(pending, (_time_of(event), serial, event))


def _time_of(event: Event) -> datetime:
    assert event.time is not None
    return event.time


class _Shop:
    """A generator of orders, one after the other, with all events of each."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = _FIRST_DAY
        self._orders = 0
        self._events = 0

    def next_order(self) -> tuple[datetime, list[Event]]:
        """Return the time of the next order, and all of its events, with sometimes one of a warehouse."""
        self._now += timedelta(milliseconds=self._random.randint(20_000, 900_000))
        self._orders += 1
        events = self._order_events(f"2026-{self._orders:06d}")
        if self._random.random() < 0.25:
            events.append(self._stock_counted())
        return self._now, events

    def _order_events(self, order: str) -> list[Event]:
        lines = self._order_lines()
        total = sum(line["cents"] * line["pieces"] for line in lines)
        placed = {"order": order, "lines": lines, "total": {"cents": total, "currency": "EUR"}}
        events = [
            self._order_event("order.placed", order, placed, 0, dataschema=f"{_SCHEMAS}/order-placed/1")
        ]
        if self._random.random() < 0.1:
            events.append(self._note_added(order))
        outcome = self._random.random()
        if outcome < 0.08:
            reason = self._random.choice(["changed mind", "found cheaper", "ordered twice"])
            cancelled = {"order": order, "reason": reason}
            return [*events, self._order_event("order.cancelled", order, cancelled, 1)]
        if outcome < 0.14:
            failed = {"order": order, "code": "insufficient_funds"}
            events.append(self._order_event("payment.failed", order, failed, 1))
        paid = {"order": order, "cents": total, "method": "card"}
        events.append(self._order_event("order.paid", order, paid, 2))
        return events + self._delivery_events(order)

    def _delivery_events(self, order: str) -> list[Event]:
        carrier = self._random.choice(_CARRIERS)
        label = b"\x89LBL\r\n\x00" + self._random.randbytes(48)
        shipped = {"order": order, "carrier": carrier, "parcels": self._random.randint(1, 3)}
        events = [
            self._order_event("label.printed", order, label, 3, datacontenttype="application/octet-stream"),
            self._order_event("order.shipped", order, shipped, 5, priority=self._random.choice([1, 2, 3])),
            self._order_event(
                "order.delivered", order, {"order": order, "signed": self._random.random() < 0.5}, 60
            ),
        ]
        if self._random.random() < 0.05:
            returned = {"order": order, "reason": "broken"}
            events.append(self._order_event("order.returned", order, returned, 30))
        # An event without data: its type and subject have all the information.
        return [*events, self._order_event("order.closed", order, None, 36)]

    def _order_lines(self) -> list[dict[str, Any]]:
        articles = self._random.sample(_ARTICLES, self._random.randint(1, 3))
        return [
            {"article": number, "name": name, "cents": cents, "pieces": self._random.randint(1, 4)}
            for number, name, cents in articles
        ]

    def _note_added(self, order: str) -> Event:
        text = self._random.choice(_NOTES)
        return self._order_event("note.added", order, text, 1, datacontenttype="text/plain; charset=utf-8")

    def _stock_counted(self) -> Event:
        number, _, _ = self._random.choice(_ARTICLES)
        warehouse = self._random.choice(_WAREHOUSES)
        data = {"article": number, "pieces": self._random.randint(0, 400)}
        return self._event("stock.counted", f"/warehouse/{warehouse}", number, data, self._now)

    def _order_event(self, name: str, order: str, data: Any, steps: int, **attributes: Any) -> Event:
        """Return an event of an order, ``steps`` after it was placed; the order is the partition key."""
        spread = timedelta(milliseconds=self._random.randint(200, 500_000))
        source = "/payments" if name in {"order.paid", "payment.failed"} else "/shop/web"
        time = self._now + steps * _STEP + spread
        return self._event(name, source, order, data, time, partitionkey=order, **attributes)

    def _event(
        self, name: str, source: str, subject: str, data: Any, time: datetime, **attributes: Any
    ) -> Event:
        self._events += 1
        if data is not None:
            attributes.setdefault("datacontenttype", "application/json")
        return Event(
            id=f"{self._events:08d}",
            source=source,
            type=f"{_TYPE_PREFIX}.{name}",
            subject=subject,
            time=time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            data=data,
            **attributes,
        )
