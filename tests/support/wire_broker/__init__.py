"""A Kafka broker for tests, of any release from 0.7 to 4.3, in the test's own process.

Read `_broker` first: `WireBroker` listens (`_listener`), and a `_connection` reads the requests of a
client, as the emulated release of `_releases` does (`_requests`), after its login (`_sasl`), and passes each
as a `_call`, through the `faults` that tests plan, to a handler of `apis`, which responds or raises
one of the `_errors`. The handlers work on the `_cluster`: its topics with their settings (`_configs`),
partitions (`_log`, `_append`), and its groups (`_group`). `_new_groups` has the messages by which groups
of the new protocol are refused. `_v07` is Kafka 0.7.
"""

from __future__ import annotations

from tests.support.wire_broker import faults
from tests.support.wire_broker._broker import WireBroker
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._cluster import Node, Settings
from tests.support.wire_broker._errors import ApiError
from tests.support.wire_broker._releases import RELEASES, Release
from tests.support.wire_broker._v07 import SegmentedLog, WireBroker07

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
