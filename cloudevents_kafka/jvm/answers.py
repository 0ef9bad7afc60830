"""What it means when a Maven repository does not send a file, and what to do about it."""

from __future__ import annotations

import socket
import ssl
from http import HTTPStatus
from typing import Final, Literal

from cloudevents_kafka.jvm.cache import CACHE_VARIABLE
from cloudevents_kafka.jvm.errors import FetchFailed
from cloudevents_kafka.redaction import mask_url

MIRROR_VARIABLE: Final = "CLOUDEVENTS_KAFKA_MAVEN_MIRROR"
Trouble = Literal["name", "connection", "tls", "time-out", "broken off"]

_ELSEWHERE: Final = (
    f"set {MIRROR_VARIABLE} to the URL of a Maven repository that you can reach, "
    f"or copy the cache folder of a machine that has the jars and set {CACHE_VARIABLE} to it."
)
REACH_HINT: Final = f"Check the network, or {_ELSEWHERE}"
MISSING_HINT: Final = (
    f"Check the version, or set {MIRROR_VARIABLE} to the URL of a Maven repository that has it."
)
WRONG_HINT: Final = (
    f"Nothing of it was kept. Try again; if it stays so, ask whoever runs the repository, or {_ELSEWHERE}"
)

# What each means, and what can be done before going elsewhere.
_STATUS: Final = {
    401: (
        "asks for a name and a password, or does not take those that it got",
        f"Check both in {MIRROR_VARIABLE} (https://name:password@host/path, each percent-encoded)",
    ),
    403: ("forbids to read it", "Ask whoever runs the repository for the right to read it"),
    407: (
        "is behind a proxy that asks for a name and a password",
        "Have the proxy let this machine pass without them, as Java sends none, or set no_proxy",
    ),
    408: ("waited too long for the request", "Try again, and check the network"),
    429: ("refuses for now, as it was asked too often", "Wait some minutes and try again"),
}
_REDIRECT: Final = (
    "redirects to where it may not be fetched from, such as from https to http",
    f"Check the URL in {MIRROR_VARIABLE}: give the address that it redirects to, by https",
)
_BROKEN: Final = (
    "has trouble of its own",
    "Wait some minutes and try again; if it stays so, ask whoever runs the repository",
)
_ODD: Final = ("refuses the request", f"Check the URL in {MIRROR_VARIABLE}, and the settings of the proxy")
_TROUBLE: Final[dict[Trouble, tuple[str, str]]] = {
    "name": (
        "cannot be reached: no address is known for its host name",
        f"Check the host name in {MIRROR_VARIABLE} if that is set, the network and its DNS",
    ),
    "connection": (
        "cannot be reached: no connection could be made",
        "Check the network, the settings of the proxy (https_proxy), and that the repository runs",
    ),
    "tls": (
        "cannot be reached safely: TLS failed, most often for a certificate that this machine does not trust",
        (
            "Let Java (-Djavax.net.ssl.trustStore=… in JAVA_TOOL_OPTIONS) and Python (SSL_CERT_FILE) trust "
            "the signer of its certificate, often a company's proxy, and check the clock of this machine"
        ),
    ),
    "time-out": (
        "did not answer in time",
        "Try again later, check the network and the settings of the proxy",
    ),
    "broken off": ("broke off its answer", "Try again, check the network and the settings of the proxy"),
}


def of_status(status: int, url: str) -> FetchFailed:
    """Return the error for an HTTP status that is not 200; `url` is what was asked for."""
    if status == HTTPStatus.NOT_FOUND:
        return FetchFailed(
            f"the Maven repository does not have {mask_url(url)} (404 Not Found)", MISSING_HINT
        )
    if status in _STATUS:
        reason, hint = _STATUS[status]
    else:
        reason, hint = {3: _REDIRECT, 5: _BROKEN}.get(status // 100, _ODD)
    return FetchFailed(
        f"the Maven repository {reason} ({_named(status)} for {mask_url(url)})", f"{hint}, or {_ELSEWHERE}"
    )


def of_trouble(trouble: Trouble, url: str, said: str = "") -> FetchFailed:
    """Return the error for a request without an answer; `said` is what the system says of it."""
    reason, hint = _TROUBLE[trouble]
    where = mask_url(url) + (f": {said}" if said else "")
    return FetchFailed(f"the Maven repository {reason} ({where})", f"{hint}, or {_ELSEWHERE}")


def trouble_of(error: BaseException) -> Trouble:
    """Return which trouble an error of Python's network functions means."""
    if isinstance(error, ssl.SSLError):
        return "tls"
    if isinstance(error, socket.gaierror):
        return "name"
    if isinstance(error, TimeoutError):
        return "time-out"
    return "connection" if isinstance(error, ConnectionRefusedError) else "broken off"


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
