"""A capture explained: answers are read in the version of the request that they are for."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from cloudevents_kafka.protocol.client import CapturedFrame
from cloudevents_kafka.protocol.errors import ProtocolError, Unsupported
from cloudevents_kafka.protocol.explain._field import Cursor, Explained
from cloudevents_kafka.protocol.explain._frame import (
    best_reading,
    explain_request,
    explain_response,
    tell_structure,
)
from cloudevents_kafka.protocol.messages.headers import ResponseHeader

_PRODUCE: Final = 0
_MOST_WAITING: Final = 100  # requests of one id: as many connections to one broker


class CaptureExplainer:
    """Explains the frames of a capture, one after the other.

    A client may have several connections to a broker, each with correlation ids of its own, and a
    capture does not tell them apart. So where several requests of an id wait for their
    answer, it is that of the oldest it can be read as.
    """

    def __init__(self) -> None:
        """Wait for no answers yet."""
        self._waiting: Final[dict[tuple[str, int], deque[tuple[int, int]]]] = defaultdict(
            lambda: deque(maxlen=_MOST_WAITING)
        )

    def explain(self, frame: CapturedFrame) -> Explained:
        """Explain the next frame."""
        if frame.direction == "sent":
            return self._request(frame)
        number = int.from_bytes(frame.data[4:8], "big", signed=True)
        waiting = self._waiting.get((frame.broker, number))
        if not waiting:
            return _unpaired(frame.data)
        readings = [
            (asked, explain_response(frame.data, *asked, sized=True)) for asked in dict.fromkeys(waiting)
        ]
        asked, found = next((r for r in readings if not r[1].problems), readings[0])
        waiting.remove(asked)
        if not waiting:
            del self._waiting[frame.broker, number]
        return found

    def _request(self, frame: CapturedFrame) -> Explained:
        found = explain_request(frame.data, sized=True)
        number = found.value("header.correlation_id")
        unanswered = found.key == _PRODUCE and found.value("acks") == 0
        if number is not None and found.key is not None and found.version is not None and not unanswered:
            self._waiting[frame.broker, number].append((found.key, found.version))
        return found


def _unpaired(data: bytes) -> Explained:
    def read(cursor: Cursor) -> Explained:
        into = cursor.into
        try:
            tell_structure(cursor, ResponseHeader, 0, "header.")
            number = into.fields[-1].value
            raise Unsupported(
                f"the capture has no request with the correlation id {number} that waits for its answer; "
                "give this frame by itself, with --response, --api and --version"
            )
        except ProtocolError as error:
            cursor.break_off(error, "")
        return Explained(
            "response", "unknown", None, None, len(cursor.data), into.fields, into.problems, known=False
        )

    return best_reading(data, read, sized=True)
