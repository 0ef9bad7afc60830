"""Copy a file from a URL of http, https or file, with a limit on its size and on the time."""

from __future__ import annotations

import base64
import io
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, InvalidURL
from typing import IO, Any, BinaryIO, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from cloudevents_kafka.jvm._errors import FetchFailed
from cloudevents_kafka.jvm._failures import network_error, status_error, truncated_error
from cloudevents_kafka.redaction import mask_url

_TIMEOUT: Final = 20.0  # seconds for each read
_BLOCK: Final = 1 << 16
_SCHEMES: Final = frozenset({"http", "https", "file"})


class Login(msgspec.Struct, frozen=True):
    """A user name and a password, not percent-encoded."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Return the name without the password."""
        return f"Login({self.user!r})"

    @property
    def header(self) -> str:
        """The value of an Authorization header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def split_login(url: str) -> tuple[str, Login | None]:
    """Return a URL without its user name and password, and these, percent-decoded."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = login.partition(":")
    return urlunsplit(parts._replace(netloc=host)), Login(unquote(user), unquote(password))


def read(url: str, login: Login | None = None, *, limit: int) -> bytes | None:
    """Return the file at a URL, or None if it does not exist. Raises `FetchFailed` as `copy` does."""
    buffer = io.BytesIO()
    return buffer.getvalue() if copy(url, buffer, login, limit=limit) else None


def copy(
    url: str,
    target: BinaryIO,
    login: Login | None = None,
    *,
    limit: int,
    on_block: Callable[[], object] = lambda: None,
) -> bool:
    """Write the file at a URL to `target`; return whether it exists (404 is False).

    Call `on_block` for each block. Raises `FetchFailed` for any other status, for a network error,
    and for more than `limit` bytes.
    """
    response = _open(url, login)
    if response is None:
        return False
    size = 0
    with response:
        while block := _next_block(url, response):
            size += len(block)
            if size > limit:
                raise FetchFailed(
                    f"{mask_url(url)} must have at most {limit} bytes, got more",
                    "Look at what the repository sends.",
                )
            target.write(block)
            on_block()
    promised = response.headers.get("Content-Length", "")
    if promised.isdecimal() and size < int(promised):
        raise truncated_error(url, size, int(promised))
    return True


def _next_block(url: str, response: Any) -> bytes:
    try:
        return bytes(response.read(_BLOCK))
    except (OSError, HTTPException) as error:
        raise network_error(error, url) from None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects from http to http and https, and from https to https only."""

    def redirect_request(  # noqa: PLR0917  # urllib's signature
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the next request, or None for an `HTTPError` with the status of the redirect."""
        allowed = {"https"} if req.type == "https" else {"https", "http"}
        if urlsplit(newurl).scheme not in allowed:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, login: Login | None) -> Any:
    """Return urllib's response, or None if there is no such file."""
    if urlsplit(url).scheme not in _SCHEMES:
        raise FetchFailed(
            f"the URL of a Maven repository must start with http:, https: or file:, got {mask_url(url)}",
            "Check the URL of the repository.",
        )
    request = urllib.request.Request(url, headers={"User-Agent": "cloudevents-kafka"})  # noqa: S310  # checked above
    if login is not None:
        request.add_unredirected_header("Authorization", login.header)  # not to another host
    try:
        return urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise status_error(error.code, url) from None
    except (InvalidURL, UnicodeError) as error:
        reason = f"the Maven repository must have a valid URL, got {mask_url(url)} ({type(error).__name__})"
        raise FetchFailed(reason, "Check the URL; percent-encode its special characters.") from None
    except (OSError, HTTPException) as error:
        return _missing(error, url)


def _missing(error: OSError | HTTPException, url: str) -> None:
    """Return None for a missing local file; raise `FetchFailed` for other errors."""
    reason = getattr(error, "reason", error)  # of a URLError
    cause = reason if isinstance(reason, BaseException) else error
    if isinstance(cause, FileNotFoundError):
        return
    if proxy_status := re.match(r"Tunnel connection failed: (\d{3})", str(cause)):
        raise status_error(int(proxy_status[1]), url) from None
    raise network_error(cause, url) from None
