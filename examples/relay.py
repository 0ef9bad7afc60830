"""Forward events from one topic to another exactly once, with one more attribute.

Key, header order, other headers and the bytes of the data do not change. Records that are not events are
forwarded unchanged. Offsets are committed in the transaction of the forwarded records.

python examples/relay.py BOOTSTRAP_SERVERS FROM_TOPIC TO_TOPIC
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Producer

from cloudevents_kafka import Decoded, EventConsumer, EventProducer


def main(servers: str, source: str, target: str) -> int:
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "example-relay",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    reader.subscribe([source])
    writer = Producer({"bootstrap.servers": servers, "transactional.id": "example-relay"})
    writer.init_transactions()
    producer = EventProducer(writer, topic=target)
    passed = 0
    with EventConsumer(reader) as events:
        for batch in events.batches(idle_timeout=5):
            writer.begin_transaction()
            for item in batch:
                if isinstance(item, Decoded):
                    producer.send(item.event.replace(relayedby="example"), like=item.record)
                else:
                    record = item.record
                    writer.produce(target, value=record.value, key=record.key, headers=list(record.headers))
            writer.send_offsets_to_transaction(
                reader.position(reader.assignment()), reader.consumer_group_metadata()
            )
            writer.commit_transaction()
            passed += len(batch)
    print(f"passed {passed} records")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
