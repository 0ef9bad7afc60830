"""Which version of each request goes to which broker."""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol.client.api_versions import OLD, SPOKEN, choose_version
from cloudevents_kafka.protocol.errors import Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.fetch import FetchRequest
from cloudevents_kafka.protocol.messages.produce import ProduceRequest
from cloudevents_kafka.protocol.schema import Versions
from cloudevents_kafka.testing.wire_broker import RELEASES, faults

API_VERSIONS, PRODUCE, METADATA = 18, 0, 3


@pytest.mark.parametrize("key", SPOKEN)
def test_what_is_spoken_is_declared(key):
    """Every version that the client may choose can be written."""
    assert APIS[key].versions.common(SPOKEN[key]) == SPOKEN[key]


@pytest.mark.parametrize(
    ("offered", "most", "version"),
    [
        (Versions(0, 13), None, 12),
        (Versions(3, 11), None, 11),
        (Versions(0, 2), None, 2),
        (Versions(0, 13), 3, 3),
    ],
)
def test_the_highest_that_both_speak(offered, most, version):
    """Never a low one, though 4.x lists Produce from 0 on (KAFKA-18659)."""
    assert choose_version(ProduceRequest, {PRODUCE: offered}, most=most) == version


@pytest.mark.parametrize("offered", [{}, {1: Versions(13, 99)}, {1: Versions(5, 4)}])
def test_nothing_in_common_is_said(offered):
    """The error names the request and both sides."""
    with pytest.raises(Unsupported, match=r"Fetch: the broker takes .*, this client speaks 0-12"):
        choose_version(FetchRequest, offered)


def talk(client):
    """Produce, read and commit a record; return its value."""
    with client.producer(linger=0) as producer:
        producer.produce("t", b"v", on_delivery=lambda error, _message: errors.append(error))
        errors: list[object] = []
        producer.flush(5)
    assert errors == [None]
    client.commit("g", {("t", 0): 1})
    assert client.committed("g", [("t", 0)]) == {("t", 0): 1}
    with client.consumer(reset="earliest") as consumer:
        consumer.assign([Part("t", 0, 0)])
        return consumer.poll(5).value()


class Part:
    def __init__(self, topic, partition, offset):
        self.topic, self.partition, self.offset = topic, partition, offset


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("ask", [True, False])
def test_every_broker_is_spoken_to_in_its_way(start, connect, release, ask):
    """Brokers before 0.10 are asked in vain, or not at all; no version is tried that a broker lacks."""
    old = release.startswith(("0.8", "0.9"))
    broker = start(release)
    client = connect(broker, ask_versions=ask)
    if release.startswith("4") and not ask:
        with pytest.raises(TimeoutError):
            connect(broker, ask_versions=ask, timeout=0.2).offset_at("t", 0, -1)
        return
    assert talk(client) == b"v"
    asked = [call for call in broker.calls() if call.key == API_VERSIONS]
    assert bool(asked) == (ask and not old)
    assert [
        note for note in broker.connection_errors if "API key 18" not in note and "ApiVersions" not in note
    ] == []
    if old or not ask:
        assert {call.version for call in broker.calls(PRODUCE)} == {0}


def test_a_broken_connection_makes_no_broker_old(start, connect):
    """A broker of today that closes one connection while it is asked is not taken for one of 0.9."""
    broker = start("3.9")
    client = connect(broker)
    broker.faults.add(faults.drop_before(), api=API_VERSIONS)
    assert client.api_versions() != OLD
    broker.faults.add(faults.drop_before(), api=METADATA)
    broker.faults.add(faults.drop_before(), api=API_VERSIONS)
    client.metadata(["t"])
    assert client.api_versions() != OLD


def test_an_error_in_place_of_versions_is_told(start, connect):
    """ApiVersions with an error code is no list, and leaves no connection open."""
    broker = start()
    broker.faults.add(faults.error(35), api=API_VERSIONS, times=None)
    client = connect(broker)
    with pytest.raises(Exception, match="UNSUPPORTED_VERSION"):
        client.api_versions()
