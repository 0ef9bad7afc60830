"""Time spans that are written as texts, such as ``90m``, ``1h`` or ``7 days``."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN: Final = re.compile(r"([0-9]{1,9}) ?([smhd]|(?:sec(?:ond)?|min(?:ute)?|hour|day)s?)")


def parse_span(text: str, name: str) -> int:
    """Return the seconds of a time span. Raises `ValueError`, which contains ``name``, for other texts."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{name} must be a whole number of seconds, minutes, hours or days, such as 90m, 1h or 7 days, "
            f"got {text!r}"
        )
    return int(match[1]) * _UNITS[match[2][0]]
