"""`Client`, and events over it."""

from __future__ import annotations

import time

import pytest

from cloudevents_kafka import EventConsumer, EventProducer
from cloudevents_kafka.clients.producer import DeliveryError
from cloudevents_kafka.event import Event
from cloudevents_kafka.protocol.client import EARLIEST, LATEST
from cloudevents_kafka.protocol.client._address import Address, parse_addresses
from cloudevents_kafka.protocol.client._client import Client
from cloudevents_kafka.protocol.errors import BrokerError, Unsupported
from tests.support.cases import each


@each(
    ("text", "expected"),
    [
        ("h:1", [("h", 1)]),
        ("h", [("h", 9092)]),
        ("a:1, b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "b"], [("a", 1), ("b", 9092)]),
        ("[::1]:5", [("::1", 5)]),
        ("[::1]", [("::1", 9092)]),
        ("[fe80::1%eth0]:5", [("fe80::1%eth0", 5)]),
        ("broker.example.:5", [("broker.example.", 5)]),
    ],
)
def test_addresses_are_parsed(text, expected):
    """Addresses are one or several, with a port or the default one, IPv6 in brackets."""
    assert parse_addresses(text) == [Address(*one) for one in expected]


INVALID = [
    "",
    ",",
    [],
    "h:",
    ":1",
    "h:0",
    "h:65536",
    "h:x",
    "h:-1",
    "h:\u0661",
    "[h]:1",
    "[::1",
    "::1]",
    "a:b:1",
]


@each("text", INVALID)
def test_invalid_addresses_are_refused(text):
    """The constructor raises ValueError."""
    with pytest.raises(ValueError, match=r"an address must be host:port|a bootstrap address is missing"):
        Client(text)


@each(
    ("text", "advice"),
    [
        ("::1", r"put IPv6 in brackets: \[::1\]:9092"),
        ("fe80::1", r"put IPv6 in brackets: \[fe80::1\]:9092"),
        ("PLAINTEXT://h:9092", "leave out the protocol, and pass tls or sasl"),
    ],
)
def test_other_forms_are_refused_with_advice(text, advice):
    """What other clients read, or what looks like an address and is a wrong one, is an error with advice."""
    with pytest.raises(ValueError, match=advice):
        Client(text)


def test_topics_are_created_and_listed(start, connect):
    """A topic has the requested partitions; creating it again raises `BrokerError`."""
    broker = start(settings={"auto_create": False})
    client = connect(broker)
    client.create_topic("t", partitions=3)
    assert client.partitions("t") == [0, 1, 2]
    assert [topic.name for topic in client.metadata().topics] == ["t"]
    with pytest.raises(BrokerError, match="topic t: TOPIC_ALREADY_EXISTS"):
        client.create_topic("t")


@pytest.mark.parametrize("release", ["0.8.2", "0.9"])
def test_old_brokers_cannot_create_topics(start, connect, release):
    """Brokers before 0.10.1 raise `Unsupported` at once."""
    client = connect(start(release))
    began = time.monotonic()
    with pytest.raises(Unsupported, match="CreateTopics"):
        client.create_topic("t")
    assert time.monotonic() - began < 4.5


def test_offsets_are_found(broker, client):
    """The first offset, the end, the offset of a timestamp, and None after the last record."""
    with client.producer() as producer:
        for n in range(3):
            producer.produce("t", b"v", timestamp=1000 + n)
    assert [client.offset_at("t", 0, at) for at in (EARLIEST, LATEST, 1001, 2000)] == [0, 3, 1, None]


@pytest.mark.parametrize("release", ["0.10", "1.1", "4.3"])
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_events_round_trip(start, connect, release, mode):
    """EventProducer and EventConsumer use the client; before 0.11 in structured mode only."""
    client = connect(start(release))
    event = Event(id="1", source="/s", type="t", data={"a": 1})
    with client.producer() as inner:
        delivery = EventProducer(inner, mode=mode).send(event, "t")
        inner.flush(5)
        if release == "0.10" and mode == "binary":
            with pytest.raises(DeliveryError, match="send structured mode"):
                delivery.result(1)
            return
        delivery.result(1)
    consumer = client.consumer(group="g", reset="earliest")
    consumer.subscribe(["t"])
    with EventConsumer(consumer, lenient=release == "0.10") as events:
        decoded = next(events.items(idle_timeout=5))
    assert (decoded.event.id, decoded.event.data) == ("1", {"a": 1})


@each(
    "bootstrap",
    [
        "u:hunter2@host:9092",
        "a:1,u:hun,ter2@host:9092",
        ["a:1", "u:hunter2@host"],
        "u:hunter2@host",
        "u:hun ter2",
    ],
)
def test_no_password_of_an_address_is_shown(bootstrap):
    """An address with user and password is refused without showing it."""
    with pytest.raises(ValueError, match="an address must be host:port") as caught:
        Client(bootstrap)
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)
