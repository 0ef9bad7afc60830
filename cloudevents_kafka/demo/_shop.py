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
    pending: list[tuple[str, str, Event]] = []  # a heap; the id keeps equal times in order
    yielded = 0
    while yielded < count:
        order_time, events = shop.next_order()
        while pending and pending[0][0] <= order_time and yielded < count:
            yield heapq.heappop(pending)[2]
            yielded += 1
        for event in events:
            heapq.heappush(pending, (str(event.text("time")), event.id, event))


def _format_time(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Shop:
    """A generator of orders, one after the other, with all events of each."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = _FIRST_DAY
        self._orders = 0
        self._events = 0

    def next_order(self) -> tuple[str, list[Event]]:
        """Return the time of the next order, and all of its events, with sometimes one of a warehouse."""
        self._now += timedelta(milliseconds=self._random.randint(20_000, 900_000))
        self._orders += 1
        order = f"2026-{self._orders:06d}"
        events = [*self._payment_events(order)]
        if events[-1].type.endswith("order.paid"):
            events += self._delivery_events(order)
        if self._random.random() < 0.25:
            events.append(self._stock_counted())
        return _format_time(self._now), events

    def _payment_events(self, order: str) -> Iterator[Event]:
        """Yield the events until an order is paid or cancelled."""
        lines = self._order_lines()
        total = sum(line["cents"] * line["pieces"] for line in lines)
        placed = {"order": order, "lines": lines, "total": {"cents": total, "currency": "EUR"}}
        yield self._order_event("order.placed", order, placed, 0, dataschema=f"{_SCHEMAS}/order-placed/1")
        if self._random.random() < 0.1:
            text = self._random.choice(_NOTES)
            plain = "text/plain; charset=utf-8"
            yield self._order_event("note.added", order, text, 1, datacontenttype=plain)
        outcome = self._random.random()
        if outcome < 0.08:
            reason = self._random.choice(["changed mind", "found cheaper", "ordered twice"])
            yield self._order_event("order.cancelled", order, {"order": order, "reason": reason}, 1)
            return
        if outcome < 0.14:
            failed = {"order": order, "code": "insufficient_funds"}
            yield self._order_event("payment.failed", order, failed, 1)
        paid = {"order": order, "cents": total, "method": "card"}
        yield self._order_event("order.paid", order, paid, 2)

    def _delivery_events(self, order: str) -> Iterator[Event]:
        label = b"\x89LBL\r\n\x00" + self._random.randbytes(48)
        yield self._order_event("label.printed", order, label, 3, datacontenttype="application/octet-stream")
        carrier, priority = self._random.choice(_CARRIERS), self._random.randint(1, 3)
        shipped = {"order": order, "carrier": carrier, "parcels": self._random.randint(1, 3)}
        yield self._order_event("order.shipped", order, shipped, 5, priority=priority)
        delivered = {"order": order, "signed": self._random.random() < 0.5}
        yield self._order_event("order.delivered", order, delivered, 60)
        if self._random.random() < 0.05:
            yield self._order_event("order.returned", order, {"order": order, "reason": "broken"}, 30)
        # An event without data: its type and subject have all the information.
        yield self._order_event("order.closed", order, None, 36)

    def _order_lines(self) -> list[dict[str, Any]]:
        articles = self._random.sample(_ARTICLES, self._random.randint(1, 3))
        return [
            {"article": number, "name": name, "cents": cents, "pieces": self._random.randint(1, 4)}
            for number, name, cents in articles
        ]

    def _stock_counted(self) -> Event:
        number, _, _ = self._random.choice(_ARTICLES)
        source = f"/warehouse/{self._random.choice(_WAREHOUSES)}"
        data = {"article": number, "pieces": self._random.randint(0, 400)}
        return self._event("stock.counted", self._now, data, source=source, subject=number)

    def _order_event(self, name: str, order: str, data: Any, steps: int, **attributes: Any) -> Event:
        """Return an event of an order, ``steps`` after it was placed; the order is the partition key."""
        spread = timedelta(milliseconds=self._random.randint(200, 500_000))
        source = "/payments" if name in {"order.paid", "payment.failed"} else "/shop/web"
        attributes |= {"source": source, "subject": order, "partitionkey": order}
        return self._event(name, self._now + steps * _STEP + spread, data, **attributes)

    def _event(self, name: str, time: datetime, data: Any, **attributes: Any) -> Event:
        self._events += 1
        if data is not None:
            attributes.setdefault("datacontenttype", "application/json")
        id_, type_ = f"{self._events:08d}", f"{_TYPE_PREFIX}.{name}"
        return Event(id=id_, type=type_, time=_format_time(time), data=data, **attributes)
