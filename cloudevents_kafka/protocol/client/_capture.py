"""Captures of a client's traffic: one JSON line for each frame.

A line is ``{"time": seconds since the epoch, "broker": "host:port", "sent": hex}``, with ``"received"``
instead of ``"sent"`` for a response. Requests and responses of a broker are in the order in which the
connection sent and received them. A capture omits SASL frames, because they may contain passwords.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.errors import Malformed

_log: Final = logging.getLogger("cloudevents_kafka.protocol")

Direction: TypeAlias = Literal["sent", "received"]


class CapturedFrame(NamedTuple):
    """A sent or received frame, which begins with its size; ``time`` is in seconds since the epoch."""

    time: float
    broker: str
    direction: Direction
    data: bytes


Trace: TypeAlias = Callable[[CapturedFrame], object]
"""A function that is called with each sent and received frame."""


def to_trace(trace: Trace | str | Path | IO[str] | None) -> Trace | None:
    """Return a function that passes frames to a function, a text stream or the file at a path.

    An error in a call of the returned function is logged and not raised, because threads that send records or
    heartbeats also call this function.
    """
    if trace is None:
        return None
    if callable(trace):
        return _logged(trace)
    return _logged(_file_trace(Path(trace)) if isinstance(trace, str | Path) else stream_trace(trace))


def _logged(trace: Trace) -> Trace:
    """Return a function that calls ``trace``, and logs the errors of ``trace``.

    If several consecutive calls fail, for instance on a full disk, only the first error is logged.
    """
    failed = False

    def call(frame: CapturedFrame) -> None:
        nonlocal failed
        try:
            trace(frame)
            failed = False
        except Exception as error:  # noqa: BLE001  # the user's function
            if not failed:
                lines = None if isinstance(error, OSError) else error  # the text of an OSError is enough
                message = "the trace of %s failed, so frames are missing: %r"
                _log.error(message, frame.broker, error, exc_info=lines)
            failed = True

    return call


def stream_trace(stream: IO[str]) -> Trace:
    """Return a function that writes each frame as a line to a text stream, and flushes the stream."""

    def write(frame: CapturedFrame) -> None:
        stream.write(_to_line(frame))
        stream.flush()

    return write


def _file_trace(path: Path) -> Trace:
    """Return a function that appends each frame as a line to a file, and opens the file for each line."""

    def write(frame: CapturedFrame) -> None:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(_to_line(frame))

    return write


def _to_line(frame: CapturedFrame) -> str:
    fields = {"time": round(frame.time, 6), "broker": frame.broker, frame.direction: frame.data.hex()}
    return json.dumps(fields) + "\n"


def parse_line(line: str, where: str) -> CapturedFrame:
    """Return the frame in a line of a capture.

    Raises `Malformed`, with ``where`` in its text, for a line that does not contain a frame.
    """
    try:
        fields = json.loads(line)
        direction: Direction = "sent" if "sent" in fields else "received"
        data = bytes.fromhex(fields[direction])
        return CapturedFrame(float(fields["time"]), str(fields["broker"]), direction, data)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise Malformed(f"{where} must be a line of a capture, got {line[:60]!r}") from None
