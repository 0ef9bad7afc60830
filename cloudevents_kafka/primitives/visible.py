r"""Untrusted text for people: characters that a terminal would obey or hide are replaced by codes.

The characters that are replaced by codes are control characters, format characters, characters that programs
may ignore in display, line and paragraph separators, and lone surrogates. For example, the control character
U+009B starts a terminal command, as ESC [ does. Some format characters change the direction of text. Unicode
has the property ``Default_Ignorable_Code_Point`` for the characters that programs may ignore: fillers,
joiners, variation selectors and tags.
"""

from __future__ import annotations

import re
from typing import Final

UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""A pattern that matches any character which is replaced by a code."""


def escape(text: str) -> str:
    r"""Return text in which unsafe characters are escaped as in Python: ``\x1b``, ``\u202e``."""
    return text if text.isascii() and text.isprintable() else UNSAFE.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
