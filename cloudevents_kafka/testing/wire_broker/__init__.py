"""A Kafka broker for tests, of every age, that speaks the wire protocol within the test's process."""

from __future__ import annotations

from cloudevents_kafka.testing.wire_broker import faults
from cloudevents_kafka.testing.wire_broker.broker import WireBroker
from cloudevents_kafka.testing.wire_broker.broker_versions import DIALECTS, Dialect
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.cluster import Node, Settings
from cloudevents_kafka.testing.wire_broker.errors import Refused
from cloudevents_kafka.testing.wire_broker.v07 import Segments, WireBroker07

__all__ = [
    "DIALECTS",
    "Call",
    "Dialect",
    "Node",
    "Refused",
    "Segments",
    "Settings",
    "WireBroker",
    "WireBroker07",
    "faults",
]
