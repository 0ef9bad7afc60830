"""make_client: clients of confluent-kafka from settings, and errors for settings that are wrong."""

from __future__ import annotations

import sys
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import AsyncEventConsumer, AsyncEventProducer, EventConsumer, EventProducer
from cloudevents_kafka.clients._settings import make_client
from cloudevents_kafka.testing import FakeConsumer
from tests.support.cases import each

QUIET = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def test_a_client_has_the_settings_and_the_defaults() -> None:
    """Settings precede defaults, of which the client gets the others."""
    assert type(make_client(QUIET, "Producer", acks="all")) is Producer
    with pytest.raises(ValueError, match=r"linger\.ms|queue\.buffering\.max\.ms"):
        make_client({**QUIET, "linger.ms": -1}, "Producer", **{"linger.ms": 5})
    consumer = make_client(QUIET, "Consumer", **{"group.id": "g", "enable.auto.commit": False})
    assert type(consumer) is Consumer
    consumer.close()


@each(
    ("settings", "expected"),
    [
        ({}, "have bootstrap.servers, got none; add the address of a broker"),
        ({"bootstrap.server": "b"}, "have bootstrap.servers, got bootstrap.server; add"),
        ({"bootstrap.servers": "", "acks": 1}, "have bootstrap.servers, got acks, bootstrap.servers"),
        ({**QUIET, "on_delivery": print}, "not have callbacks of deliveries, got on_delivery; pass on"),
        ({**QUIET, "dr_cb": print}, "not have callbacks of deliveries, got dr_cb"),
        ({**QUIET, "no.such": 1}, 'names and values of librdkafka, got: .*"no.such"; correct that setting'),
        ({**QUIET, "acks": "many"}, "names and values of librdkafka, got: .*acks"),
        ({**QUIET, "error_cb": 3}, "got: expected error_cb property as a callable function; correct"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], expected: str) -> None:
    """The error says what is wrong and what to do."""
    with pytest.raises(ValueError, match=f"settings of a Producer must .*{expected}") as caught:
        make_client(settings, "Producer")
    assert caught.value.__cause__ is None


def test_a_consumer_without_a_group_is_refused() -> None:
    """The error has the client's reason."""
    with pytest.raises(ValueError, match=r"settings of a Consumer must be .*group\.id must be set"):
        make_client(QUIET, "Consumer")


@pytest.mark.parametrize("settings", [{"hunter2=": 1}, {**QUIET, "hunter2=": "x"}])
def test_secrets_are_not_shown(settings: dict[str, Any]) -> None:
    """A secret in the place of a name or a value is masked."""
    with pytest.raises(ValueError, match=r"\*\*\*") as caught:
        make_client(settings, "Producer")
    assert "hunter2" not in str(caught.value)


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without confluent-kafka the error says what to install."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ImportError, match=r"confluent-kafka must be installed .*; pip install"):
        make_client(QUIET, "Producer")


class Opened:
    """Counts the clients that are open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.count = 0
        opened, made = self, getattr(confluent_kafka, name)

        class Counted(made):  # type: ignore[misc]  # a class of C
            def __init__(self, settings: dict[str, Any]) -> None:
                super().__init__(settings)
                opened.count += 1

            def close(self) -> None:
                super().close()
                opened.count -= 1

        monkeypatch.setattr(confluent_kafka, name, Counted)


@pytest.mark.parametrize(
    ("wrapper", "options"),
    [
        (EventConsumer, {"topics": "orders"}),
        (EventConsumer, {"data_type": 7}),
        (EventConsumer, {"observers": 7}),
        (AsyncEventConsumer, {"topics": "orders"}),
        (AsyncEventConsumer, {"max_records": 0}),
        (EventProducer, {"observers": 7}),
        (AsyncEventProducer, {"observers": 7}),
        (AsyncEventProducer, {"max_in_flight": 0}),
    ],
)
def test_a_refused_option_leaves_no_client(
    wrapper: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that was made from settings is closed: it would connect to its brokers from then on."""
    opened = Opened(monkeypatch, "Consumer" if "Consumer" in wrapper.__name__ else "Producer")
    settings = QUIET | ({"group.id": "g"} if "Consumer" in wrapper.__name__ else {})
    with pytest.raises((TypeError, ValueError)):
        wrapper(settings, **options)
    assert opened.count == 0


def test_a_refused_option_leaves_the_users_client_open() -> None:
    """A client that the user passed is not closed."""
    client = FakeConsumer()
    with pytest.raises(TypeError, match="topics must be a list"):
        EventConsumer(client, topics="orders")
    client.subscribe(["orders"])
