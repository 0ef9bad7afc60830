"""Read small files, such as checksums, from a Maven repository: bounded in size and time."""

from __future__ import annotations

import base64
import re
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from cloudevents_kafka.jvm.answers import of_status, of_trouble, trouble_of
from cloudevents_kafka.jvm.errors import FetchFailed
from cloudevents_kafka.redaction import mask_url

MOST_BYTES: Final = 1 << 16  # of a checksum file, which has some hundred
_SECONDS: Final = 20.0


class Login(msgspec.Struct, frozen=True):
    """A name and a password, as they are."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Keep the password out."""
        return f"Login({self.user!r})"

    @property
    def header(self) -> str:
        """The value of an Authorization header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def split_login(url: str) -> tuple[str, Login | None]:
    """Return a URL without its user and password, and these; they may be percent-encoded."""
    parts = urlsplit(url)
    given, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = given.partition(":")
    return urlunsplit(parts._replace(netloc=host)), Login(unquote(user), unquote(password))


def read(url: str, login: Login | None = None, *, most: int = MOST_BYTES) -> bytes | None:
    """Return what is at a URL; None where there is nothing (404).

    Raises `FetchFailed` for any other answer, for none, and for more than `most` bytes.
    """
    if url.startswith("file:"):
        return _read_local(url)
    try:
        with _opened(url, login) as answer:
            found = answer.read(most + 1)
            promised = int(answer.headers.get("Content-Length") or len(found))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise of_status(error.code, url) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        cause = reason if isinstance(reason, BaseException) else error
        raise of_trouble(trouble_of(cause), url, type(cause).__name__) from None
    if len(found) < min(promised, most + 1):
        raise of_trouble("broken off", url, f"{len(found)} of {promised} bytes came")
    if len(found) > most:
        raise FetchFailed(f"{mask_url(url)} has more than {most} bytes", "Look at what the repository sends.")
    return found


def realm(url: str) -> str | None:
    """Return the realm that a URL asks a login for, which Ivy wants to know; None where it asks for none."""
    try:
        _opened(url, None).close()
    except urllib.error.HTTPError as error:
        error.close()
        found = re.search(r'(?i)\bbasic\b.*?\brealm="([^"]*)"', error.headers.get("WWW-Authenticate", ""))
        return found[1] if found else None
    except (OSError, HTTPException):
        return None
    return None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects within the web, but not from https to http."""

    def redirect_request(  # noqa: PLR0917  # as urllib calls it
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the next request; None ends in the error for this status."""
        allowed = {"https"} if req.type == "https" else {"https", "http"}
        if urlsplit(newurl).scheme not in allowed:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opened(url: str, login: Login | None) -> HTTPResponse:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise FetchFailed(
            f"{mask_url(url)} is no URL of http, https or file", "Check the URL of the repository."
        )
    request = urllib.request.Request(url, headers={"User-Agent": "cloudevents-kafka"})  # noqa: S310  # looked at
    if login is not None:
        request.add_unredirected_header("Authorization", login.header)  # not for another host
    answer: HTTPResponse = urllib.request.build_opener(_Redirects).open(request, timeout=_SECONDS)
    return answer


def _read_local(url: str) -> bytes | None:
    try:
        return Path(unquote(urlsplit(url).path)).read_bytes()
    except OSError:
        return None
