"""Send the events of an order; all events of a customer go to one partition.

python examples/emit.py BOOTSTRAP_SERVERS TOPIC
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from cloudevents_kafka import DeliveryError, Event, EventProducer, partition_key


def main(servers: str, topic: str) -> int:
    settings = {"bootstrap.servers": servers, "enable.idempotence": True}
    try:
        with EventProducer(settings, topic=topic, key_mapper=partition_key) as producer:
            for number, step in enumerate(("placed", "paid", "shipped")):
                producer.send(
                    Event(
                        id=f"order-17-{number}",
                        source="/shop",
                        type=f"com.example.order.{step}",
                        subject="order-17",
                        time=datetime.now(UTC),
                        datacontenttype="application/json",
                        data={"order": 17, "step": step},
                        partitionkey="customer-4",
                    )
                )
    except DeliveryError as error:
        for delivery in error.failed:
            print(f"not delivered: {delivery.event!r}", file=sys.stderr)
        return 1
    print("sent 3 events")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
