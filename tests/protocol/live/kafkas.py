"""The brokers of the live tests, their features, and helpers to produce and consume."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from cloudevents_kafka.protocol import EARLIEST, Client, TopicPartition

_numbers = itertools.count(1)


class Kafka(NamedTuple):
    """A running broker; its version determines its features."""

    version: str
    broker: object

    @property
    def servers(self):
        return self.broker.bootstrap_servers

    @property
    def since(self):
        """Return the version as numbers, to compare."""
        return tuple(int(part) for part in self.version.removesuffix("-beta").split("."))

    @property
    def says_versions(self):
        return self.since >= (0, 10)

    @property
    def has_headers(self):
        return self.since >= (0, 11)

    @property
    def codecs(self):
        return ["none", "gzip", "snappy", "lz4", *(["zstd"] if self.since >= (2, 1) else [])]

    def client(self, **settings):
        return Client(self.servers, timeout=20.0, **settings)

    def topic(self, client, partitions=1):
        """Return a new topic, which an old broker creates automatically."""
        name = f"live-{next(_numbers):04}"  # so that names are in the order of their numbers
        if self.since >= (0, 10, 1):
            client.create_topic(name, partitions=partitions)
        else:
            assert client.partitions(name) == [0]
        return name


ALL = ("0.8.2-beta", "0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1", "3.9.1", "4.3.1")


def since(*first):
    """Return the versions from one on."""
    return [name for name in ALL if Kafka(name, None).since >= first]


def write(client, topic, records, **settings):
    """Produce records, each as keywords of `produce`; return their reports."""
    reports = []
    with client.producer(delivery_timeout=20.0, **settings) as producer:
        for record in records:
            producer.produce(
                topic, **record, on_delivery=lambda error, message: reports.append((error, message))
            )
        assert producer.flush(30) == 0
    return reports


def delivered(reports):
    """Return the offsets of the delivered records; all must be delivered."""
    failures = [error for error, _ in reports if error is not None]
    assert failures == [], failures  # spelled out: helpers' asserts are not
    return [message.offset() for _, message in reports]


def read(client, topic, number, partition=0, seconds=20.0, **settings):
    """Return a number of records from the start of a partition."""
    with client.consumer(**settings) as consumer:
        consumer.assign([TopicPartition(topic, partition, EARLIEST)])
        return consumer.consume(number, seconds)


def pairs(messages):
    return [(message.key(), message.value()) for message in messages]
