"""A small shop: orders that are placed, paid, packed, shipped, delivered, or come to another end.

The same seed gives the same events, to the byte. Times run over some days of March
2026; the order of events is that of their times, as a topic would have them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from cloudevents_kafka.event import Event

_OPENING: Final = datetime(2026, 3, 2, 7, 30, tzinfo=UTC)
_STEP: Final = timedelta(minutes=10)
_TYPES: Final = "com.example.shop"
_SCHEMAS: Final = "https://schemas.example.com/shop"
_GOODS: Final = (
    *(("TEA-0007", "Darjeeling, 100 g", 1290), ("TEA-0031", "Sencha, 100 g", 1450)),
    *(("CUP-0002", "Tasse, weiß", 990), ("CUP-0013", "湯呑み", 2350), ("POT-0001", "Théière", 4900)),
    *(("HON-0005", "Miód lipowy, 250 g", 890), ("BIS-0009", "Shortbread, 200 g", 540)),
)
_NOTES: Final = ("Happy birthday, Zoë! 🎂", "Für die beste Nachbarin", "ありがとう", "See you soon — M.")
_WAREHOUSES: Final = ("berlin", "lyon", "gdańsk")
_CARRIERS: Final = ("post", "bike", "parcel-network")


def events(seed: int, count: int) -> Iterator[Event]:
    """Tell the first `count` things that happen in the shop, in the order of their times."""
    shop = Shop(Random(seed))
    waiting: list[tuple[datetime, int, Event]] = []
    told = serial = 0
    while told < count:
        opened = shop.next_order_at()
        while waiting and waiting[0][0] <= opened and told < count:
            yield heapq.heappop(waiting)[2]
            told += 1
        for event in shop.happenings():
            serial += 1
            heapq.heappush(waiting, (_time_of(event), serial, event))


def _time_of(event: Event) -> datetime:
    assert event.time is not None
    return event.time


class Shop:
    """Makes up orders, one after the other, and what becomes of each."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = _OPENING
        self._orders = 0
        self._events = 0

    def next_order_at(self) -> datetime:
        """Wait for the next customer; gives the time."""
        self._now += timedelta(milliseconds=self._random.randint(20_000, 900_000))
        return self._now

    def happenings(self) -> list[Event]:
        """Tell all that happens about the next order, and now and then in the warehouse."""
        self._orders += 1
        order = f"2026-{self._orders:06d}"
        story = self._order(order)
        if self._random.random() < 0.25:
            story.append(self._stock())
        return story

    def _order(self, order: str) -> list[Event]:
        lines = self._lines()
        total = sum(line["cents"] * line["pieces"] for line in lines)
        placed = {"order": order, "lines": lines, "total": {"cents": total, "currency": "EUR"}}
        story = [self._event("order.placed", order, placed, 0, dataschema=f"{_SCHEMAS}/order-placed/1")]
        if self._random.random() < 0.1:
            story.append(self._note(order))
        fate = self._random.random()
        if fate < 0.08:
            reason = self._random.choice(["changed mind", "found cheaper", "ordered twice"])
            return [*story, self._event("order.cancelled", order, {"order": order, "reason": reason}, 1)]
        if fate < 0.14:
            story.append(
                self._event("payment.failed", order, {"order": order, "code": "insufficient_funds"}, 1)
            )
        story.append(self._event("order.paid", order, {"order": order, "cents": total, "method": "card"}, 2))
        story += self._delivery(order)
        return story

    def _delivery(self, order: str) -> list[Event]:
        carrier = self._random.choice(_CARRIERS)
        label = b"\x89LBL\r\n\x00" + self._random.randbytes(48)
        shipped = {"order": order, "carrier": carrier, "parcels": self._random.randint(1, 3)}
        story = [
            self._event("label.printed", order, label, 3, datacontenttype="application/octet-stream"),
            self._event("order.shipped", order, shipped, 5, priority=self._random.choice([1, 2, 3])),
            self._event(
                "order.delivered", order, {"order": order, "signed": self._random.random() < 0.5}, 60
            ),
        ]
        if self._random.random() < 0.05:
            story.append(self._event("order.returned", order, {"order": order, "reason": "broken"}, 30))
        # Says all by its type and subject: an event without data.
        return [*story, self._event("order.closed", order, None, 36)]

    def _lines(self) -> list[dict[str, Any]]:
        chosen = self._random.sample(_GOODS, self._random.randint(1, 3))
        return [
            {"article": number, "name": name, "cents": cents, "pieces": self._random.randint(1, 4)}
            for number, name, cents in chosen
        ]

    def _note(self, order: str) -> Event:
        text = self._random.choice(_NOTES)
        return self._event("note.added", order, text, 1, datacontenttype="text/plain; charset=utf-8")

    def _stock(self) -> Event:
        number, _, _ = self._random.choice(_GOODS)
        place = self._random.choice(_WAREHOUSES)
        data = {"article": number, "pieces": self._random.randint(0, 400)}
        return self._make("stock.counted", f"/warehouse/{place}", number, data, self._now)

    def _event(self, kind: str, order: str, data: Any, steps: int, **more: Any) -> Event:
        """Make an event of an order, so many steps after it was placed; all of an order have its key."""
        spread = timedelta(milliseconds=self._random.randint(200, 500_000))
        source = "/payments" if kind in {"order.paid", "payment.failed"} else "/shop/web"
        at = self._now + steps * _STEP + spread
        return self._make(kind, source, order, data, at, partitionkey=order, **more)

    def _make(self, kind: str, source: str, subject: str, data: Any, at: datetime, **more: Any) -> Event:
        self._events += 1
        if data is not None:
            more.setdefault("datacontenttype", "application/json")
        return Event(
            id=f"{self._events:08d}",
            source=source,
            type=f"{_TYPES}.{kind}",
            subject=subject,
            time=at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            data=data,
            **more,
        )
