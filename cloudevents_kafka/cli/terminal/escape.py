"""Make any text safe for a terminal: what it would obey, or hide, is spelled out."""

from __future__ import annotations

import re
from typing import Final

# Controls (C1 among them: 0x9b starts a command as ESC [ does), what turns or hides
# text (directions, zero width, tags), line and paragraph separators, lone surrogates.
_OBEYED: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""Spell out control and invisible characters: ``\x1b``, ``\u202e``."""
    return text if text.isascii() and text.isprintable() else _OBEYED.sub(_spelled, text)


def visible_lines(text: str) -> str:
    """Do the same, but keep line ends, for messages of our own."""
    return "\n".join(visible(line) for line in text.split("\n"))


def visible_json(text: str) -> str:
    """Do the same in a JSON text, by JSON's own escapes: it stays the same value."""
    return _OBEYED.sub(_escaped, text)


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
