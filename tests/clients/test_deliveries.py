"""The bookkeeping of deliveries, without a client: what is on its way, what has failed, who waits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any
from unittest.mock import MagicMock, Mock, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Delivery, DeliveryError, Event, Record
from cloudevents_kafka.clients._deliveries import Deliveries
from tests.support.cases import each

Report = Callable[[object, object], None]


class Shell:
    """A shell that never waits."""

    def __init__(self) -> None:
        self.deliveries: Deliveries[Any] = Deliveries(Delivery)

    def wait(self, delivery: Delivery[Any], timeout: float | None) -> None:
        assert delivery.done

    def make_room(self, error: BufferError) -> None:
        raise error

    def send(self, sent: Event | Record) -> tuple[Delivery[Any], Report]:
        """Return a new delivery, and the report that a client got."""
        reports = list[Report]()
        delivery = self.deliveries.send(self, partial(_keep, reports), ("orders", (sent, b"", b"", [])))
        return delivery, reports.pop()


def _keep(reports: list[Report], topic: str, *, on_delivery: Report, **_: object) -> None:
    reports.append(on_delivery)


class Place:
    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 1741


def event(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed")


def failures(shell: Shell, *, is_late: bool = False) -> list[str]:
    """Return the ids of the events of the next error, none if none is raised."""
    try:
        if is_late:
            shell.deliveries.raise_pending(0.1)
        shell.deliveries.raise_failures()
    except DeliveryError as error:
        return [each.event.id for each in error.failed]
    return []


@given(st.data())
def test_each_failure_is_raised_once_in_any_history(data: st.DataObject) -> None:
    """What was sent is on its way until its report; each failure without a callback is raised once."""
    shell, reports, failed = Shell(), dict[int, Report](), list[str]()
    for number in range(data.draw(st.integers(1, 30))):
        step = data.draw(st.sampled_from(["send", "succeed", "fail", "flush"]))
        if step == "send":
            reports[number] = shell.send(event(number))[1]
        elif step == "flush":
            assert failures(shell, is_late=True) == failed + [str(each) for each in reports]
            failed = []
        elif reports:
            chosen = data.draw(st.sampled_from(sorted(reports)))
            failed += [str(chosen)] if step == "fail" else []
            reports.pop(chosen)("refused" if step == "fail" else None, Place())
        assert len(shell.deliveries.pending) == len(reports)
    assert failures(shell) == failed
    assert failures(shell) == []


def test_who_waits_is_woken_after_the_report() -> None:
    """A future of a delivery is done when it is woken after the report, and others are not."""
    shell = Shell()
    delivery, report = shell.send(event(1))
    waiter: Future[None] = Future()
    delivery._waiters = (waiter,)
    assert shell.deliveries.is_awaited()
    shell.deliveries.wake(10)
    assert not waiter.done()
    report(None, Place())
    shell.deliveries.wake(10)
    assert waiter.done()
    assert (delivery.partition, delivery.offset) == (3, 1741)


@each(
    ("length", "expected"),
    [([2], None), ([0], "without delivery.report.only.error"), (RuntimeError("closed"), "was closed before")],
    ids=["has it", "has no more", "is closed"],
)
def test_what_the_client_has_no_more_is_lost(length: Any, expected: str | None) -> None:
    """Without a report, it fails once the client is empty or closed; what it still has is waited for."""
    shell = Shell()
    delivery, _ = shell.send(event(1))
    client = MagicMock(__len__=Mock(side_effect=length * 2 if isinstance(length, list) else length))
    assert shell.deliveries.find_lost(client) == (expected is not None)
    assert delivery.done is (expected is not None)
    if expected is not None:
        with pytest.raises(DeliveryError, match=expected):
            delivery.result()


def test_what_is_being_sent_is_not_lost() -> None:
    """A client is empty while a message is passed to it."""
    shell = Shell()
    client = MagicMock(__len__=Mock(return_value=0))
    found: list[int] = []

    def produce(*_: object, **__: object) -> None:
        found.append(shell.deliveries.find_lost(client))

    delivery = shell.deliveries.send(shell, produce, ("orders", (event(1), b"", b"", [])))
    assert found == [0]
    assert not delivery.done


def test_a_report_calls_nothing_of_the_user() -> None:
    """What is due is called by `serve`, one after another; an error is logged and is that of its delivery."""
    shell, called = Shell(), list[Delivery[Any]]()
    reports = list[Report]()

    def on_delivery(delivery: Delivery[Any]) -> None:
        called.append(delivery)
        if delivery.event.id == "1":
            raise ZeroDivisionError

    sent = [
        shell.deliveries.send(
            shell, partial(_keep, reports), ("orders", (event(number), b"", b"", [])), on_delivery
        )
        for number in (1, 2)
    ]
    for report in reports:
        report(None, Place())
    assert called == []
    assert all(delivery.done for delivery in sent)
    shell.deliveries.callbacks.serve()
    assert called == sent
    assert isinstance(sent[0].callback_error, ZeroDivisionError)
    assert sent[1].callback_error is None
    assert sent[1].result() is sent[1]
    with pytest.raises(DeliveryError, match="on_delivery has raised"):
        sent[0].result()


def test_a_delivery_that_the_client_refuses_is_not_on_its_way() -> None:
    """It is neither pending nor failed, whether the client refuses it or has no room for it."""
    shell = Shell()
    for error in (ValueError("a key of 3 GB"), BufferError("the queue is full")):
        produce = Mock(side_effect=error)
        with pytest.raises(type(error)):
            shell.deliveries.send(shell, produce, ("orders", (event(1), b"", b"", [])))
        assert not shell.deliveries.pending
        assert failures(shell) == []


def test_a_full_client_is_asked_again_after_the_shell_has_made_room() -> None:
    """The delivery is on its way when the client has accepted it, however often it was full."""
    shell = Shell()
    with patch.object(shell, "make_room") as make_room:
        produce = Mock(side_effect=[BufferError("1"), BufferError("2"), None])
        delivery = shell.deliveries.send(shell, produce, ("orders", (event(1), b"k", b"", [])))
    assert [str(call.args[0]) for call in make_room.call_args_list] == ["1", "2"]
    assert {call.kwargs["key"] for call in produce.call_args_list} == {b"k"}
    assert next(iter(shell.deliveries.pending.values()))[0] is delivery


def test_only_the_delivery_of_a_record_has_a_record() -> None:
    """The delivery of a record has it and its event; that of an event has no record."""
    shell = Shell()
    delivery, _ = shell.send(event(1))
    assert delivery.event.id == "1"
    assert not hasattr(delivery, "record")
    with pytest.raises(AttributeError, match="record must be read from the delivery of a record"):
        _ = delivery.record
    record = Record(value=b"17")
    assert shell.send(record)[0].record is record
