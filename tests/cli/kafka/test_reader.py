"""Positions in a partition."""

from __future__ import annotations

from contextlib import closing
from itertools import islice

from confluent_kafka import Consumer

from cloudevents_kafka import Record
from cloudevents_kafka.cli.kafka.reader import (
    RangeReader,
    ReadRequest,
    consumer_settings,
    resolve_offset,
)
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import load_settings
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.positions import Position
from tests.cli.command_line import send
from tests.support.cases import each
from tests.support.wire_broker import WireBroker

RESOLVED = [
    (Position("earliest"), None, 5),
    (Position("latest"), None, 9),
    (Position("offset", 7), None, 7),
    (Position("offset", 0), None, 5),
    (Position("offset", 99), None, 9),
    (Position("last", 3), None, 6),
    (Position("last", 99), None, 5),
    (Position("time", 1), 8, 8),
    (Position("time", 1), None, 9),
    (Position("stored"), 6, 6),
    (Position("stored"), 2, 5),
    (Position("stored"), None, 5),
]


@each(("position", "known", "offset"), RESOLVED)
def test_offsets_are_within_the_watermarks(position, known, offset):
    """A position resolves to an offset of the partition, or to its end."""
    assert resolve_offset(position, (5, 9), known) == offset


def test_added_partitions_are_read(monkeypatch):
    """A reader that follows topics reads partitions that are added later, unless it reads chosen ones."""
    monkeypatch.setattr("cloudevents_kafka.cli.kafka.reader._LOOK_UP_SECONDS", 0.0)
    with WireBroker("4.3") as broker:
        broker.create_topic("t")
        settings = load_settings(None, {}, [], broker.bootstrap_servers)
        session = BrokerSession(consumer_settings(settings, "test", None), 10, Interrupts())
        for chosen, expected in (((), [0, 1]), ((0,), [0])):
            request = ReadRequest(
                topics=("t",), partitions=chosen, begin=None, end=None, follow=True, group=None
            )
            with closing(session.create(Consumer)) as consumer:
                reader = RangeReader(consumer, session, request)
                reader.start()
                if not chosen:
                    broker.add_partitions("t", 2)
                    for partition in (0, 1):
                        send(broker.bootstrap_servers, "t", Record(value=b"v", partition=partition))
                found = []
                for batch in islice(reader.batches(), 50):
                    found += [record.partition for record in batch]
                    reader.assign_added()
                    if len(found) == len(expected):
                        break
                assert sorted(found) == sorted(one.partition for one in consumer.assignment()) == expected
