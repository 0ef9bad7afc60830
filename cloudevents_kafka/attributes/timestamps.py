"""RFC 3339 timestamps: which texts are one, and which instant they name.

The text is what travels; a `datetime` is made when somebody asks. It cuts below a
microsecond, names a leap second by the last microsecond before it, and a time in the
year 0, which RFC 3339 has, by the first moment of the year 1.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from cloudevents_kafka.primitives.epoch import EPOCH, SECOND

_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d):([0-5]\d|60)(?:\.(\d+))?"
    r"([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_LEAP: Final = ":"  # comes after "9": a leap second is behind all digits of the second before it
_MINUTES: Final = 24 * 60
_LAST_MINUTE: Final = _MINUTES - 1
_NANOS: Final = range(10**9)
_YEARS: Final = range(10000)
_CALENDAR_YEARS: Final = 400
EPOCH_SECONDS: Final = range(-62135596800, 253402300800)
"""The seconds of the years 1 to 9999, counted from 1970."""
_from_iso: Final = datetime.fromisoformat
_read_quoted: Final = msgspec.json.Decoder(datetime).decode


def is_timestamp(text: str) -> bool:
    """Tell whether the text is an RFC 3339 date-time that names a real instant."""
    if text[10:11] == "T" and text[-1:] == "Z" and "\\" not in text:
        # The common form. The parser would take a space for T, no offset, and JSON's escapes; no more.
        try:
            _read_quoted(f'"{text}"')
        except (msgspec.MsgspecError, UnicodeEncodeError):
            pass  # a leap second, the year 0, or no timestamp: the grammar decides
        else:
            return True
    return _parse(text) is not None


def to_datetime(text: str) -> datetime:
    """Return the instant that a valid timestamp text names, in its own offset.

    Raises `ValueError` where the text is no RFC 3339 timestamp.
    """
    parsed = _parse(text)
    if parsed is None:
        raise ValueError(f"no RFC 3339 timestamp: {text!r}")
    return parsed[0]


def instant(text: str) -> tuple[datetime, str]:
    """Return what two texts of one instant share: UTC time, and what it cannot hold.

    That is the digits below a microsecond, and all of a leap second. Instants compare
    as they follow each other.
    """
    parsed = _parse(text)
    if parsed is None:
        raise ValueError(f"no RFC 3339 timestamp: {text!r}")
    return parsed[0], parsed[1]


def from_datetime(moment: datetime) -> str:
    """Return the canonical text of a datetime; UTC is written ``Z``.

    Raises `ValueError` for one without an offset, or with seconds in its offset.
    """
    offset = moment.utcoffset()
    if offset is None:
        raise ValueError("a datetime needs an offset (tzinfo), as every RFC 3339 timestamp has one")
    if offset % timedelta(minutes=1):
        raise ValueError("an RFC 3339 offset has no seconds")
    text = moment.isoformat()
    return f"{text[:-6]}Z" if offset == timedelta(0) else text


def to_utc_seconds(text: str) -> str:
    """Return the text of an instant in UTC, cut to the second; a text without an offset is of UTC.

    Raises `ValueError` where the text is no RFC 3339 timestamp, or in UTC is not in the years 0 to 9999.
    """
    match = _RFC3339.fullmatch(text) or _RFC3339.fullmatch(f"{text}Z")
    if match is None or _parse(match.string) is None:
        raise ValueError(f"no RFC 3339 timestamp: {text!r}")
    date, minute, second, _, offset = match.groups()
    # The calendar repeats itself: far from the first and the last year a datetime can be moved.
    year, turned = int(date[:4]), 2000 + int(date[:4]) % _CALENDAR_YEARS
    moved = _from_iso(f"{turned}{date[4:]}T{minute}{offset.upper()}").astimezone(UTC)
    year += moved.year - turned
    if year not in _YEARS:
        raise ValueError("in UTC it is not in the years 0 to 9999")
    return f"{year:04}{moved:-%m-%dT%H:%M}:{second}Z"


def to_epoch(text: str) -> tuple[int, int]:
    """Return the seconds since 1970 and the nanoseconds that a valid timestamp text names.

    Raises `ValueError`, which says why, for an instant that two such numbers cannot name:
    a leap second, digits below a nanosecond, and what is before year 1 or after 9999 in UTC.
    """
    moment, rest = instant(text)
    if rest.startswith(_LEAP):
        raise ValueError("it is a leap second, which has no number of its own")
    if len(rest) > 3 or not (rest.isdigit() or rest == ""):  # the year 0 comes as its text
        raise ValueError(
            "its year is 0" if text.startswith("0000") else "it has digits that are below a nanosecond"
        )
    seconds, fraction = divmod(moment - EPOCH, SECOND)
    if seconds not in EPOCH_SECONDS:
        raise ValueError("in UTC it is before the year 1 or after 9999")
    return seconds, fraction.microseconds * 1000 + int(rest.ljust(3, "0"))


def from_epoch(seconds: int, nanos: int) -> str:
    """Return the text of an instant, in UTC and as short as it can be; the inverse of `to_epoch`.

    Raises `ValueError` for seconds that are not in `EPOCH_SECONDS`, or nanoseconds of a second or more.
    """
    if seconds not in EPOCH_SECONDS or nanos not in _NANOS:
        raise ValueError("an instant is in the years 1 to 9999, its nanoseconds less than a second")
    whole = (EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
    return f"{whole}.{nanos:09}".rstrip("0") + "Z" if nanos else f"{whole}Z"


def _utc_minute(moment: datetime) -> int:
    """Return the minute of the day in UTC; by hand, as UTC may be past the first or last year."""
    offset = moment.utcoffset() or timedelta(0)
    return (moment.hour * 60 + moment.minute - offset // timedelta(minutes=1)) % _MINUTES


def _parse(text: str) -> tuple[datetime, str] | None:
    """Parse a text into the instant, and what tells it apart within its microsecond."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    date, minute, second, fraction, offset = match.groups()
    digits = fraction or ""
    leap = second == "60"
    shown = "59.999999" if leap else f"{second}.{digits[:6]:0<6}"
    year_0 = date.startswith("0000")
    try:
        # Like the year 0, the year 4 is a leap year, and a datetime can name it.
        moment = _from_iso(f"{'0004' + date[4:] if year_0 else date}T{minute}:{shown}{offset.upper()}")
    except ValueError:  # 31 June
        return None
    if leap and _utc_minute(moment) != _LAST_MINUTE:
        return None  # leap seconds are put in before midnight UTC, and nowhere else
    if year_0:
        return datetime.min.replace(tzinfo=moment.tzinfo), text
    return moment, _LEAP + digits.rstrip("0") if leap else digits[6:].rstrip("0")
