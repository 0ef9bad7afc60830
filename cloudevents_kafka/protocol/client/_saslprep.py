"""`saslprep`: prepares user names and passwords with SASLprep (RFC 4013), a stringprep profile (RFC 3454)."""

from __future__ import annotations

import stringprep
import unicodedata
from typing import Final

# RFC 4013 2.3
_PROHIBITED: Final = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def saslprep(text: str) -> str | None:
    """Return the prepared text, or None if it contains characters that SASLprep prohibits."""
    # RFC 4013 2.1: spaces become U+0020; characters that are "commonly mapped to nothing" are left out
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char)
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    if any(prohibits(char) for char in prepared for prohibits in _PROHIBITED):
        return None
    return prepared if _is_one_direction(prepared) else None


def _is_one_direction(text: str) -> bool:
    """Return whether text follows the rules of RFC 3454 6 for right-to-left characters."""
    if not any(stringprep.in_table_d1(char) for char in text):
        return True
    if any(stringprep.in_table_d2(char) for char in text):
        return False
    return stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
