"""Read events in batches, print errors of bad records, and commit finished batches.

python examples/consume.py BOOTSTRAP_SERVERS TOPIC
"""

from __future__ import annotations

import signal
import sys

from cloudevents_kafka import Decoded, EventConsumer, NotAnEvent


def main(servers: str, topic: str) -> int:
    settings = {
        "bootstrap.servers": servers,
        "group.id": "example-consume",
        "auto.offset.reset": "earliest",
    }
    done = bad = 0
    with EventConsumer(settings, topics=[topic], eager_data=True) as events:
        signal.signal(signal.SIGTERM, lambda *_: events.stop())
        for batch in events.batches(idle_timeout=5):
            for item in batch:
                if isinstance(item, Decoded):
                    done += 1
                    print(f"{item.event.type}: {item.event.data}")
                elif not isinstance(item.error, NotAnEvent):  # skip other traffic
                    bad += 1
                    print(item.error, file=sys.stderr)
            events.commit(batch)  # the whole batch is done
    print(f"{done} events, {bad} broken")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
