"""Expiry: events from their expirytime on, and event types after their sunset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from cloudevents_kafka import Decoded, Event, EventConsumer, Record, Undecodable, from_record, to_record
from cloudevents_kafka.extensions import expires_at, is_expired, is_past_sunset, unexpired
from cloudevents_kafka.testing import FakeConsumer, FakeProducer
from tests.support.cases import each

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def event(expirytime: str | datetime | None) -> Event:
    return Event(id="1", source="/", type="t", expirytime=expirytime)


def of_type_until(sunset: str | None) -> Event:
    return Event(id="1", source="/", type="t", deprecated=True, deprecationsunset=sunset)


@pytest.mark.parametrize(
    ("text", "expired"),
    [
        (None, False),
        ("2026-01-01T12:00:00Z", True),
        ("2026-01-01T13:00:00+01:00", True),
        ("2026-01-01T11:59:59.999999999Z", True),
        ("2026-01-01T12:00:00.000000001Z", False),
        ("2026-01-01T12:00:00-00:01", False),
        ("0001-01-01T00:00:00Z", True),
        ("9999-12-31T23:59:59-23:59", False),
    ],
)
def test_an_event_expires_at_its_moment(text: str | None, *, expired: bool) -> None:
    """Times are compared to the last digit, in any offset; an event without one does not expire."""
    made = from_record(to_record(event(text)))
    assert is_expired(made, NOON) is expired
    assert is_expired(made, NOON.astimezone(tz=None)) is expired
    assert is_expired(made, NOON.astimezone(timezone(timedelta(minutes=20, seconds=30)))) is expired
    assert expires_at(made) == made.get("expirytime")


@each(
    ("now", "first", "last"),
    [
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=5))), False, False),
        (datetime.min.replace(tzinfo=UTC), True, False),
        (datetime.max.replace(tzinfo=UTC), True, False),
        (datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))), True, True),
        (datetime.max.replace(tzinfo=timezone(-timedelta(hours=5, seconds=1))), True, True),
    ],
)
def test_now_may_be_any_time(now: datetime, *, first: bool, last: bool) -> None:
    """`now` may be before the first year or after the last year in UTC."""
    assert is_expired(event("0001-01-01T00:00:00Z"), now) is first
    assert is_expired(event("9999-12-31T23:59:59.9999999Z"), now) is last
    assert is_past_sunset(of_type_until("9999-12-31T23:59:59.9999999Z"), now) is last


def test_now_is_the_current_time_by_default() -> None:
    """`now` is the current time by default."""
    now = datetime.now(UTC)
    assert is_expired(event(now - timedelta(minutes=1)))
    assert not is_expired(event(now + timedelta(minutes=1)))


def test_an_invalid_expirytime_does_not_expire() -> None:
    """A text that is not a Timestamp, from lenient reading, does not expire."""
    headers = [*to_record(event(None)).headers, ("ce_expirytime", b"soon")]
    lenient = from_record(Record(headers=headers), lenient=True)
    assert lenient["expirytime"] == "soon"
    assert expires_at(lenient) is None
    assert not is_expired(lenient)


def test_a_naive_now_is_refused() -> None:
    """A datetime without an offset is ambiguous."""
    with pytest.raises(ValueError, match="must have an offset"):
        is_expired(event("2026-01-01T12:00:00Z"), datetime(2026, 1, 1))  # noqa: DTZ001 - that is one


def test_a_consumer_may_skip_expired_events() -> None:
    """Each event is compared with the clock when it is read; Undecodable items are passed on."""
    producer = FakeProducer()
    for text in ("2026-01-01T12:00:00Z", "2026-01-01T12:00:02Z", None):
        record = to_record(event(text))
        producer.produce("t", value=record.value, headers=record.headers)
    producer.produce("t", value=b"other")
    producer.flush()
    consumer = FakeConsumer(producer.log)
    consumer.subscribe(["t"])
    ticks = iter(NOON + timedelta(seconds=n) for n in range(9))
    items = list(unexpired(EventConsumer(consumer).items(idle_timeout=0.05), lambda: next(ticks)))
    assert [type(item) for item in items] == [Decoded, Decoded, Undecodable]
    assert [item.record.offset for item in items] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "past"),
    [
        (None, False),
        ("2026-01-01T11:59:59.999999999Z", True),
        ("2026-01-01T12:00:00Z", False),
        ("2026-01-01T13:00:00+01:00", False),
    ],
)
def test_a_type_is_past_its_sunset_after_that_moment(text: str | None, *, past: bool) -> None:
    """A type is supported until its sunset, inclusive."""
    assert is_past_sunset(of_type_until(text), NOON) is past
