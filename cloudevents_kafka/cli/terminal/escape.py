"""Escape the characters of a text that a terminal would obey or hide."""

from __future__ import annotations

import re
from typing import Final

# C0 and C1 controls (0x9b starts a command as ESC [ does), characters that change the direction of
# text or have no width, tags, line and paragraph separators, lone surrogates.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)


def escape(text: str) -> str:
    r"""Return text with control and invisible characters escaped as in Python: ``\x1b``, ``\u202e``."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_python_escape, text)


def escape_lines(text: str) -> str:
    """Return text escaped as by `escape`, except for line ends."""
    return "\n".join(escape(line) for line in text.split("\n"))


def escape_json(text: str) -> str:
    """Return a JSON text with the same characters escaped as in JSON; its value stays the same."""
    return _UNSAFE.sub(_json_escape, text)


def _python_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()  # JSON has UTF-16 only (RFC 8259, 7)
    return re.sub("....", r"\\u\g<0>", units)
