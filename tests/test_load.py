"""A sample of `make soak`: members of a group through signals and an outage; and what finds its faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cloudevents_kafka.testing import LocalBroker
from tests.support import load
from tests.support.cases import each
from tests.support.load_laws import Call, Outage, calls_of, faults


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    """A broker of this module, which is killed."""
    with load.brokers() as broker:
        yield broker


@pytest.mark.release
@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("combination", load.IN_EACH_RUN, ids=lambda each: each.name)
def test_members_through_signals(broker: LocalBroker, combination: load.Combination) -> None:
    """After SIGTERM and SIGKILL no event is lost or out of order, and each signal has ended a member."""
    trial = load.run(broker, combination, events=1000, seed=7, interval=1.5, seconds=3, outages=())
    assert trial.done == {"SIGTERM": 1, "SIGKILL": 1}


def test_calls_are_read_from_the_notes() -> None:
    """A call has no end if its process was killed."""
    lines = ["1.0 m1 b k 1", "1.5 m2 b k2 7", "2.0 m1 e k 1", "2.5 m1 b k 2"]
    assert calls_of(lines) == [
        Call("m1", "k", 1, 1.0, 2.0),
        Call("m2", "k2", 7, 1.5, None),
        Call("m1", "k", 2, 2.5, None),
    ]


ONE = Call("m1", "k", 1, 10.0, 11.0)
TWO = Call("m1", "k", 2, 12.0, 13.0)


@each(
    ("calls", "outages", "expected"),
    [
        ([ONE, TWO], [], None),
        ([ONE], [], "2 is lost"),
        ([ONE, Call("m1", "k", 2, 12.0, None)], [], "2 is lost"),
        ([Call("m1", "k", 2, 9.0, 9.5), ONE], [], "2 began before 1 had ended"),
        ([ONE, Call("m2", "k", 2, 10.5, 13.0)], [], "2 began in m2 while 1 was on"),
        ([ONE, TWO, Call("m2", "k", 1, 30.0, 31.0)], [], "1 was done in m1 at 11.00, and again"),
        ([ONE, TWO, Call("m2", "k", 1, 30.0, 31.0)], [Outage(12.0, 12.1, "m1")], None),
        ([ONE, TWO, Call("m2", "k", 1, 30.0, 31.0)], [Outage(12.0, 12.1, "m3")], "again in m2"),
        ([ONE, TWO, Call("m2", "k", 1, 30.0, 31.0)], [Outage(29.0, 29.5, "m1")], "again in m2"),
        ([ONE, TWO, Call("m2", "k", 1, 30.0, 31.0)], [Outage(12.0, 20.0)], None),
        ([ONE, Call("m1", "k", 2, 12.0, None), Call("m2", "k", 2, 14, 15)], [Outage(13, 13.1, "m1")], None),
    ],
)
def test_faults_are_found(calls: list[Call], outages: list[Outage], expected: str | None) -> None:
    """What is lost, out of order, at the same time, or repeated without an outage is a fault."""
    found = faults(sorted(calls, key=lambda call: call.begin), {"k": [1, 2]}, outages)
    assert (found == []) if expected is None else any(expected in fault for fault in found), found
