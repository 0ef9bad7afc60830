"""The output of records: text for people, JSON lines, or bare values.

Text has the attributes of an event, then other headers, aligned. A line of it is a list of (text,
style) pairs. `StyledPrinter` prints it, in color if rich is installed and the terminal has colors.
Text from records is escaped when a line is built.
"""

from __future__ import annotations

import base64
import io
import select
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from cloudevents_kafka.binding import Decoded, Undecodable, Verdict, attribute_of, sniff
from cloudevents_kafka.cli.records.json_lines import write_line
from cloudevents_kafka.cli.terminal.escape import escape, escape_lines
from cloudevents_kafka.codecs.payload import decode_text, implies_json
from cloudevents_kafka.errors import DataError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.epoch import format_milliseconds
from cloudevents_kafka.record import Record

StyledLine = list[tuple[str, str]]
"""Texts and their styles, as `Style` or as rich names them."""


class Style(StrEnum):
    """Styles by their meaning; the values are rich's names."""

    PLAIN = ""
    HEADING = "bold"
    NAME = "cyan"
    GOOD = "bold green"
    HEADER = "magenta"
    DIM = "dim"
    ERROR = "bold red"
    WARNING = "yellow"


OUTPUT_FORMATS: Final = ("json", "text", "raw")
_SPACES: Final = str.maketrans("\n\r\t", "   ")  # JSON has these characters between tokens only
_NAME_WIDTH: Final = len("datacontenttype")


def item_lines(item: Decoded | Undecodable) -> list[StyledLine]:
    """Return the lines of one record, with an empty line at the end."""
    lines = [record_heading(item.record)]
    if isinstance(item, Decoded):
        lines[0].append((f"  {mode_text(sniff(item.record.headers))}", Style.DIM))
        lines += _event_lines(item.event)
        lines += [row("tolerated", escape(str(problem)), Style.WARNING) for problem in item.tolerated]
        lines += header_lines(item.record, extra_only=True)
    else:
        lines += [row(item.error.verdict, escape(item.error.reason), Style.ERROR)]
        lines += header_lines(item.record, extra_only=False)
        lines += [row("value", bytes_text(item.record.value))]
    return [*lines, []]


def record_heading(record: Record) -> StyledLine:
    """Return the line with a record's place, timestamp and key."""
    line: StyledLine = [(escape(record.where) or "a record", Style.HEADING)]
    if record.timestamp is not None:
        line.append((f"  {timestamp_text(record.timestamp)}", Style.DIM))
    if record.key is not None:
        line += [("  key=", Style.DIM), (bytes_text(record.key), Style.PLAIN)]
    return line


def mode_text(verdict: Verdict) -> str:
    """Return the content mode and the event format: ``binary``, ``structured json``."""
    return f"structured {verdict.format}" if verdict.mode == "structured" else "binary"


def timestamp_text(milliseconds: int) -> str:
    """Return a record's timestamp in RFC 3339; the number itself if it is outside the years 1 to 9999."""
    try:
        return format_milliseconds(milliseconds)
    except OverflowError:
        return str(milliseconds)


def _event_lines(event: Event) -> list[StyledLine]:
    """Return the lines of an event's attributes, in their order, and of its data."""
    lines = [
        row(name, escape(str(event.text(name))), Style.GOOD if name == "type" else Style.PLAIN)
        for name in event
    ]
    return lines if event.payload is None else [*lines, row("data", data_text(event))]


def data_text(event: Event) -> str:
    """Return an event's data on one line: as text if its content type says so, else as base64."""
    payload, content_type = event.payload or b"", event.datacontenttype
    try:
        text = decode_text(payload, content_type)
    except DataError:
        return bytes_text(payload)
    if implies_json(content_type):
        text = text.translate(_SPACES)
    return escape(text) or bytes_text(payload)


def header_lines(record: Record, *, extra_only: bool) -> list[StyledLine]:
    """Return the lines of a record's headers; with ``extra_only``, without those of attributes."""
    return [
        [*row("header", escape(name), Style.HEADER), (" is null" if value is None else " = ", Style.DIM)]
        + ([] if value is None else [(bytes_text(value), Style.PLAIN)])
        for name, value in record.headers
        if not extra_only or attribute_of(name) is None
    ]


def row(name: str, text: str, style: str = Style.PLAIN) -> StyledLine:
    """Return the line of a name and a text, in aligned columns."""
    return [(f"  {escape(name):<{_NAME_WIDTH}}  ", Style.NAME), (text, style)]


def bytes_text(value: bytes | None) -> str:
    """Return bytes as text if they are UTF-8, else as ``base64:…``."""
    if value is None:
        return "null"
    try:
        return escape(value.decode()) if value else "(empty)"
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"


class StyledPrinter:
    """A printer of styled lines on a text stream, in color by rich if it is installed."""

    def __init__(self, stream: Any, *, color: bool) -> None:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the encoding may not be UTF-8
        self._stream = stream
        self._console = _console(stream) if color else None

    def print_lines(self, lines: Iterable[StyledLine]) -> None:
        """Print lines."""
        if self._console is None:
            self._stream.write("".join("".join(text for text, _ in line) + "\n" for line in lines))
            return
        from rich.text import Text

        for line in lines:
            self._console.print(Text.assemble(*line), soft_wrap=True)

    def flush(self) -> None:
        """Write what is buffered to the stream."""
        self._stream.flush()


def _console(stream: Any) -> Any:
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return Console(file=stream, highlight=False, markup=False, emoji=False)


# --- the output of `consume` ---


class TextOutput(StyledPrinter):
    """Aligned text, in color on a terminal."""

    def write(self, item: Decoded | Undecodable) -> None:
        """Add a record to the output."""
        self.print_lines(item_lines(item))


class BytesOutput:
    """JSON lines; with ``raw``, the value of each record and a line end, and null as an empty line.

    On a terminal, control characters in raw values are escaped.
    """

    def __init__(self, *, raw: bool, terminal: bool) -> None:
        self._raw = raw
        self._terminal = terminal
        self._stream = sys.stdout.buffer
        self._buffer: list[bytes] = []

    def write(self, item: Decoded | Undecodable) -> None:
        """Add a record to the output."""
        if not self._raw:
            self._buffer.append(write_line(item))
            return
        value = item.record.value or b""
        if self._terminal:
            value = escape_lines(value.decode("utf-8", "backslashreplace")).encode()
        self._buffer.append(value + b"\n")

    def flush(self) -> None:
        """Write what is buffered to the stream."""
        lines, self._buffer = self._buffer, []
        self._stream.write(b"".join(lines))
        self._stream.flush()


Output = TextOutput | BytesOutput
"""A writer of records; they are on stdout once `flush` returns."""


def create_output(format: str | None) -> Output:
    """Return the output of a format; the default is text on a terminal, and JSON lines elsewhere."""
    terminal = sys.stdout.isatty()
    if format is None:
        format = "text" if terminal else "json"
    if format == "text":
        return TextOutput(sys.stdout, color=terminal)
    return BytesOutput(raw=format == "raw", terminal=terminal)


def is_pipe_closed() -> bool:
    """Return whether stdout is a pipe whose reader has gone; False if the system cannot say."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)  # errors are reported without being asked for
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):  # no poll() on this system, or stdout is not a file
        return False
