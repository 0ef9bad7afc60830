"""Where `consume` writes: JSON lines, text, or the bare values, to stdout."""

from __future__ import annotations

import select
import sys
from typing import Final, Literal, Protocol

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.cli.records.json_lines import write_line
from cloudevents_kafka.cli.records.text import Painter, item_lines
from cloudevents_kafka.cli.terminal.escape import visible_lines

Form = Literal["json", "text", "raw"]
FORMS: Final = ("json", "text", "raw")


class Output(Protocol):
    """Takes records, and has written them once `flush` returns."""

    def write(self, item: Decoded | Undecodable) -> None:
        """Take one record."""

    def flush(self) -> None:
        """Write what was taken, and give it to the reader."""


def make_output(form: str | None) -> Output:
    """Make the output of that form; by default text on a terminal, and JSON lines elsewhere."""
    terminal = sys.stdout.isatty()
    if form is None:
        form = "text" if terminal else "json"
    if form == "text":
        return TextOutput(colours=terminal)
    return BytesOutput(raw=form == "raw", terminal=terminal)


class TextOutput:
    """Aligned text, in colours on a terminal."""

    def __init__(self, *, colours: bool) -> None:
        self._painter = Painter(sys.stdout, colours=colours)

    def write(self, item: Decoded | Undecodable) -> None:
        """Write one record."""
        self._painter.paint(item_lines(item))

    def flush(self) -> None:
        """Give everything to the reader."""
        self._painter.flush()


class BytesOutput:
    """JSON lines; or with ``raw`` the values, each with a line end, none of it where it is null.

    On a terminal raw values are spelled out where it would obey them.
    """

    def __init__(self, *, raw: bool, terminal: bool) -> None:
        self._raw = raw
        self._terminal = terminal
        self._stream = sys.stdout.buffer
        self._waiting: list[bytes] = []

    def write(self, item: Decoded | Undecodable) -> None:
        """Hold one record ready."""
        if not self._raw:
            self._waiting.append(write_line(item))
            return
        value = item.record.value or b""
        if self._terminal:
            value = visible_lines(value.decode("utf-8", "backslashreplace")).encode()
        self._waiting.append(value + b"\n")

    def flush(self) -> None:
        """Write what is held ready, and give it to the reader."""
        waiting, self._waiting = self._waiting, []
        self._stream.write(b"".join(waiting))
        self._stream.flush()


def reader_has_gone() -> bool:
    """Tell, where the system can, that stdout is a pipe that nobody reads any more."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)  # errors are always told
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):  # no poll() here, or no file
        return False
