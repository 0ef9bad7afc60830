"""How the handling of a request ends other than by an answer."""

from __future__ import annotations

from collections.abc import Callable

from cloudevents_kafka.protocol.error_codes import ErrorCode


class Refused(Exception):
    """The request, or one partition of it, is answered with an error code."""

    def __init__(self, code: int) -> None:
        """Keep the code, one of `protocol.error_codes`."""
        known = ErrorCode.find(code)
        super().__init__(f"error {code}" if known is None else f"{known.name} ({code}): {known.message}")
        self.code = code


class Hangup(Exception):
    """The connection is closed without an answer; ``reason`` is noted."""

    def __init__(self, reason: str = "") -> None:
        """Keep the reason; an empty one is not worth a note."""
        super().__init__(reason)
        self.reason = reason


class Muted(Exception):
    """There is no answer, and the connection stays open: what 0.9 does with what it cannot read."""


def outcome(action: Callable[[], object]) -> int:
    """Do something and return the error code that it is refused with, or `ErrorCode.NONE`."""
    try:
        action()
    except Refused as refused:
        return refused.code
    return ErrorCode.NONE
