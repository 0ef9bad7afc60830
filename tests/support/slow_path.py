"""A monitor of reading and making events: which of them enter the search for problems, the slow path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Final, Self

from cloudevents_kafka import Decoded, Event
from cloudevents_kafka.attributes import validation
from cloudevents_kafka.binding import _decode
from cloudevents_kafka.formats.base import BaseFormat
from cloudevents_kafka.formats.json import JsonFormat

SLOW: Final[dict[CodeType, str]] = {
    function.__code__: function.__qualname__
    for function in (
        _decode._read,
        JsonFormat._decode,
        validation.validate,
        validation.find_problems,
    )
}
"""The functions that only an invalid event should need."""
_WATCHED: Final[dict[CodeType, str]] = {
    _decode.from_record.__code__: "record",
    _decode.decode.__code__: "record",
    JsonFormat.decode.__code__: "value",
    BaseFormat.decode.__code__: "value",
    Event._set.__code__: "attributes",
}
"""The functions that return an event, and their arguments."""


@dataclass
class Call:
    """A call that should return an event: what it got, what it returned, and its calls of slow functions."""

    function: str
    given: Any
    slow: list[str] = field(default_factory=list)
    result: Any = None

    @property
    def is_valid(self) -> bool:
        """Whether the result is an event, read without any tolerance."""
        return isinstance(self.result, Event) or (
            isinstance(self.result, Decoded) and not self.result.tolerated
        )


class Monitor:
    """A context manager that collects the calls in its block that read or make events."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._open: tuple[FrameType, Call] | None = None
        self._before: Callable[..., Any] | None = None

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    @property
    def valid(self) -> list[Call]:
        """The calls that returned valid events."""
        return [call for call in self.calls if call.is_valid]

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if self._open is None:
            if event == "call" and code in _WATCHED:
                self._open = frame, Call(code.co_qualname, frame.f_locals[_WATCHED[code]])
        elif event == "call":
            if code in SLOW:
                self._open[1].slow.append(SLOW[code])
        elif event == "return" and self._open[0] is frame:
            call = self._open[1]
            self._open = None
            call.result = _made(frame) if code is Event._set.__code__ else argument
            self.calls.append(call)


def _made(frame: FrameType) -> Event | None:
    """Return the event that a constructor made, or None if it raised an error."""
    made: Event = frame.f_locals["self"]
    return made if hasattr(made, "_attributes") else None
