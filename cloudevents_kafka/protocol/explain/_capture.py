"""The frames of a capture: a response is decoded in the version of its request."""

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
    explain_structure,
)
from cloudevents_kafka.protocol.messages.connection import ResponseHeader

_PRODUCE: Final = 0
_MAX_WAITING: Final = 100  # requests with one id, one for each connection to a broker


class CaptureExplainer:
    """Explains the frames of a capture in their order.

    A client may have several connections to a broker, each with its own correlation ids, which the capture
    does not distinguish. If several requests with an id wait, the response belongs to the oldest request
    that it can be decoded for.
    """

    def __init__(self) -> None:
        """Start without waiting requests."""
        self._waiting: Final[dict[tuple[str, int], deque[tuple[int, int]]]] = defaultdict(
            lambda: deque(maxlen=_MAX_WAITING)
        )

    def explain(self, frame: CapturedFrame) -> Explained:
        """Return the explanation of the next frame."""
        if frame.direction == "sent":
            return self._request(frame)
        number = int.from_bytes(frame.data[4:8], "big", signed=True)
        waiting = self._waiting.get((frame.broker, number))
        if not waiting:
            return _unpaired(frame.data)
        readings = [
            (request, explain_response(frame.data, *request, sized=True))
            for request in dict.fromkeys(waiting)
        ]
        request, found = next((r for r in readings if not r[1].problems), readings[0])
        waiting.remove(request)
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
        findings = cursor.findings
        try:
            explain_structure(cursor, ResponseHeader, 0, "header.")
            number = findings.fields[-1].value
            raise Unsupported(
                f"a request with the correlation id {number} is missing from the capture; "
                "decode the frame alone, with --response, --api and --version"
            )
        except ProtocolError as error:
            cursor.stop(error, "")
        return Explained(
            "response",
            "unknown",
            None,
            None,
            len(cursor.data),
            findings.fields,
            findings.problems,
            known=False,
        )

    return best_reading(data, read, sized=True)
