"""Text for a terminal: escaped where a terminal would obey or hide it, styled, and printed."""

from __future__ import annotations

import codecs
import os
import re
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any, Final, Literal

import click

# C0 and C1 controls (0x9b starts a command as ESC [ does), characters that change the direction of
# text or have no width, tags, line and paragraph separators, lone surrogates.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_NOT_ASCII: Final = re.compile("[^\n -~]")
Style = Literal["heading", "name", "type", "value", "good", "header", "dim", "error", "warning"]
_STYLES: Final[dict[Style, dict[str, Any]]] = {
    "heading": {"bold": True},
    "name": {"fg": "cyan"},
    "type": {"fg": "blue"},
    "value": {"fg": "green"},
    "good": {"fg": "green", "bold": True},
    "header": {"fg": "magenta"},
    "dim": {"dim": True},
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow"},
}


def escape(text: str) -> str:
    r"""Return text with control and invisible characters escaped as in Python: ``\x1b``, ``\u202e``."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_python_escape, text)


def escape_lines(text: str) -> str:
    """Return text escaped as by `escape`, except for line ends."""
    return "\n".join(map(escape, text.split("\n")))


def escape_json(text: str) -> str:
    """Return a JSON text for stdout with the same characters escaped as in JSON; its value stays the same.

    Line ends stay: in JSON they stand between values only. If the encoding of stdout is not UTF-8, which JSON
    has, all characters but ASCII are escaped.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    unsafe = _UNSAFE if codecs.lookup(encoding).name == "utf-8" else _NOT_ASCII
    return "\n".join(unsafe.sub(_json_escape, line) for line in text.split("\n"))


def _python_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    # RFC 8259, 7: "encoding the UTF-16 surrogate pair"
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return re.sub("....", r"\\u\g<0>", units)


def columns(text: str) -> int:
    """Return how many columns of a terminal an escaped text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def fit(text: str, width: int) -> str:
    """Return an escaped text, cut to a number of columns; a text that is cut ends with "…"."""
    if columns(text) <= width:
        return text
    kept, used = 0, 1
    for sign in text:
        used += _columns_of(sign)
        if used > width:
            break
        kept += 1
    return f"{text[:kept]}…"[:width]


def _columns_of(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def styled(text: str, style: Style) -> str:
    """Return escaped text with the control sequences of a style."""
    return click.style(text, **_STYLES[style])


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of styled text on stdout, in color on a terminal with colors."""
    # The variable NO_COLOR turns colors off with any text but "".
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    click.echo("".join(f"{line}\n" for line in lines), file=sys.stdout, nl=False, color=color)
