"""Captures of a client's traffic: one JSON line a frame, as it went over the wire.

``{"time": seconds of the epoch, "broker": "host:port", "sent": hex}`` or ``"received"``;
requests and answers of a broker follow each other in the order of the connection.
Frames of SASL are left out, as they may hold passwords.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.errors import Malformed


class Frame(NamedTuple):
    """A frame that was sent or received, its size in front; ``time`` in seconds of the epoch."""

    time: float
    broker: str
    direction: Literal["sent", "received"]
    data: bytes


Trace: TypeAlias = Callable[[Frame], object]
"""Takes every frame that a client sends or receives."""


def write_to(stream: IO[str]) -> Trace:
    """Return a trace that writes a capture to a text stream, each line at once."""

    def write(frame: Frame) -> None:
        stream.write(_line(frame))
        stream.flush()

    return write


def append_to(path: Path) -> Trace:
    """Return a trace that writes a capture to a file, which is closed after each line."""

    def write(frame: Frame) -> None:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(_line(frame))

    return write


def _line(frame: Frame) -> str:
    line = {"time": round(frame.time, 6), "broker": frame.broker, frame.direction: frame.data.hex()}
    return json.dumps(line) + "\n"


def as_trace(trace: Trace | str | Path | IO[str] | None) -> Trace | None:
    """Make a trace of a function, a text stream, or the path of a file to append to."""
    if trace is None or callable(trace):
        return trace
    if isinstance(trace, str | Path):
        return append_to(Path(trace))
    return write_to(trace)


def frame(broker: str, direction: Literal["sent", "received"], data: bytes) -> Frame:
    """Return a frame of now."""
    return Frame(time.time(), broker, direction, data)


def read(lines: Iterator[str]) -> Iterator[Frame]:
    """Read a capture; `Malformed` with the number of a line that is none."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield parse(line, f"line {number}")


def parse(line: str, where: str) -> Frame:
    """Read a line of a capture; `Malformed` with ``where`` it stands if it is none."""
    try:
        fields = json.loads(line)
        direction: Literal["sent", "received"] = "sent" if "sent" in fields else "received"
        data = bytes.fromhex(fields[direction])
        return Frame(float(fields["time"]), str(fields["broker"]), direction, data)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise Malformed(f"{where} is no line of a capture: {line[:60]!r}") from None
