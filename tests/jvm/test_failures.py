"""Each failure of a repository has a reason and advice of its own."""

from __future__ import annotations

import socket
import ssl
from http.client import IncompleteRead

import pytest

from cloudevents_kafka.jvm._failures import (
    MIRROR_VARIABLE,
    classify,
    network_error,
    status_error,
    truncated_error,
)

URL = "https://me:hunter2@repo.example/x.jar?token=hunter2"
STATUSES = {
    302: "redirects to a URL that must not be followed",
    401: "requires a user name and a password",
    403: "forbids access",
    404: "has no file",
    407: "is behind a proxy that requires",
    429: "limits the number of requests",
    500: "has an internal error",
    503: "has an internal error",
    418: "refuses the request",
    599: "has an internal error",
}


@pytest.mark.parametrize("status", STATUSES)
def test_statuses(status):
    """A status has its reason, and the URL without credentials; only 404 is about the version."""
    error = status_error(status, URL)
    assert STATUSES[status] in error.reason
    assert f"({status}" in error.reason
    assert "https://********@repo.example/x.jar?********" in error.reason
    assert "hunter2" not in f"{error!r} {error}"
    assert ("Check the version" in error.hint) is (status == 404)
    assert MIRROR_VARIABLE in error.hint


FAILURES = {
    "tls": (ssl.SSLCertVerificationError("x"), "TLS failed"),
    "name": (socket.gaierror(-2, "x"), "its host name has no address"),
    "timeout": (TimeoutError(), "did not answer in time"),
    "connection": (ConnectionRefusedError(), "the connection failed"),
    "broken off": (ConnectionResetError(), "closed the connection before the end"),
}
SAME_KIND = [(OSError(101, "Network is unreachable"), "connection"), (IncompleteRead(b"x"), "broken off")]


def test_hints_differ():
    """The advice depends on the failure."""
    hints = [status_error(status, URL).hint for status in (302, 401, 403, 404, 407, 418, 429, 503)]
    hints += [network_error(error, URL).hint for error, _ in FAILURES.values()]
    assert len(set(hints)) == len(hints)


@pytest.mark.parametrize("failure", FAILURES)
def test_network_errors(failure):
    """A request without an answer has a reason too, with the name of Python's error."""
    error, words = FAILURES[failure]
    assert classify(error) == failure
    failed = network_error(error, URL)
    assert words in failed.reason
    assert type(error).__name__ in failed.reason
    assert "hunter2" not in f"{failed!r} {failed} {failed.hint}"


@pytest.mark.parametrize(("error", "failure"), SAME_KIND)
def test_other_errors(error, failure):
    """Errors of the operating system and of HTTP have a kind too."""
    assert classify(error) == failure


def test_truncated():
    """A short answer has its number of bytes in the reason."""
    assert "5 of 10 bytes" in truncated_error(URL, 5, 10).reason
