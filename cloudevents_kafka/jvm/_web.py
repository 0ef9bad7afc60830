"""Copies a file from a Maven repository at an http, https or file URL; each error says what to do."""

from __future__ import annotations

import io
import re
import socket
import ssl
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPException, InvalidURL, responses
from pathlib import Path
from typing import BinaryIO, Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit

import msgspec

from cloudevents_kafka.jvm._cache import CACHE_VARIABLE
from cloudevents_kafka.primitives.redaction import mask_url, mask_urls
from cloudevents_kafka.primitives.web import Answer, TooLarge, open_url

MIRROR_VARIABLE: Final = "CLOUDEVENTS_KAFKA_MAVEN_MIRROR"
TEXT_LIMIT: Final = 1 << 22  # bytes of a POM file or a checksum file
_TIMEOUT: Final = 20.0  # seconds for each read
_BLOCK: Final = 1 << 16
_SCHEMES: Final = ("http", "https", "file")

_ALTERNATIVES: Final = (
    f"set {MIRROR_VARIABLE} to the URL of a Maven repository that you can reach, "
    f"or copy the cache folder of a machine that has the jars and set {CACHE_VARIABLE} to it."
)
REJECTED_HINT: Final = (
    f"The file was deleted. Try again; if this persists, ask the owner of the repository, or {_ALTERNATIVES}"
)
_MISSING_HINT: Final = (
    f"Check the version, or set {MIRROR_VARIABLE} to the URL of a Maven repository that has this file."
)

# By HTTP status, or by its first digit: the reason, and what to try before another repository.
_STATUSES: Final = {
    401: (
        "requires a user name and a password, or has rejected them",
        (
            f"Check the name and the password in {MIRROR_VARIABLE} "
            "(https://name:password@host/path, each percent-encoded) "
            "or in the servers of Maven's settings.xml"
        ),
    ),
    403: ("forbids access to it", "Ask the owner of the repository for permission to read it"),
    407: (
        "is behind a proxy that requires a user name and a password",
        "Add the user name and the password to https_proxy (http://name:password@host:port), or set no_proxy",
    ),
    429: ("limits the number of requests", "Wait some minutes and try again"),
    3: (
        "redirects to a URL that must not be followed, such as from https to http",
        f"Check the URL in {MIRROR_VARIABLE}: use the https URL that it redirects to",
    ),
    4: ("refuses the request", f"Check the URL in {MIRROR_VARIABLE}, and the settings of the proxy"),
    5: (
        "has an internal error",
        "Wait some minutes and try again; if this persists, ask the owner of the repository",
    ),
}
_CLOSED_EARLY: Final = (
    "closed the connection before the end of the file",
    "Try again, check the network and the settings of the proxy",
)
# The order matters: the first class that matches an error is used.
_NETWORK_ERRORS: Final[dict[type[Exception], tuple[str, str]]] = {
    ssl.SSLError: (
        "cannot be reached: TLS failed, most often for a certificate that this machine does not trust",
        (
            "Add the certificate's signer, often a company's proxy, to the file that SSL_CERT_FILE names, "
            "and check the clock of this machine"
        ),
    ),
    socket.gaierror: (
        "cannot be reached: its host name has no address",
        f"Check the network, its DNS, and the host name in {MIRROR_VARIABLE} if this variable is set",
    ),
    TimeoutError: (
        "did not answer in time",
        "Try again later, check the network and the settings of the proxy",
    ),
    ConnectionResetError: _CLOSED_EARLY,
    BrokenPipeError: _CLOSED_EARLY,
    HTTPException: _CLOSED_EARLY,
    Exception: (
        "cannot be reached: the connection failed",
        "Check the network, the settings of the proxy (https_proxy), and that the repository runs",
    ),
}


class FetchFailed(Exception):
    """A download failed; `resolve` then raises `NoJars`. ``reason`` and ``hint`` contain no credentials."""

    def __init__(self, reason: str, hint: str) -> None:
        self.reason, self.hint = mask_urls(reason), hint
        super().__init__(self.reason, hint)


