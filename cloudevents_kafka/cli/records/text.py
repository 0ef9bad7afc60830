"""Records and events as text for people: attributes first, other headers after, aligned.

A line is a list of (text, style) pairs; `Painter` prints it, in colours where rich is
installed and the terminal has them. Every text passes `visible` before it gets here.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from typing import Any, Final

from cloudevents_kafka.binding import Decoded, Undecodable, attribute_of, sniff
from cloudevents_kafka.cli.terminal.escape import visible
from cloudevents_kafka.codecs.payload import decode_text, implies_json
from cloudevents_kafka.errors import DataError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.epoch import format_milliseconds
from cloudevents_kafka.record import Record

Line = list[tuple[str, str]]
"""Texts and their styles, in rich's words; ``""`` is plain."""

PLACE: Final = "bold"
NAME: Final = "cyan"
TYPE: Final = "bold green"
HEADER: Final = "magenta"
DIM: Final = "dim"
BAD: Final = "bold red"
NOTE: Final = "yellow"
_WHITE: Final = str.maketrans("\n\r\t", "   ")  # in JSON, raw, they stand between tokens only
_WIDTH: Final = 15  # of "datacontenttype"


def item_lines(item: Decoded | Undecodable) -> list[Line]:
    """Lay out one record, with an empty line behind it."""
    lines = [head(item.record)]
    if isinstance(item, Decoded):
        lines[0].append((f"  {mode_of(item.record)}", DIM))
        lines += event_lines(item.event)
        lines += [row("tolerated", visible(str(problem)), NOTE) for problem in item.tolerated]
        lines += header_lines(item.record, foreign=True)
    else:
        lines += [row(item.error.verdict, visible(item.error.reason), BAD)]
        lines += header_lines(item.record, foreign=False)
        lines += [row("value", bytes_text(item.record.value), "")]
    return [*lines, []]


def head(record: Record) -> Line:
    """Lay out where a record stood, when, and its key."""
    line: Line = [(visible(record.where) or "a record", PLACE)]
    if record.timestamp is not None:
        line.append((f"  {moment(record.timestamp)}", DIM))
    if record.key is not None:
        line += [("  key=", DIM), (bytes_text(record.key), "")]
    return line


def mode_of(record: Record) -> str:
    """Name the content mode of a record that is an event, and its format."""
    verdict = sniff(record.headers)
    return f"structured {verdict.format}" if verdict.mode == "structured" else "binary"


def moment(milliseconds: int) -> str:
    """Write a record's timestamp as RFC 3339; the number itself where no date has it."""
    try:
        return format_milliseconds(milliseconds)
    except OverflowError:
        return str(milliseconds)


def event_lines(event: Event) -> list[Line]:
    """Lay out an event's attributes, in the order they came, and its data."""
    lines = [row(name, visible(str(event.text(name))), TYPE if name == "type" else "") for name in event]
    return lines if event.payload is None else [*lines, row("data", data_text(event), "")]


def data_text(event: Event) -> str:
    """Show an event's data on one line, as text if it is some, else as base64."""
    payload, content_type = event.payload or b"", event.datacontenttype
    try:
        text = decode_text(payload, content_type)
    except DataError:
        return bytes_text(payload)
    if implies_json(content_type):
        text = text.translate(_WHITE)
    return visible(text) or bytes_text(payload)


def header_lines(record: Record, *, foreign: bool) -> list[Line]:
    """Lay out a record's headers; only those that are not the event's if ``foreign``."""
    return [
        [*row("header", visible(name), HEADER), (" is null" if value is None else " = ", DIM)]
        + ([] if value is None else [(bytes_text(value), "")])
        for name, value in record.headers
        if not foreign or attribute_of(name) is None
    ]


def row(name: str, text: str, style: str) -> Line:
    """Lay out a name and what it has, aligned with others."""
    return [(f"  {visible(name):<{_WIDTH}}  ", NAME), (text, style)]


def bytes_text(value: bytes | None) -> str:
    """Show bytes as text where they are UTF-8, else as base64 with a mark."""
    if value is None:
        return "null"
    try:
        return visible(value.decode()) if value else "(no bytes)"
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"


class Painter:
    """Prints lines to a text stream: in colours by rich, where it is there and they are wanted."""

    def __init__(self, stream: Any, *, colours: bool) -> None:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # one without UTF-8
        self._stream = stream
        self._console = _console(stream) if colours else None

    def paint(self, lines: Iterable[Line]) -> None:
        """Print lines; does not flush."""
        if self._console is None:
            self._stream.write("".join("".join(text for text, _ in line) + "\n" for line in lines))
            return
        from rich.text import Text

        for line in lines:
            self._console.print(Text.assemble(*line), soft_wrap=True)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()


def _console(stream: Any) -> Any:
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return Console(file=stream, highlight=False, markup=False, emoji=False)
