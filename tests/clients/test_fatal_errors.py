"""Which errors end a Kafka client: only errors of clients, and no error of a user's own class."""

from __future__ import annotations

from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from aiokafka import errors as aiokafka
from confluent_kafka import KafkaError, KafkaException

from cloudevents_kafka import DeliveryError, Event, EventConsumer, EventProducer, RunResult, to_record
from cloudevents_kafka.clients._protocols import find_fatal
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support.cases import each
from tests.support.dying_producer import DyingProducer

FENCED = KafkaError(KafkaError._FENCED, "fenced", fatal=True)
OF_CLIENTS = {
    "a fatal error": FENCED,
    "its exception": KafkaException(FENCED),
    "a call after it": KafkaException(KafkaError(KafkaError._FATAL)),
    "a report": KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER),
    "aiokafka, fenced": aiokafka.ProducerFenced(),
    "aiokafka": aiokafka.OutOfOrderSequenceNumber(),
}


class Code(Enum):
    FENCED = 90


class Number(IntEnum):
    FENCED = 90


def made(*arguments: object, **attributes: Any) -> Exception:
    """Return an error of a user's class with these attributes."""
    return type("OfTheUser", (Exception,), attributes)(*arguments)


def fails(_: object) -> Any:
    raise ZeroDivisionError("of the user")


RAISING: Any = property(fails)
OF_USERS = {
    "errno": made(errno=90),
    "errno, a dict": made(errno={}),
    "errno, a property": made(errno=RAISING),
    "code, a method": made(code=lambda _: 90),
    "code, an IntEnum": made(code=lambda _: Number.FENCED),
    "code, a list": made(code=lambda _: []),
    "code, a class": made(code=Code),
    "code, a method that raises": made(code=fails),
    "code, a property that raises": made(code=RAISING),
    "fatal": made(fatal=lambda _: True),
    "fatal, a method that raises": made(fatal=fails),
    "argument with a code": made(SimpleNamespace(code=lambda: 90)),
    "argument with an errno": made(SimpleNamespace(code=1, errno=45)),
    "argument that is a mock": made(MagicMock()),
    "argument with a property that raises": made(made(code=RAISING)),
    "arguments, a property that raises": made(args=RAISING),
    "an operating system's error": OSError(90, "message too long"),
    "a client's other error": KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT)),
    "aiokafka's other error": aiokafka.KafkaTimeoutError(),
    "without a delivery": DeliveryError("the EventProducer is closed"),
}


@each("error", OF_CLIENTS)
def test_errors_that_end_a_client(error: str) -> None:
    """Each is found in itself, or in the exception that has it."""
    assert find_fatal(OF_CLIENTS[error]) is not None


@each("error", OF_USERS)
def test_an_error_of_a_user_ends_only_its_record(error: str) -> None:
    """The record is skipped, as asked, and the run goes on."""

    def fail(_: object) -> None:
        raise OF_USERS[error]

    record = to_record(Event(id="1", source="/s", type="t"))
    log = FakeLog(FakeMessage("in", record.value, str(n), record.headers) for n in range(2))
    client = FakeConsumer(log, auto_commit=False)
    client.subscribe(["in"])
    assert EventConsumer(client).run(fail, on_failure="skip", idle_timeout=0) == RunResult(skipped=2)


@each("error", OF_USERS)
def test_an_error_of_a_callback_stops_no_report(error: str) -> None:
    """An error that a poll raises, as of a user's error_cb, is logged, and the next poll reports."""
    errors = [OF_USERS[error], made(OF_USERS[error])]

    class Failing(FakeProducer):
        def poll(self, timeout: float = -1) -> int:
            if errors:
                raise errors.pop()
            return super().poll(timeout)

    producer = EventProducer(Failing(), topic="t")
    for _ in range(3):
        assert producer.send(Event(id="1", source="/s", type="t")).result(60).done
    assert not errors


def test_producers_that_share_a_client_share_its_end() -> None:
    """The client raises its fatal error once, in a call of one of them; none hides a purged event."""
    client = DyingProducer()
    one, other = EventProducer(client, topic="t"), EventProducer(client, topic="t")
    first, second = (each.send(Event(id="1", source="/s", type="t")) for each in (one, other))
    client.die()
    for producer, delivery in ((one, first), (other, second)):
        with pytest.raises(DeliveryError, match="lost order") as caught:
            producer.flush()
        assert caught.value.failed == (delivery,)
