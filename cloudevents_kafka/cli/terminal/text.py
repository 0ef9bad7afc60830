"""Text for a terminal: functions that escape unsafe characters, style text, and print text."""

from __future__ import annotations

import codecs
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, Final, Literal, TextIO

import click

from cloudevents_kafka.primitives.visible import UNSAFE, escape

_NOT_ASCII: Final = re.compile("[^\n -~]")
_STYLE: Final = re.compile(r"(\x1b\[[0-9;]*m)")
_FIRST_COLUMN: Final = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")
_NEAR: Final = 0.7  # the smallest share of common letters
_WIDTH: Final = 80  # of a terminal that does not say its width
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


def escape_lines(text: str) -> str:
    """Return a text in which `escape` has escaped all characters except line ends."""
    return "\n".join(map(escape, text.split("\n")))


def escape_json(text: str) -> str:
    """Return a JSON text with the same value, in which characters that are unsafe to print are escaped.

    Line ends are not escaped, since JSON has line ends only between tokens. If the encoding of stdout is not
    UTF-8, characters outside ASCII are also escaped.
    """
    return _escape_lines_of(text, _json_escape)


def escape_toml(text: str) -> str:
    """Return a TOML text in which unsafe characters are escaped.

    All strings of the text must be basic strings.
    """
    return _escape_lines_of(text, lambda match: f"\\U{ord(match[0]):08X}")


def _escape_lines_of(text: str, code: Callable[[re.Match[str]], str]) -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    unsafe = UNSAFE if codecs.lookup(encoding).name == "utf-8" else _NOT_ASCII
    return "\n".join(unsafe.sub(code, line) for line in text.split("\n"))


def _json_escape(match: re.Match[str]) -> str:
    # RFC 8259, 7: "encoding the UTF-16 surrogate pair"
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return re.sub("....", r"\\u\g<0>", units)


def columns(text: str) -> int:
    """Return the number of terminal columns in which an escaped text is shown."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def fit(text: str, width: int) -> str:
    """Return an escaped text, cut to a number of columns; a text that was cut ends with "…"."""
    if columns(text) <= width:
        return text
    kept, used = 0, 1
    for sign in text:
        used += _columns_of(sign)
        if used > width:
            break
        kept += 1
    return f"{text[:kept]}…"[:width]


def fit_words(text: str, width: int) -> str:
    """Return a text cut to a width, like `fit`, but between two words if possible.

    The text is cut between two words only if the words before the cut fill more than three quarters of the
    width.
    """
    fitted = fit(text, width)
    kept = fitted[:-1].rpartition(" ")[0].rstrip()
    return f"{kept} …" if fitted != text and columns(kept) > width * 3 // 4 else fitted


def _columns_of(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def width_of(stream: TextIO) -> int | None:
    """Return the width of a terminal in columns, or None if the stream is not a terminal."""
    try:
        return (os.get_terminal_size(stream.fileno()).columns or _WIDTH) if stream.isatty() else None
    except (OSError, ValueError):
        return None


def wrap(line: str, width: int | None) -> str:
    """Return a styled line, broken between words to fit a width; without a width, return the line unchanged.

    If the line has a second column, the text after a break continues below this column. Two columns are
    separated by two spaces or more. A word is not broken, even if it is longer than the width.
    """
    plain = click.unstyle(line)
    if width is None or columns(plain) <= width:
        return line
    second = _FIRST_COLUMN.match(plain)
    indent = len(plain) - len(plain.lstrip()) + 2 if second is None else min(second.end(), width // 2)
    kept_until = indent if second is None else second.end()
    breaks: set[int] = set()
    spaces: set[int] = set()
    start = end = shift = 0
    for word in re.finditer(r"\S+", plain):
        if word.start() > kept_until and shift + columns(plain[start : word.end()]) > width:
            breaks.add(word.start())
            spaces |= set(range(end, word.start()))
            start, shift = word.start(), indent
        end = word.end()
    if not breaks:
        return line
    wrapped: list[str] = []
    at = 0
    for part in _STYLE.split(line):
        if part.startswith("\x1b"):
            wrapped.append(part)
            continue
        for place, sign in enumerate(part, at):
            broken = f"\n{' ' * indent}{sign}" if place in breaks else sign
            wrapped.append("" if place in spaces else broken)
        at += len(part)
    return "".join(wrapped)


def near(name: str, names: Iterable[str]) -> str:
    """Return a question with similar names, such as ``; did you mean 'orders'?``, or ``""``."""
    by_lower = {known.lower(): known for known in names}
    found = [repr(by_lower[key]) for key in get_close_matches(name.lower(), by_lower, cutoff=_NEAR)]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def styled(text: str, style: Style) -> str:
    """Return escaped text between the control sequences of a style."""
    return click.style(text, **_STYLES[style])


def print_lines(lines: Iterable[str], *, whole_words: bool = True) -> None:
    """Print lines of styled text on stdout; on a terminal, break lines between words and use colors."""
    # The variable NO_COLOR turns colors off with any text but "".
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = width_of(sys.stdout) if whole_words else None
    text = "".join(f"{wrap(line, width)}\n" for line in lines)
    click.echo(text, file=sys.stdout, nl=False, color=color)


def print_message(text: str) -> None:
    """Print a message of the command line on stderr, escaped; on a terminal, break it between words."""
    width = width_of(sys.stderr)
    lines = escape_lines(f"cloudevents-kafka: {text}").split("\n")
    click.echo("\n".join(wrap(line, width) for line in lines), err=True)