class FileMissing(FetchFailed):
    """The repository does not contain the file."""


class Login(msgspec.Struct, frozen=True):
    """A user name and a password, both without percent-encoding."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Return the login as a text that contains the user name, but not the password."""
        return f"Login({self.user!r})"


class Repository(msgspec.Struct, frozen=True):
    """The URL of a Maven repository, without a final slash, and the login for this repository."""

    url: str
    login: Login | None = None

    def read(self, path: str) -> bytes:
        """Return the content of a small file. Raises `FetchFailed` in the same cases as `copy`."""
        buffer = io.BytesIO()
        self.copy(path, buffer, limit=TEXT_LIMIT)
        return buffer.getvalue()

    def copy(
        self, path: str, target: BinaryIO, *, limit: int, on_block: Callable[[], object] = lambda: None
    ) -> None:
        """Write a file of the repository to ``target``, and call ``on_block`` after each block.

        Raises `FileMissing` if the file does not exist. Raises `FetchFailed` for any other HTTP error, for a
        network error, or if the file has more than ``limit`` bytes.
        """
        url, size = f"{self.url}/{path}", 0
        with _open(url, self.login, limit) as answer:
            while block := _next_block(url, answer):
                size += len(block)
                target.write(block)
                on_block()
        if answer.promised is not None and size < answer.promised:
            raise _failure(_CLOSED_EARLY, f"{mask_url(url)}: {size} of {answer.promised} bytes")


def _open(url: str, login: Login | None, limit: int) -> Answer:
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        reason = f"the URL of a Maven repository must start with http:, https: or file:, got {mask_url(url)}"
        raise FetchFailed(reason, "Check the URL of the repository.")
    try:
        if parts.scheme == "file":
            return Answer(Path(unquote(parts.path)).open("rb"), limit)
        text = None if login is None else f"{login.user}:{login.password}"
        return open_url(url, timeout=_TIMEOUT, limit=limit, login=text)
    except HTTPError as error:
        error.close()
        raise status_error(error.code, url) from None
    except (InvalidURL, UnicodeError) as error:
        reason = f"the Maven repository must have a valid URL, got {mask_url(url)} ({type(error).__name__})"
        raise FetchFailed(reason, "Check the URL; percent-encode its special characters.") from None
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", None)  # the reason of a URLError
        raise network_error(cause if isinstance(cause, Exception) else error, url) from None


def _next_block(url: str, answer: Answer) -> bytes:
    try:
        return answer.read(_BLOCK)
    except TooLarge as error:
        reason = f"{mask_url(url)}: {error}"
        raise FetchFailed(reason, "Look at what the repository sends.") from None
    except (OSError, HTTPException) as error:
        raise network_error(error, url) from None


def status_error(status: int, url: str) -> FetchFailed:
    """Return the error for a response whose HTTP status is not 200; the request was sent to ``url``."""
    if status == HTTPStatus.NOT_FOUND:
        reason = f"the Maven repository has no file {mask_url(url)} (404 Not Found)"
        return FileMissing(reason, _MISSING_HINT)
    row = _STATUSES.get(status) or _STATUSES.get(status // 100) or _STATUSES[4]
    return _failure(row, f"{status} {responses.get(status, '')}".rstrip() + f" for {mask_url(url)}")


def network_error(error: Exception, url: str) -> FetchFailed:
    """Return the error for a request, or for reading a file, that failed without a complete answer."""
    if isinstance(error, FileNotFoundError):  # of a file URL
        return status_error(HTTPStatus.NOT_FOUND, url)
    if proxy_status := re.match(r"Tunnel connection failed: (\d{3})", str(error)):
        return status_error(int(proxy_status[1]), url)
    row = next(row for kind, row in _NETWORK_ERRORS.items() if isinstance(error, kind))
    return _failure(row, f"{mask_url(url)}: {type(error).__name__}")


def _failure(row: tuple[str, str], details: str) -> FetchFailed:
    reason, hint = row
    return FetchFailed(f"the Maven repository {reason} ({details})", f"{hint}, or {_ALTERNATIVES}")
