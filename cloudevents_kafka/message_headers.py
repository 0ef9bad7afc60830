"""Reads the headers of a Kafka client's message; the client may fail to return them."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any, Final

from cloudevents_kafka.primitives.preview import preview

# `methodcaller` makes the call in C code, which checks that a call with an error returned no value. After a
# Python function has run several times, the interpreter may omit this check for a call in the function: the
# error then appears in a later statement, when the list has already been used.
_call_headers: Final[Callable[[Any], Any]] = methodcaller("headers")
_PAIR: Final = ("", None)


class UnreadHeaders(list[tuple[str, bytes | None]]):
    """An empty list in place of headers that a client could not return, with the reason.

    ``value`` is a preview of the header name that is not UTF-8, or None if the name is unknown.
    """

    rule: Final = "header names must be UTF-8"

    def __init__(self, error: UnicodeDecodeError | None = None, hint: str | None = None) -> None:
        super().__init__()
        self.value = None if error is None else preview(error.object)
        self.hint = hint

    @property
    def reason(self) -> str:
        """The rule that the headers break, and the wrong header name, if it is known."""
        return self.rule if self.value is None else f"{self.rule}, got {self.value}"

    def __repr__(self) -> str:
        return f"<unread: {self.reason}>"


def headers_of(message: Any) -> Any:
    """Return the headers of a message, or `UnreadHeaders` if the client cannot return the headers.

    For a message without headers, the result is an empty list.

    In this library, only `headers_of` calls the method ``headers()`` of a message. `headers_of` calls the
    method once, and checks that the returned list is complete before other code uses the list. If a header
    name is not UTF-8, the first call of confluent-kafka's ``headers()`` fails. The message then stores an
    incomplete list, in which this name is missing. Each later call of ``headers()`` returns this incomplete
    list, and Python crashes when it reads the list's pair without a name. The first call of ``headers()`` may
    have been made by the user's code.
    """
    try:
        headers = _call_headers(message)
        if type(headers) is list:
            headers.count(_PAIR)  # compares each name; a missing name raises SystemError
            return headers
    except (SystemError, ValueError) as error:
        return UnreadHeaders(name_error(error))
    return headers if headers or type(headers) is UnreadHeaders else []


def name_error(error: Exception) -> UnicodeDecodeError | None:
    """If a header name has caused an error of the client, return the cause of the error, else None."""
    cause: BaseException | None = error
    while not (cause is None or isinstance(cause, UnicodeDecodeError)):
        cause = cause.__cause__
    return cause
