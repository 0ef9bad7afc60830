"""Topics that change while they are used, on a real broker."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from cloudevents_kafka.protocol import LATEST
from cloudevents_kafka.testing.local import KAFKA_VERSION
from tests.support.wire import eventually

from .kafkas import delivered, write

pytestmark = pytest.mark.parametrize("kafka", [KAFKA_VERSION], indirect=True)


def test_new_partitions_are_written_and_read(kafka, topic):
    """A producer that runs writes to new partitions, and a group that runs reads them."""
    admin = AdminClient({"bootstrap.servers": kafka.servers, "log_level": 0})
    with (
        kafka.client(metadata_max_age=0.5) as client,
        client.producer(linger=0) as producer,
        client.consumer(group=topic, reset="earliest", heartbeat_interval=0.3) as consumer,
    ):
        delivered(write(client, topic, [{"value": b"0"}]))
        consumer.subscribe([topic])
        assert [message.value() for message in consumer.consume(1, 30)] == [b"0"]
        for future in admin.create_partitions([NewPartitions(topic, 3)]).values():
            future.result(20)

        def written():
            producer.produce(topic, b"new")
            assert producer.flush(20) == 0
            return client.offset_at(topic, 2, LATEST)

        assert eventually(written)
        assert eventually(lambda: (message := consumer.poll(0.5)) and message.partition() == 2)
        assert [part.partition for part in consumer.assignment()] == [0, 1, 2]
