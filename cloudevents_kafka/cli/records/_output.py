"""The output of `consume` on stdout: JSON lines, text, or bare values."""

from __future__ import annotations

import select
import sys
from typing import Final

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.cli.records._json_lines import write_line
from cloudevents_kafka.cli.records._text import StyledPrinter, item_lines
from cloudevents_kafka.cli.terminal import escape_lines

OUTPUT_FORMATS: Final = ("json", "text", "raw")


class TextOutput(StyledPrinter):
    """Aligned text, in color on a terminal."""

    def write(self, item: Decoded | Undecodable) -> None:
        """Write one record."""
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
        """Add one record to the buffer."""
        if not self._raw:
            self._buffer.append(write_line(item))
            return
        value = item.record.value or b""
        if self._terminal:
            value = escape_lines(value.decode("utf-8", "backslashreplace")).encode()
        self._buffer.append(value + b"\n")

    def flush(self) -> None:
        """Write the buffer to stdout and flush it."""
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
