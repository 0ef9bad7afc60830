"""The output of records as text for people, as JSON lines, or as bare values.

Text output first shows the attributes of an event and then the other headers of the record, in aligned
columns. Text from records is escaped when an output line is built.
"""

from __future__ import annotations

import base64
import select
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from cloudevents_kafka.binding import Decoded, Undecodable, attribute_of
from cloudevents_kafka.cli.records.json_lines import encode_json
from cloudevents_kafka.cli.terminal.text import print_lines, styled
from cloudevents_kafka.codecs.payload import decode_text, implies_json
from cloudevents_kafka.errors import DataError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.epoch import format_milliseconds
from cloudevents_kafka.primitives.text_table import format_table
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.record import Record

_SPACES: Final = str.maketrans("\n\r\t", "   ")  # JSON has these characters between tokens only
_NAME_WIDTH: Final = len("datacontenttype")


def item_lines(item: Decoded | Undecodable, data: Callable[[Decoded], str]) -> list[str]:
    """Return the output lines for one record and the text of its data, with an empty line at the end."""
    heading, record = record_heading(item.record), item.record
    if isinstance(item, Undecodable):
        reason = row(item.error.verdict, styled(escape(item.error.reason), "error"))
        return [heading, reason, *content_lines(record), ""]
    return [
        f"{heading}{styled(f'  {mode_text(item.mode, item.format)}', 'dim')}",
        *_event_lines(item.event),
        *([] if item.event.payload is None else [row("data", data(item))]),
        *(row("tolerated", styled(escape(str(problem)), "warning")) for problem in item.tolerated),
        *header_lines(record, extra_only=True),
        "",
    ]


def record_heading(record: Record) -> str:
    """Return the line with a record's position, timestamp and key."""
    line = styled(escape(record.where) or "a record", "heading")
    if record.timestamp is not None:
        line += styled(f"  {timestamp_text(record.timestamp)}", "dim")
    return line if record.key is None else f"{line}{styled('  key=', 'dim')}{bytes_text(record.key)}"


def content_lines(record: Record) -> list[str]:
    """Return the lines for all headers of a record, and for its value."""
    return [*header_lines(record, extra_only=False), row("value", bytes_text(record.value))]


def mode_text(mode: str, format: str | None) -> str:
    """Return the content mode and the event format of a record: ``binary``, ``structured json``."""
    return mode if format is None else f"{mode} {format}"


def timestamp_text(milliseconds: int) -> str:
    """Return a record's timestamp in RFC 3339, or as a number if the year is not from 1 to 9999."""
    try:
        return format_milliseconds(milliseconds)
    except OverflowError:
        return str(milliseconds)


def _event_lines(event: Event) -> list[str]:
    """Return lines for the attributes of an event, in the order of the attributes."""
    texts = {name: escape(str(event.text(name))) for name in event}
    return [row(name, styled(text, "good") if name == "type" else text) for name, text in texts.items()]


def data_text(event: Event) -> str:
    """Return an event's data on one line: as text if the data can be decoded, else as ``base64:…``."""
    payload, content_type = event.payload or b"", event.datacontenttype
    try:
        text = decode_text(payload, content_type)
    except DataError:
        return bytes_text(payload)
    if implies_json(content_type):
        text = text.translate(_SPACES)
    return escape(text) or bytes_text(payload)


def header_lines(record: Record, *, extra_only: bool) -> list[str]:
    """Return lines for the headers of a record; with ``extra_only``, omit headers that carry attributes."""
    return [
        row("header", styled(escape(name), "header") + styled(" is null" if value is None else " = ", "dim"))
        + ("" if value is None else bytes_text(value))
        for name, value in record.headers
        if not extra_only or attribute_of(name) is None
    ]


def row(name: str, text: str) -> str:
    """Return the line for a name and a styled text, in aligned columns."""
    return styled(f"  {escape(name):<{_NAME_WIDTH}}  ", "name") + text


def bytes_text(value: bytes | None) -> str:
    """Return bytes as text if they are UTF-8, else as ``base64:…``."""
    if value is None:
        return "null"
    try:
        return escape(value.decode()) if value else "(empty)"
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"


def is_listed_as_json(output: str | None) -> bool:
    """Return whether to print JSON; if ``output`` is None, print JSON unless stdout is a terminal."""
    return output == "json" or (output is None and not sys.stdout.isatty())


def print_listing(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    objects: Iterable[dict[str, Any]],
    output: str | None,
) -> None:
    """Print objects as a table or as JSON lines; by default, print a table only on a terminal."""
    if is_listed_as_json(output):
        sys.stdout.write("".join(f"{encode_json(each).decode()}\n" for each in objects))
        return
    texts = [[f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in row] for row in rows]
    print_lines(format_table(header, texts).split("\n") if texts else ["  (none)"])


def is_pipe_closed() -> bool:
    """Return whether stdout is a pipe whose reader has closed it; if this is not known, return False."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)  # an empty mask: poll() reports errors anyway
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):  # no poll() on this system, or stdout is not a file
        return False
