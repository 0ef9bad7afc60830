"""RFC 3339 timestamps: validation of their texts, and conversion to instants.

Events store the text of a timestamp and convert it to a `datetime` on access. A `datetime` cannot express the
digits of a timestamp below a microsecond, so these digits are missing in the `datetime`. The `datetime` of a
leap second is the last microsecond before the leap second. The `datetime` of a time in the year 0, which RFC
3339 allows, is the first instant of the year 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from cloudevents_kafka.primitives.epoch import EPOCH, SECOND

_RFC3339: Final = re.compile(  # RFC 3339 5.6: "T" and "Z" "may alternatively be lower case"
    r"(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d):([0-5]\d|60)(?:\.(\d+))?"
    r"([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_MICROSECONDS: Final = len("2018-04-05T17:31:00.123456Z")
_SIGNS: Final = ("+", "-")
_LEAP: Final = ":"  # sorts after "9": a leap second follows all fractions of the second before it
_MINUTES: Final = 24 * 60
_LAST_MINUTE: Final = _MINUTES - 1
_NANOS: Final = range(10**9)
_YEARS: Final = range(10000)
_CALENDAR_YEARS: Final = 400
EPOCH_SECONDS: Final = range(-62135596800, 253402300800)
"""The range of seconds since the epoch in which the instants of the years 1 to 9999 lie."""
_from_iso: Final = datetime.fromisoformat
utc_text: Final[Callable[[datetime], str]] = msgspec.to_builtins
"""Return the canonical text of an exact `datetime` (not of a subclass) without seconds in its offset."""
_read_quoted: Final = msgspec.json.Decoder(datetime).decode


def is_timestamp(text: str) -> bool:
    """Return whether a text is an RFC 3339 date-time that denotes an existing instant."""
    try:
        _read_quoted(f'"{text}"')
        # The common form. The only others that the parser accepts have a space for T, no offset, or escapes.
        if text[10] == "T" and (text[-1] == "Z" or text[-6] in _SIGNS) and "\\" not in text:
            return True
    except (msgspec.MsgspecError, UnicodeEncodeError):
        pass  # a leap second, the year 0, or an invalid text: the grammar decides
    return _parse(text) is not None


def to_datetime(text: str) -> datetime:
    """Return the instant of a timestamp, with its UTC offset; raise `ValueError` for an invalid timestamp."""
    return instant(text)[0]


def instant(text: str) -> tuple[datetime, str]:
    """Return a key for sorting timestamps: equal instants have equal keys, and earlier instants smaller keys.

    The key consists of the datetime and the parts of the instant that a datetime cannot express: digits below
    a microsecond, a leap second, or a time in the year 0. Raises `ValueError` if the text is not a timestamp.
    """
    parsed = _parse(text)
    if parsed is None:
        raise ValueError(f"a timestamp must have the form of RFC 3339, got {text[:60]!r}")
    return parsed


def from_datetime(moment: datetime) -> str:
    """Return the canonical text of a datetime; UTC is written as ``Z``.

    Raises `ValueError` if the datetime has no UTC offset, or an offset with seconds.
    """
    if moment.tzinfo is UTC and type(moment) is datetime:
        return utc_text(moment)
    offset = moment.utcoffset()
    if offset is None:
        raise ValueError("a datetime must have an offset (tzinfo), as an RFC 3339 timestamp has")
    if offset.seconds % 60 or offset.microseconds:
        raise ValueError("the offset of a datetime must have no seconds, as in RFC 3339")
    if type(moment) is datetime:
        return utc_text(moment)
    text = moment.isoformat()  # a subclass may have digits below a microsecond
    return text if offset else f"{text[:-6]}Z"


def to_utc_seconds(text: str) -> str:
    """Return an instant as text in UTC, without a fraction; a text without a UTC offset is read as UTC.

    Raises `ValueError` if the text does not denote an instant, or if the instant does not lie in the years 0
    to 9999 in UTC.
    """
    match = _RFC3339.fullmatch(text) or _RFC3339.fullmatch(f"{text}Z")
    if match is None:
        raise ValueError(f"a timestamp must have the form of RFC 3339, got {text[:60]!r}")
    instant(match.string)  # raises for a day or leap second that does not exist
    date, minute, second, _, offset = match.groups()
    # The calendar repeats every 400 years; near the year 2000 a conversion to UTC cannot overflow.
    year, similar = int(date[:4]), 2000 + int(date[:4]) % _CALENDAR_YEARS
    moved = _from_iso(f"{similar}{date[4:]}T{minute}{offset.upper()}").astimezone(UTC)
    year += moved.year - similar
    if year not in _YEARS:
        raise ValueError("in UTC it is not in the years 0 to 9999")
    return f"{year:04}{moved:-%m-%dT%H:%M}:{second}Z"


def to_epoch(text: str) -> tuple[int, int]:
    """Return a timestamp as two numbers: the seconds since the epoch, and the nanoseconds of the second.

    Raises `ValueError`, with the reason, if the instant cannot be expressed by two such numbers. Two such
    numbers cannot express a leap second, digits below a nanosecond, or an instant before the year 1 or after
    the year 9999 in UTC.
    """
    if len(text) <= _MICROSECONDS and text[10:11] == "T" and text[-1:] == "Z" and "\\" not in text:
        try:  # the common form, which `is_timestamp` reads in this way, too
            since = _read_quoted(f'"{text}"') - EPOCH
        except (msgspec.MsgspecError, UnicodeEncodeError):
            pass
        else:
            return since.days * 86400 + since.seconds, since.microseconds * 1000
    moment, rest = instant(text)
    if rest.startswith(_LEAP):
        raise ValueError("it is a leap second, which the number of seconds since the epoch does not include")
    if len(rest) > 3 or not (rest.isdigit() or rest == ""):  # the text of a time in the year 0
        raise ValueError("its year is 0" if text.startswith("0000") else "it has digits below a nanosecond")
    seconds, fraction = divmod(moment - EPOCH, SECOND)
    if seconds not in EPOCH_SECONDS:
        raise ValueError("in UTC it is before the year 1 or after 9999")
    return seconds, fraction.microseconds * 1000 + int(rest.ljust(3, "0"))


def from_epoch(seconds: int, nanos: int) -> str:
    """Return the shortest text of an instant in UTC; this function is the inverse of `to_epoch`.

    Raises `ValueError` unless the seconds lie in `EPOCH_SECONDS` and the nanoseconds are less than 10^9.
    """
    if seconds not in EPOCH_SECONDS or nanos not in _NANOS:
        raise ValueError("a time must be in the years 1 to 9999, and its nanoseconds below 10^9")
    micros, rest = divmod(nanos, 1000)
    text = utc_text(EPOCH + timedelta(0, seconds, micros))
    if rest:
        return f"{text[:19]}.{nanos:09}".rstrip("0") + "Z"
    return text[:-1].rstrip("0") + "Z" if micros else text


def _utc_minute(moment: datetime) -> int:
    """Return the minute of the day in UTC.

    This function does not call `astimezone`, which raises an error for some datetimes in the first and last
    year.
    """
    offset = moment.utcoffset() or timedelta(0)
    return (moment.hour * 60 + moment.minute - offset // timedelta(minutes=1)) % _MINUTES


def _parse(text: str) -> tuple[datetime, str] | None:
    """Return a datetime and a text for a timestamp, or None if the timestamp is invalid.

    The returned text contains the parts of the timestamp that the datetime cannot express.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    date, minute, second, fraction, offset = match.groups()
    digits = fraction or ""
    leap = second == "60"
    seconds = "59.999999" if leap else f"{second}.{digits[:6]:0<6}"
    year_0 = date.startswith("0000")
    try:
        # datetime has no year 0. The year 4 replaces it, since both are leap years.
        moment = _from_iso(f"{'0004' + date[4:] if year_0 else date}T{minute}:{seconds}{offset.upper()}")
    except ValueError:  # 31 June
        return None
    if leap and _utc_minute(moment) != _LAST_MINUTE:
        return None  # RFC 3339 5.7: leap seconds are inserted before midnight UTC only
    if year_0:
        return datetime.min.replace(tzinfo=moment.tzinfo), text
    return moment, _LEAP + digits.rstrip("0") if leap else digits[6:].rstrip("0")
