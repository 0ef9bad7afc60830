"""Read orders as values of a class, commit each, and print what does not fit.

python examples/typed_orders.py BOOTSTRAP_SERVERS TOPIC
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping

import msgspec

from cloudevents_kafka import BrokenData, Decoded, EventConsumer, Undecodable
from cloudevents_kafka.testing import FakeConsumer

IDLE_SECONDS = 5.0


class Order(msgspec.Struct):
    order: int
    step: str


def read_orders(consumer: Mapping[str, str] | FakeConsumer, topic: str) -> tuple[list[Order], list[str]]:
    """Return the orders of a topic, and the reasons why other records are not orders."""
    orders: list[Order] = []
    aside: list[str] = []
    with EventConsumer(consumer, topics=[topic], data_type={"com.example.order.placed": Order}) as events:
        signal.signal(signal.SIGTERM, lambda *_: events.stop())
        for item in events.items(idle_timeout=IDLE_SECONDS):
            match item:
                case Decoded(event) if isinstance(event.data, Order):
                    orders.append(event.data)
                case Undecodable(BrokenData(event=event) as error):
                    aside.append(f"{event.id}: {error.__cause__}")
                case Undecodable(error):
                    aside.append(str(error))
            events.commit(item)
    return orders, aside


def main(servers: str, topic: str) -> int:
    group = {"group.id": "example-typed-orders", "auto.offset.reset": "earliest"}
    orders, aside = read_orders({"bootstrap.servers": servers, **group}, topic)
    print(f"{len(orders)} placed orders, {len(aside)} records set aside")
    for reason in aside:
        print(reason, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
