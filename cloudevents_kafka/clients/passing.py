"""Recognize transient errors: a failed connection, a time-out, or an HTTP answer with status 429 or 5xx.

A codec may need another server, such as a schema registry, to read or write data. If the other server does
not respond, the codec raises an error of its HTTP client, and this library raises a `DataError` whose cause
is this error. If the data itself is broken, this library also raises a `DataError`. The causes and contexts
of the `DataError` show which of these reasons applies. Errors of HTTP clients are recognized by the names of
their classes, so that no client must be imported.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any, Final

from cloudevents_kafka.primitives.preview import text_by
from cloudevents_kafka.primitives.redaction import mask_urls

_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERRORS: Final = range(500, 600)
_MAX_READ, _MAX_TEXT = 1_000, 300  # characters of a message
# Classes of Python, httpx, httpcore, requests, urllib3, aiohttp and botocore, with their subclasses.
_NAMES: Final = frozenset(
    (
        *("ConnectionError", "TimeoutError", "gaierror", "URLError", "IncompleteRead"),
        *("SSLEOFError", "SSLZeroReturnError"),
        *("TransportError", "NetworkError", "TimeoutException", "Timeout", "ProxyError"),
        *("ChunkedEncodingError", "ProtocolError", "MaxRetryError", "HTTPClientError"),
        *("ClientConnectionError", "ClientPayloadError", "ServerTimeoutError"),
    )
)
_NUMBERS: Final = frozenset((errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN))
_STATUSES: Final = ("http_status_code", "status_code", "status", "code")


def find_passing(error: BaseException) -> BaseException | None:
    """Return the first transient error among an error and its causes, or None."""
    return next(filter(_is_passing, _chain(error)), None)


def describe_cause(error: BaseException) -> str:
    """Return the class and the message of an error's transient cause, without secrets in URLs.

    The result is empty if the error has no transient cause.
    """
    cause = find_passing(error)
    if cause is None or cause is error:
        return ""
    text = mask_urls(text_by(str, cause)[:_MAX_READ])[:_MAX_TEXT]
    return f"{type(cause).__name__}: {text}" if text else type(cause).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            before = (each.__context__, each.__cause__, getattr(each, "reason", None))
            waiting += [one for one in before if isinstance(one, BaseException)]


def _is_passing(error: BaseException) -> bool:
    status = _status(error)
    if status is not None:
        return status == _TOO_MANY_REQUESTS or status in _SERVER_ERRORS
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return True
    return any(kind.__name__ in _NAMES for kind in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that an error of an HTTP client reports, or None."""
    sources: tuple[Any, ...] = (error, getattr(error, "response", None))
    values = (getattr(source, name, None) for source in sources for name in _STATUSES)
    return next((value for value in values if type(value) is int and 100 <= value < 600), None)
