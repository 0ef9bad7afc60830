"""The events of a small shop, whose orders are placed, paid, shipped, delivered, cancelled or returned.

The same seed generates the same events, byte for byte. The times of the events lie in some days of March
2026, and the events are sorted by time.
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
_SCHEMA: Final = "https://schemas.example.com/shop/order-placed/1"
# Article number, name, price in cents. The names have letters that are not Latin.
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
_JSON: Final = {"datacontenttype": "application/json"}
_Draft = tuple[str, int, dict[str, Any]]  # a type, how many steps after the order, and attributes


def generate_events(seed: int, count: int) -> Iterator[Event]:
    """Yield the first ``count`` events of the shop, sorted by time."""
    random = Random(seed)
    pending: list[
        tuple[datetime, int, str, dict[str, Any]]
    ] = []  # a heap; the number keeps equal times in order
    now, orders, drafts = _FIRST_DAY, 0, 0
    for number in range(1, count + 1):
        while not pending or pending[0][0] > now:  # the next order may have an earlier event
            now += timedelta(milliseconds=random.randint(20_000, 900_000))
            orders += 1
            for name, steps, attributes in _order(random, f"2026-{orders:06d}"):
                drafts += 1
                time = now + steps * _STEP + timedelta(milliseconds=random.randint(200, 500_000))
                heapq.heappush(pending, (time, drafts, name, attributes))
        time, _, name, attributes = heapq.heappop(pending)
        text = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        yield Event(id=f"{number:08d}", type=f"com.example.shop.{name}", time=text, **attributes)


def _order(random: Random, order: str) -> Iterator[_Draft]:
    """Yield all events of an order, with the order's id as partition key, and sometimes a warehouse event."""
    shop = {"source": "/shop/web", "subject": order, "partitionkey": order}
    for name, steps, data, attributes in _order_events(random, order):
        source = {"source": "/payments"} if name in {"order.paid", "payment.failed"} else {}
        json = {} if data is None else _JSON
        yield name, steps, {**shop, **json, **source, **attributes, "data": data}
    if random.random() < 0.25:
        article = random.choice(_ARTICLES)[0]
        data = {"article": article, "pieces": random.randint(0, 400)}
        source = {"source": f"/warehouse/{random.choice(_WAREHOUSES)}", "subject": article}
        yield "stock.counted", 0, {**source, **_JSON, "data": data}


def _order_events(random: Random, order: str) -> Iterator[tuple[str, int, Any, dict[str, Any]]]:
    lines: list[dict[str, Any]] = [
        {"article": number, "name": name, "cents": cents, "pieces": random.randint(1, 4)}
        for number, name, cents in random.sample(_ARTICLES, random.randint(1, 3))
    ]
    total = sum(line["cents"] * line["pieces"] for line in lines)
    sum_ = {"cents": total, "currency": "EUR"}
    yield "order.placed", 0, {"order": order, "lines": lines, "total": sum_}, {"dataschema": _SCHEMA}
    if random.random() < 0.1:
        yield "note.added", 1, random.choice(_NOTES), {"datacontenttype": "text/plain; charset=utf-8"}
    outcome = random.random()
    if outcome < 0.08:
        yield "order.cancelled", 1, {"order": order, "reason": "found cheaper"}, {}
        return
    if outcome < 0.14:
        yield "payment.failed", 1, {"order": order, "code": "insufficient_funds"}, {}
    yield "order.paid", 2, {"order": order, "cents": total, "method": "card"}, {}
    label = b"\x89LBL\r\n\x00" + random.randbytes(48)
    yield "label.printed", 3, label, {"datacontenttype": "application/octet-stream"}
    shipped = {"order": order, "carrier": random.choice(_CARRIERS), "parcels": random.randint(1, 3)}
    yield "order.shipped", 5, shipped, {"priority": random.randint(1, 3)}
    yield "order.delivered", 12, {"order": order, "signed": random.random() < 0.5}, {}
    if random.random() < 0.05:
        yield "order.returned", 30, {"order": order, "reason": "broken"}, {}
    yield "order.closed", 36, None, {}  # the type and the subject contain all information
