"""Ends of a request other than a response; Kafka's error codes as exceptions."""

from __future__ import annotations

from collections.abc import Callable

from cloudevents_kafka.protocol.error_codes import ErrorCode


class ApiError(Exception):
    """An error code that a request, or one partition of it, is answered with."""

    def __init__(self, code: int) -> None:
        known = ErrorCode.find(code)
        super().__init__(f"error {code}" if known is None else f"{known.name} ({code}): {known.message}")
        self.code = code


class CloseConnection(Exception):
    """The connection is closed without a response; a non-empty ``reason`` is recorded."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class NoResponse(Exception):
    """The request stays unanswered and the connection open, as 0.9 does with unreadable requests."""


def error_code_of(action: Callable[[], object]) -> int:
    """Call a function and return the code of the `ApiError` that it raises, or `ErrorCode.NONE`."""
    try:
        action()
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
