"""Timestamps: RFC 3339 texts, their instants, and datetimes as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.attributes.timestamps import (
    EPOCH_SECONDS,
    from_datetime,
    from_epoch,
    instant,
    is_timestamp,
    to_datetime,
    to_epoch,
    to_utc_seconds,
)
from tests.support import strategies as make
from tests.support.cases import each

NOON = datetime(2018, 4, 5, 12, 0, 0, tzinfo=UTC)


@each(
    "text",
    [
        "2018-04-05T17:31:00Z",
        "2018-04-05T17:31:00.000000000Z",
        "0000-02-29T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "2018-04-05T18:31:00+01:00",
        "2018-04-05t17:31:00z",
        "2018-04-05T17:31:00-00:00",
        "2018-04-05T17:31:00.1234567890123Z",
        "2016-12-31T23:59:60Z",
        "2020-02-29T00:00:00Z",
        "2016-12-31T18:59:60.5-05:00",
        "2017-01-01T00:59:60+01:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ],
)
def test_valid(text: str) -> None:
    """RFC 3339 texts are timestamps, also with lower-case letters and leap seconds."""
    assert is_timestamp(text)
    assert to_datetime(text).tzinfo is not None


@each(
    "text",
    [
        "",
        "lunchtime",
        "2018-04-05",
        "2018-04-05T18:31Z",
        "2018-04-05T18:31:00",
        "2018-04-05T18:31:00X",
        "20180405T183100Z",
        "2018-04-05T18:31:00+25:00",
        "2018-04-05T18:31:00+xx:00",
        "2018-04-05T18:31:00+05",
        "2018-04-05T18:31:00+0530",
        "2018-04-05T18:31:00+01:30:30",
        "2018-04-05T18:31:00-00:60",
        "2018-04-05 18:31:00Z",
        "2018-04-05T18:31:00,5Z",
        "2018-04-05T24:00:00Z",
        "2018-04-05T18:60:00Z",
        "2018-13-05T18:31:00Z",
        "2100-02-29T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "2018-04-05T18:31:60Z",
        "2016-12-31T23:59:60+01:00",
        "2016-12-31T23:59:61Z",
        "2018-W14-4T03:56:24Z",
        "0000-02-30T00:00:00Z",
        "2018-04-05T18:31:00.Z",
        "2018-04-05T18:31:00.123456xZ",
        "2018-04-05T18:31:00.1234567+Z",
        " 2018-04-05T18:31:00Z",
        "2018-04-05T18:31:00Z\n",
        "\u0662018-04-05T18:31:00Z",
        "2018-04-05T18:31:00.\u0661Z",
        "2018-04-05T18:31:00.²Z",
        "2018-04-05T18:31:00ZZ",
        "2018-04-05T18:31:00.123456789²Z",
        r"2018-04-05T1\u0037:31:00Z",
    ],
)
def test_invalid(text: str) -> None:
    """Texts that other date parsers accept are not timestamps."""
    assert not is_timestamp(text)
    for read in (to_datetime, instant, to_epoch):
        with pytest.raises(ValueError, match="must have the form of RFC 3339"):
            read(text)


@each(
    ("one", "other", "same"),
    [
        ("2018-04-05T17:31:00Z", "2018-04-05T18:31:00+01:00", True),
        ("2018-04-05T17:31:00Z", "2018-04-05T17:31:00.000000000Z", True),
        ("2018-04-05T17:31:00Z", "2018-04-05t17:31:00-00:00", True),
        ("2018-04-05T17:31:00.1Z", "2018-04-05T17:31:00.10Z", True),
        ("2018-04-05T17:31:00.123456789Z", "2018-04-05T17:31:00.1234567890Z", True),
        ("2018-04-05T17:31:00.123456789Z", "2018-04-05T17:31:00.123456788Z", False),
        ("2018-04-05T17:31:00.123456Z", "2018-04-05T17:31:00.1234560001Z", False),
        ("2018-04-05T17:31:00Z", "2018-04-05T17:31:01Z", False),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999999Z", False),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z", False),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:59:60.000+01:00", True),
        ("2016-12-31T23:59:60.1Z", "2016-12-31T23:59:60.2Z", False),
        ("2016-12-31T23:59:60.1Z", "2016-12-31T23:59:59.999999601Z", False),
        ("2016-12-31T23:59:60.1Z", "2016-12-31T23:59:60.10Z", True),
    ],
)
def test_instants(one: str, other: str, same: bool) -> None:  # noqa: FBT001 - a column
    """Two texts are one instant by time and offset, to the last digit; leap seconds differ."""
    assert (instant(one) == instant(other)) is same


@each(
    ("moment", "text"),
    [
        (NOON, "2018-04-05T12:00:00Z"),
        (NOON.replace(microsecond=500000), "2018-04-05T12:00:00.500000Z"),
        (NOON.replace(tzinfo=timezone(timedelta(0), "GMT")), "2018-04-05T12:00:00Z"),
        (NOON.astimezone(timezone(timedelta(hours=-5, minutes=-30))), "2018-04-05T06:30:00-05:30"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
        (NOON.replace(tzinfo=timezone(timedelta(minutes=1))), "2018-04-05T12:00:00+00:01"),
        (NOON.replace(tzinfo=timezone(timedelta(minutes=59))), "2018-04-05T12:00:00+00:59"),
        (NOON.replace(tzinfo=timezone(timedelta(hours=23, minutes=59))), "2018-04-05T12:00:00+23:59"),
    ],
)
def test_datetimes_as_text(moment: datetime, text: str) -> None:
    """A datetime keeps its offset and digits; UTC is Z."""
    assert from_datetime(moment) == text


@each(
    ("moment", "why"),
    [
        (NOON.replace(tzinfo=None), "must have an offset"),
        (NOON.replace(tzinfo=timezone(timedelta(minutes=53, seconds=28))), "no seconds"),
        (NOON.replace(tzinfo=timezone(timedelta(microseconds=1))), "no seconds"),
        (NOON.replace(tzinfo=timezone(timedelta(seconds=1))), "no seconds"),
        (NOON.replace(tzinfo=timezone(timedelta(minutes=1, seconds=59))), "no seconds"),
        (NOON.replace(tzinfo=timezone(timedelta(minutes=1, microseconds=-1))), "no seconds"),
    ],
)
def test_datetimes_without_rfc_3339_text(moment: datetime, why: str) -> None:
    """An offset is neither assumed nor rounded."""
    with pytest.raises(ValueError, match=why):
        from_datetime(moment)


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=make.zones))  # noqa: DTZ001 - bounds are naive
def test_datetime_round_trip(moment: datetime) -> None:
    """A datetime has the same instant and offset after writing and reading."""
    again = to_datetime(from_datetime(moment))
    assert again == moment
    assert again.utcoffset() == moment.utcoffset()


@each("read", [to_datetime, instant, to_epoch, to_utc_seconds])
def test_an_error_shows_the_beginning_of_the_text(read: Any) -> None:
    """A text of any length has a message of one line."""
    with pytest.raises(ValueError, match=rf"^a timestamp must have the form of RFC 3339, got '{'x' * 60}'$"):
        read("x" * 61)


@each(
    ("text", "moment", "rest"),
    [
        ("2018-04-05T12:00:00.123456Z", NOON.replace(microsecond=123_456), ""),
        ("2018-04-05T12:00:00.1234560Z", NOON.replace(microsecond=123_456), ""),
        ("2018-04-05T12:00:00.12345670Z", NOON.replace(microsecond=123_456), "7"),
        ("2018-04-05T12:00:00.5Z", NOON.replace(microsecond=500_000), ""),
        ("2016-12-31T23:59:60.50Z", datetime(2016, 12, 31, 23, 59, 59, 999_999, UTC), ":5"),
        ("0000-02-29T12:00:00Z", datetime(1, 1, 1, tzinfo=UTC), "0000-02-29T12:00:00Z"),
    ],
)
def test_an_instant_has_what_a_datetime_cannot_express(text: str, moment: datetime, rest: str) -> None:
    """It is the digits below a microsecond, those of a leap second, or the text of the year 0."""
    assert instant(text) == (moment, rest)


class _Nanoseconds(datetime):
    """A datetime with digits that its class writes, as those of pandas do."""

    def isoformat(self, *arguments: str) -> str:
        return super().isoformat(*arguments).replace("+", ".000000001+")


@pytest.mark.parametrize(("zone", "suffix"), [(UTC, "Z"), (timezone(timedelta(hours=2)), "+02:00")])
def test_digits_of_a_subclass_are_kept(zone: timezone, suffix: str) -> None:
    """A subclass of datetime writes its own text."""
    assert from_datetime(_Nanoseconds(2018, 4, 5, tzinfo=zone)) == f"2018-04-05T00:00:00.000000001{suffix}"


@given(make.timestamps())
def test_every_form_is_valid(text: str) -> None:
    """All forms of RFC 3339 are timestamps, equal to themselves in upper case."""
    assert is_timestamp(text)
    assert instant(text) == instant(text.upper())


@each(
    ("text", "epoch", "again"),
    [
        ("1970-01-01T00:00:00Z", (0, 0), None),
        ("1969-12-31T23:59:59.999999999Z", (-1, 999_999_999), None),
        ("2018-04-05T17:31:00.000000001Z", (1522949460, 1), None),
        ("2018-04-05T19:31:00.500+02:00", (1522949460, 500_000_000), "2018-04-05T17:31:00.5Z"),
        ("2018-04-05T17:31:00.1200000000000Z", (1522949460, 120_000_000), "2018-04-05T17:31:00.12Z"),
        ("0001-01-01T00:00:00Z", (EPOCH_SECONDS[0], 0), None),
        ("9999-12-31T23:59:59.999999999Z", (EPOCH_SECONDS[-1], 999_999_999), None),
        ("1970-01-01T00:00:00.000000999Z", (0, 999), None),
        ("1970-01-01T00:00:00.000001Z", (0, 1000), None),
        ("1970-01-01T00:00:00.000001001Z", (0, 1001), None),
        ("1970-01-01T00:00:00.00000101Z", (0, 1010), None),
        ("1970-01-01T00:00:00.00001Z", (0, 10_000), None),
        ("1970-01-01T00:00:10Z", (10, 0), None),
        ("1970-01-02T00:00:00.120000001Z", (86400, 120_000_001), None),
        ("1970-01-01T00:00:00.12345678Z", (0, 123_456_780), None),
        ("1969-12-30T12:00:00.25Z", (-129_600, 250_000_000), None),
        ("1970-01-01T00:00:01.2345670+00:00", (1, 234_567_000), "1970-01-01T00:00:01.234567Z"),
        ("1970-01-01T00:00:01.123456+00:00", (1, 123_456_000), "1970-01-01T00:00:01.123456Z"),
        ("1970-01-01t00:00:01.5z", (1, 500_000_000), "1970-01-01T00:00:01.5Z"),
        ("1970-01-01T00:00:00.000001001-00:00", (0, 1001), "1970-01-01T00:00:00.000001001Z"),
    ],
)
def test_epoch_seconds(text: str, epoch: tuple[int, int], again: str | None) -> None:
    """Seconds and nanoseconds are the same instant; its text is in UTC and the shortest."""
    assert to_epoch(text) == epoch
    assert from_epoch(*epoch) == (again or text)


@each(
    ("text", "why"),
    [
        ("2016-12-31T23:59:60Z", "leap second"),
        ("2016-12-31T23:59:60.123Z", "leap second"),
        ("2018-04-05T17:31:00.0000000001Z", "below a nanosecond"),
        ("0000-01-01T00:00:00Z", "year is 0"),
        ("0001-01-01T00:00:00+00:01", "before the year 1"),
        ("9999-12-31T23:59:59-00:01", "after 9999"),
        ("lunchtime", "must have the form of RFC 3339"),
    ],
)
def test_instants_without_epoch_seconds(text: str, why: str) -> None:
    """An instant that the numbers cannot express is refused, not changed."""
    with pytest.raises(ValueError, match=why):
        to_epoch(text)


@each(("seconds", "nanos"), [(EPOCH_SECONDS[0] - 1, 0), (EPOCH_SECONDS[-1] + 1, 0), (0, -1), (0, 10**9)])
def test_epoch_seconds_without_instant(seconds: int, nanos: int) -> None:
    """Seconds outside of the calendar and nanoseconds of a second or more are refused."""
    with pytest.raises(ValueError, match="years 1 to 9999"):
        from_epoch(seconds, nanos)


@each(
    ("text", "second"),
    [
        ("2026-05-13T10:49:12.999999+01:00", "2026-05-13T09:49:12Z"),
        ("2020-01-01t00:00:00.5z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00", "2020-01-01T00:00:00Z"),
        ("2016-12-31T15:59:60.25-08:00", "2016-12-31T23:59:60Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ("0000-03-01T00:00:00+00:01", "0000-02-29T23:59:00Z"),
        ("0400-01-01T00:00:00+00:01", "0399-12-31T23:59:00Z"),
        ("9999-12-31T23:59:59.9+00:01", "9999-12-31T23:58:59Z"),
        ("2020-02-29T12:00:00Z", "2020-02-29T12:00:00Z"),
        ("2020-03-01T00:30:00+01:00", "2020-02-29T23:30:00Z"),
        ("2020-02-29T23:30:00-01:00", "2020-03-01T00:30:00Z"),
        ("2000-03-01T00:30:00+01:00", "2000-02-29T23:30:00Z"),
        ("1900-03-01T00:30:00+01:00", "1900-02-28T23:30:00Z"),
        ("2100-02-28T23:30:00-01:00", "2100-03-01T00:30:00Z"),
        ("2399-12-31T23:30:00-01:00", "2400-01-01T00:30:00Z"),
        ("0000-12-31T23:30:00-01:00", "0001-01-01T00:30:00Z"),
    ],
)
def test_utc_seconds(text: str, second: str) -> None:
    """A time is truncated and in UTC; without an offset it is in UTC already."""
    assert to_utc_seconds(text) == second


@each("text", ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2020-06-31T00:00:00Z", "soon", ""])
def test_no_utc_seconds(text: str) -> None:
    """A time outside of the years 0 to 9999 and an invalid text are refused."""
    with pytest.raises(ValueError, match=r"years 0 to 9999|must have the form of RFC 3339"):
        to_utc_seconds(text)


@given(make.timestamps())
def test_utc_seconds_are_those_of_the_instant(text: str) -> None:
    """The text in UTC is the second of the instant."""
    moment, _ = instant(text)
    assert to_datetime(to_utc_seconds(text)) == moment.replace(microsecond=0)


@given(st.sampled_from(EPOCH_SECONDS), st.sampled_from(range(10**9)))
def test_epoch_round_trip(seconds: int, nanos: int) -> None:
    """Each pair of seconds and nanoseconds has a text that is read as the pair."""
    assert to_epoch(from_epoch(seconds, nanos)) == (seconds, nanos)
    assert is_timestamp(from_epoch(seconds, nanos))
