"""One setting, ``committed_only``, is in each request that has a field for it."""

from __future__ import annotations

import re

import pytest

from cloudevents_kafka.protocol.client import CLIENT_VERSIONS, EARLIEST, LATEST, STORED, TopicPartition
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages import APIS
from tests.support.wire import eventually, fill, numbers, take
from tests.support.wire_broker import faults

FETCH, LIST_OFFSETS, OFFSET_FETCH = 1, 2, 9
T0 = TopicPartition("t", 0, 0)


def isolation(request, version):
    """Return the value of the field for isolation in a version of a request, None without one."""
    names = [field.name for field in layout_of(type(request), version).fields]
    values = [getattr(request, name) for name in names if re.search("isolation|stable", name)]
    return bool(values[0]) if values else None


ISOLATED = {
    key
    for key, versions in CLIENT_VERSIONS.items()
    for field in layout_of(APIS[key].request, versions.last).fields
    if re.search("isolation|stable", field.name)
}
"""The API keys of the requests with such a field, as Kafka's definitions name them."""


def use_all(client, broker, committed_only):
    """Make each call that asks for records or offsets."""
    settings = {"committed_only": committed_only, "reset": "latest", "auto_commit": None, "max_wait": 0.05}
    with client.consumer(**settings, group="g") as consumer:
        for offset in (EARLIEST, LATEST, STORED):
            consumer.assign([T0._replace(offset=offset)])
        consumer.assign([T0._replace(offset=99)])  # out of range, so that the end is asked for
        asked = len(broker.calls(LIST_OFFSETS))
        assert eventually(lambda: consumer.poll(0.02) or len(broker.calls(LIST_OFFSETS)) > asked)
        consumer.seek(T0._replace(offset=LATEST))
        consumer.get_watermark_offsets(T0, 5)
        consumer.committed([T0], 5)
    with client.consumer(**settings, group="h") as consumer:
        if OFFSET_FETCH in client.api_versions() and 11 in client.api_versions():
            consumer.subscribe(["t"])
            assert eventually(lambda: consumer.poll(0.02) or consumer.assignment())
    client.offset_at("t", 0, LATEST, committed_only=committed_only)
    client.committed("g", [("t", 0)], committed_only=committed_only)


@pytest.mark.parametrize("release", ["0.8.2", "1.1", "4.3"])
@pytest.mark.parametrize("committed_only", [True, False])
def test_each_request_has_the_setting(start, connect, release, committed_only):
    """Fetch, ListOffsets and OffsetFetch have it in each version with the field, whichever call it is."""
    assert {FETCH, LIST_OFFSETS, OFFSET_FETCH} == ISOLATED
    broker = start(release)
    client = connect(broker)
    fill(client, numbers(3))
    use_all(client, broker, committed_only)
    calls = [call for call in broker.calls() if call.key in ISOLATED]
    assert {call.key for call in calls} == ISOLATED
    assert {isolation(call.message, call.version) for call in calls} <= {committed_only, None}


def test_open_transactions_of_a_group_are_waited_for(broker, client):
    """A look-up waits while a transaction commits the offset; `poll` returns in time meanwhile."""
    fill(client, numbers(3))
    client.commit("g", {("t", 0): 2})
    unstable = faults.error(ErrorCode.UNSTABLE_OFFSET_COMMIT, "t", 0)
    fault = broker.faults.add(unstable, api=OFFSET_FETCH, times=None)
    with client.consumer(group="g", reset="error") as consumer:
        with pytest.raises(BrokerError, match=r"group g: t\[0\]: UNSTABLE_OFFSET_COMMIT"):
            consumer.committed([T0], 0.3)
        consumer.subscribe(["t"])
        for _ in range(3):
            assert consumer.poll(0.3) is None
        fault.remaining = 0
        assert take(consumer, 1) == [b"2"]
