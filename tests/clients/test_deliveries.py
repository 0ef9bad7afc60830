"""The bookkeeping of deliveries, without a client: what is on its way, what has failed, who waits."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Delivery, DeliveryError, Event, Record
from cloudevents_kafka.clients._deliveries import Deliveries, Report


class Shell:
    """A shell that never waits."""

    def __init__(self, *, looks_for_reports: bool = False) -> None:
        self.deliveries: Deliveries[Any] = Deliveries(Delivery, self, looks_for_reports=looks_for_reports)

    def wait(self, delivery: Delivery[Any], timeout: float | None) -> None:
        assert delivery.done


class Place:
    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 1741


def event(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed")


def failures(shell: Shell, pending: int = 0) -> list[str]:
    """Return the ids of the events of the next error, none if none is raised."""
    try:
        shell.deliveries.raise_failures(pending, 0.1)
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
            reports[number] = shell.deliveries.begin(event(number), "orders", shell)[1]
        elif step == "flush":
            assert failures(shell, len(reports)) == failed + [str(each) for each in reports]
            failed = []
        elif reports:
            chosen = data.draw(st.sampled_from(sorted(reports)))
            failed += [str(chosen)] if step == "fail" else []
            reports.pop(chosen)("refused" if step == "fail" else None, Place())
        assert len(shell.deliveries.reports) == len(reports)
    assert failures(shell) == failed
    assert failures(shell) == []


def test_who_waits_is_woken_after_the_report() -> None:
    """A future of a delivery is done when it is woken after the report, and others are not."""
    shell = Shell()
    delivery, report = shell.deliveries.begin(event(1), "orders", shell)
    waiter: Future[None] = Future()
    delivery._waiters = (waiter,)
    assert shell.deliveries.is_awaited()
    shell.deliveries.wake(10)
    assert not waiter.done()
    report(None, Place())
    shell.deliveries.wake(10)
    assert waiter.done()
    assert (delivery.partition, delivery.offset) == (3, 1741)


def test_a_success_without_a_report_is_seen_when_the_report_is_freed() -> None:
    """With delivery.report.only.error a client frees the report of a success, and does not call it."""
    shell = Shell(looks_for_reports=True)
    delivery, report = shell.deliveries.begin(event(1), "orders", shell)
    assert not delivery.done
    del report
    assert delivery.done
    assert delivery.result() is delivery


def test_a_delivery_that_the_client_refuses_is_not_on_its_way() -> None:
    """A dropped delivery is neither pending nor done."""
    shell = Shell(looks_for_reports=True)
    delivery, report = shell.deliveries.begin(event(1), "orders", shell)
    shell.deliveries.drop(delivery)
    del report
    assert not shell.deliveries.reports
    assert not delivery.done
    assert failures(shell) == []


def test_only_the_delivery_of_a_record_has_a_record() -> None:
    """The delivery of a record has it and its event; that of an event has no record."""
    shell = Shell()
    delivery, _ = shell.deliveries.begin(event(1), "orders", shell)
    assert delivery.event.id == "1"
    assert not hasattr(delivery, "record")
    with pytest.raises(AttributeError, match="record must be that of a sent record"):
        _ = delivery.record
    record = Record(value=b"17")
    assert shell.deliveries.begin(record, "orders", shell)[0].record is record
