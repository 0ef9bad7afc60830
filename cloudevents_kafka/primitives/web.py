"""`open_url`, the only function of this library that opens http and https URLs.

Credentials are sent only with the first request. If the server redirects the request, they are not sent
again, even to the same server. As in urllib, the settings of proxies are read from the environment.
"""

from __future__ import annotations

import base64
import string
import urllib.request
from email.message import Message
from http.client import InvalidURL
from io import BytesIO
from ssl import SSLContext
from typing import Any, Final, Self
from urllib.error import HTTPError
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

_REDIRECTS: Final = 5  # redirects that are followed
_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_REPEATS: Final = frozenset({307, 308})  # RFC 9110 15.4: the body is sent again
_SCHEMES: Final = ("http", "https")
_HANDLERS: Final = (
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPErrorProcessor,
)


class RefusedRedirect(HTTPError):
    """A redirect that must not be followed; ``reason`` says why, without a URL. The answer is closed."""

    def __init__(self, url: str, status: int, reason: str, headers: Message) -> None:
        super().__init__(url, status, reason, headers, BytesIO())
        self.close()

    def read(self, size: int | None = -1) -> bytes:  # noqa: ARG002  # a file's signature
        """Return an empty result, because the body of the answer was not read."""
        return b""


class TooLarge(ValueError):
    """An HTTP answer or a file contains more bytes than the limit."""


class Answer:
    """An open file or HTTP answer, for a with-block; not more than ``limit`` bytes can be read from it."""

    def __init__(self, stream: Any, limit: int, length: str = "") -> None:
        self._stream: Final = stream
        self._limit: Final = limit
        self._size = 0
        self.promised: Final = int(length) if length.isdecimal() and len(length) < 20 else None
        """The number of bytes that the server states for its answer."""

    def read(self, size: int | None = None) -> bytes:
        """Return at most ``size`` bytes, by default all; raise `TooLarge` for an answer above the limit."""
        left = self._limit - self._size + 1
        block = bytes(self._stream.read(left if size is None else min(size, left)))
        self._size += len(block)
        if self._size > self._limit:
            raise TooLarge(f"an answer must have at most {self._limit} bytes, got more")
        return block

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


def open_url(
    url: str,
    *,
    timeout: float,
    limit: int,
    login: str | None = None,
    form: bytes | None = None,
    trusted: SSLContext | None = None,
) -> Answer:
    """Return the answer to a GET request, or to a POST request with a ``form``.

    ``login`` is ``user:password``; if ``login`` is missing, the login in the URL is percent-decoded and sent.
    ``timeout`` limits each single wait for the server, in seconds. Raises `HTTPError` for a status other than
    2xx. Raises `RefusedRedirect` after too many redirects, for a redirect from https to http or to another
    scheme, and for a redirect that would send the form again. The function `open_url` may also raise
    `InvalidURL`, `OSError` or `HTTPException`.
    """
    opener = _opener(trusted)
    request = _first_request(url, login, form)
    for _ in range(_REDIRECTS + 1):
        try:
            response = opener.open(request, timeout=timeout)
        except HTTPError as error:
            target = _target(request, error)
            if target is None:
                raise
            error.close()  # without reading it: it may have any size
            status, headers = error.code, error.headers
        else:
            assert response is not None  # all schemes that split_url accepts have a handler
            return Answer(response, limit, response.headers.get("Content-Length", ""))
        request = _bare_request(target)
    raise RefusedRedirect(url, status, f"redirects more than {_REDIRECTS} times", headers)


def _opener(trusted: SSLContext | None) -> urllib.request.OpenerDirector:
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    opener.add_handler(urllib.request.HTTPSHandler(context=trusted))
    return opener


def _first_request(url: str, login: str | None, form: bytes | None) -> urllib.request.Request:
    parts = split_url(url)
    in_url, has_login, _ = parts.netloc.rpartition("@")
    request = _bare_request(parts, form)
    if login is None and has_login:
        login = unquote(in_url)
    if login is not None:
        value = base64.b64encode(login.encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {value}")
    return request


def _bare_request(parts: SplitResult, form: bytes | None = None) -> urllib.request.Request:
    """Return a request without credentials; credentials in its URL are removed, too."""
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
    return urllib.request.Request(bare, form, {"User-Agent": "cloudevents-kafka"})  # noqa: S310  # by split_url


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL; for an invalid URL, raise `InvalidURL`, whose message omits the URL."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
        valid = valid and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        valid = None
    if not valid:
        raise InvalidURL("a URL must have http or https, a host, and a valid port")
    return parts


def _target(request: urllib.request.Request, error: HTTPError) -> SplitResult | None:
    """Return the target of a redirect, or None; raise `RefusedRedirect` if it must not be followed."""
    location = error.headers.get("Location")
    if error.code not in _STATUSES or location is None:
        return None
    refused = _refusal(request, error.code, location)
    if refused is None:
        return split_url(_absolute(request, location))
    error.close()
    raise RefusedRedirect(request.full_url, error.code, refused, error.headers)


def _refusal(request: urllib.request.Request, status: int, location: str) -> str | None:
    """Return the reason why a redirect must not be followed, or None if it may be followed."""
    if request.data is not None and status in _REPEATS:
        return "redirects a request with a form, which is not sent to another URL"
    try:
        parts = split_url(_absolute(request, location))
    except (InvalidURL, ValueError):
        return "redirects to a URL without http or https, or without a host"
    if request.type == "https" and parts.scheme == "http":
        return "redirects from https to http, which is not secure; use another URL"
    return None


def _absolute(request: urllib.request.Request, location: str) -> str:
    return urljoin(request.full_url, quote(location, encoding="iso-8859-1", safe=string.punctuation))
