"""Error messages for a Maven repository that does not send a file, by HTTP status or network error."""

from __future__ import annotations

import socket
import ssl
from http import HTTPStatus
from http.client import HTTPException
from typing import Final, Literal

from cloudevents_kafka.jvm._cache import CACHE_VARIABLE
from cloudevents_kafka.jvm._errors import FetchFailed
from cloudevents_kafka.redaction import mask_url

MIRROR_VARIABLE: Final = "CLOUDEVENTS_KAFKA_MAVEN_MIRROR"
NetworkFailure = Literal["name", "connection", "tls", "timeout", "broken off"]

_ALTERNATIVES: Final = (
    f"set {MIRROR_VARIABLE} to the URL of a Maven repository that you can reach, "
    f"or copy the cache folder of a machine that has the jars and set {CACHE_VARIABLE} to it."
)
MISSING_HINT: Final = (
    f"Check the version, or set {MIRROR_VARIABLE} to the URL of a Maven repository that has it."
)
REJECTED_HINT: Final = (
    f"The file was deleted. Try again; if it stays so, ask the owner of the repository, or {_ALTERNATIVES}"
)

# The reason, and what to try before another repository.
_BY_STATUS: Final = {
    401: (
        "requires a user name and a password, or rejected the ones it received",
        (
            f"Check both in {MIRROR_VARIABLE} (https://name:password@host/path, each percent-encoded) "
            "or in the servers of Maven's settings.xml"
        ),
    ),
    403: ("forbids access to it", "Ask the owner of the repository for permission to read it"),
    407: (
        "is behind a proxy that requires a user name and a password",
        "Add both to https_proxy (http://name:password@host:port), or set no_proxy",
    ),
    408: ("waited too long for the request", "Try again, and check the network"),
    429: ("limits the number of requests", "Wait some minutes and try again"),
}
_REDIRECT: Final = (
    "redirects to a URL that must not be followed, such as from https to http",
    f"Check the URL in {MIRROR_VARIABLE}: use the https URL that it redirects to",
)
_SERVER_ERROR: Final = (
    "has an internal error",
    "Wait some minutes and try again; if it stays so, ask the owner of the repository",
)
_OTHER_STATUS: Final = (
    "refuses the request",
    f"Check the URL in {MIRROR_VARIABLE}, and the settings of the proxy",
)
_BY_FAILURE: Final[dict[NetworkFailure, tuple[str, str]]] = {
    "name": (
        "cannot be reached: its host name has no address",
        f"Check the host name in {MIRROR_VARIABLE} if that is set, the network and its DNS",
    ),
    "connection": (
        "cannot be reached: the connection failed",
        "Check the network, the settings of the proxy (https_proxy), and that the repository runs",
    ),
    "tls": (
        "cannot be reached: TLS failed, most often for a certificate that this machine does not trust",
        (
            "Add the certificate's signer, often a company's proxy, to the file that SSL_CERT_FILE names, "
            "and check the clock of this machine"
        ),
    ),
    "timeout": (
        "did not answer in time",
        "Try again later, check the network and the settings of the proxy",
    ),
    "broken off": (
        "closed the connection before the end of the file",
        "Try again, check the network and the settings of the proxy",
    ),
}


def status_error(status: int, url: str) -> FetchFailed:
    """Return the error for an HTTP status other than 200 in answer to a request for `url`."""
    if status == HTTPStatus.NOT_FOUND:
        return FetchFailed(f"the Maven repository has no file {mask_url(url)} (404 Not Found)", MISSING_HINT)
    if status in _BY_STATUS:
        reason, hint = _BY_STATUS[status]
    else:
        reason, hint = {3: _REDIRECT, 5: _SERVER_ERROR}.get(status // 100, _OTHER_STATUS)
    return _error(reason, f"{_status_text(status)} for {mask_url(url)}", hint)


def network_error(error: BaseException, url: str) -> FetchFailed:
    """Return the error for a request that ended without an answer."""
    reason, hint = _BY_FAILURE[classify(error)]
    return _error(reason, f"{mask_url(url)}: {type(error).__name__}", hint)


def truncated_error(url: str, received: int, promised: int) -> FetchFailed:
    """Return the error for an answer shorter than its Content-Length."""
    reason, hint = _BY_FAILURE["broken off"]
    return _error(reason, f"{mask_url(url)}: {received} of {promised} bytes", hint)


def classify(error: BaseException) -> NetworkFailure:
    """Return the kind of an error that Python's network functions raised."""
    if isinstance(error, ssl.SSLError):
        return "tls"
    if isinstance(error, socket.gaierror):
        return "name"
    if isinstance(error, TimeoutError):
        return "timeout"
    broken_off = isinstance(error, ConnectionResetError | BrokenPipeError | HTTPException)
    return "broken off" if broken_off else "connection"


def _error(reason: str, details: str, hint: str) -> FetchFailed:
    return FetchFailed(f"the Maven repository {reason} ({details})", f"{hint}, or {_ALTERNATIVES}")


def _status_text(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
