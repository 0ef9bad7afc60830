"""A Kafka broker for tests, of any release from 0.7 to 4.3, in the test's own process.

Read `broker` first: `WireBroker` listens (`listener`), and a `connection` reads the requests of a
client (`requests`, as the emulated release of `releases` does) and hands each as a `Call`, past the
`faults` that tests plan, to a handler of `apis`. The handlers work on the `cluster`: its partitions
(`log`, `append`, `sequences`) and its groups (`coordinator`, `group`). `v07` is Kafka 0.7.
"""

from __future__ import annotations

from cloudevents_kafka.testing.wire_broker import faults
from cloudevents_kafka.testing.wire_broker.broker import WireBroker
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.cluster import Node, Settings
from cloudevents_kafka.testing.wire_broker.errors import ApiError
from cloudevents_kafka.testing.wire_broker.releases import RELEASES, Release
from cloudevents_kafka.testing.wire_broker.v07 import SegmentedLog, WireBroker07

__all__ = [
    "RELEASES",
    "ApiError",
    "Call",
    "Node",
    "Release",
    "SegmentedLog",
    "Settings",
    "WireBroker",
    "WireBroker07",
    "faults",
]
