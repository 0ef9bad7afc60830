"""RFC 3339 timestamps: which texts are one, and which instant they name.

The text is what travels; a `datetime` is made when somebody asks. It cuts below a
microsecond, names a leap second by the last microsecond before it, and a time in the
year 0, which RFC 3339 has, by the first moment of the year 1.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

import msgspec

_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d):([0-5]\d|60)(?:\.(\d+))?"
    r"([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_MINUTES: Final = 24 * 60
_LAST_MINUTE: Final = _MINUTES - 1
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
    return moment, ":" + digits.rstrip("0") if leap else digits[6:].rstrip("0")  # ":" comes after "9"
