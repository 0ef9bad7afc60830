"""Examples that take their clients run with the fakes, too; test_readme runs all with a real broker."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from cloudevents_kafka import DeadLetter, Event, EventProducer, Record, from_record
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer

EXAMPLES = Path(__file__).parents[1] / "examples"
STEPS = ("placed", "paid", "shipped")


def load(name: str) -> ModuleType:
    """Return the module of an example."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def log() -> FakeLog:
    """Three events, and a record that is not one."""
    log = FakeLog()
    with EventProducer(FakeProducer(log), topic="orders") as producer:
        for step in STEPS:
            producer.send(Event(id=step, source="/shop", type=f"order.{step}", data={"order": 17}), key="17")
    log.append(FakeMessage("orders", b"foreign"))
    return log


def reader(log: FakeLog) -> FakeConsumer:
    return FakeConsumer(log, auto_commit=False)


def test_relay(log: FakeLog) -> None:
    """All records are forwarded in transactions; events have one more attribute."""
    writer = FakeProducer(log, transactional=True)
    assert load("relay").relay(reader(log), writer, "orders", "copies").run(idle_timeout=0) == 4
    copies = [Record.of(message) for message in log if message.topic() == "copies"]
    assert [from_record(copy)["relayedby"] for copy in copies[:3]] == ["example"] * 3
    assert copies[3].value == b"foreign"


def test_service(log: FakeLog, capsys: pytest.CaptureFixture[str]) -> None:
    """One event is handled at once, one by the third try, and the others become dead letters."""
    counts = load("service").serve(reader(log), FakeProducer(log), "orders", "dead", 0)
    assert (counts.handled, counts.dead, counts.retried) == (2, 2, 2)
    assert capsys.readouterr().out.splitlines() == [f"order.{step}: {{'order': 17}}" for step in STEPS[:2]]
    letters = [DeadLetter.of(Record.of(message)) for message in log if message.topic() == "dead"]
    assert {(letter.offset, letter.attempt) for letter in letters if letter} == {(2, 1), (3, 1)}
