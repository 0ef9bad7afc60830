"""Each way in which a repository does not answer has its own words and its own advice."""

from __future__ import annotations

import socket
import ssl

import pytest

from cloudevents_kafka.jvm.answers import MIRROR_VARIABLE, of_status, of_trouble, trouble_of

URL = "https://me:hunter2@repo.example/x.jar?token=hunter2"
STATUSES = {
    302: "redirects to where it may not",
    401: "asks for a name and a password",
    403: "forbids to read it",
    404: "does not have",
    407: "is behind a proxy that asks for",
    429: "was asked too often",
    500: "has trouble of its own",
    503: "has trouble of its own",
    418: "refuses the request",
    599: "has trouble of its own",
}


@pytest.mark.parametrize("status", STATUSES)
def test_statuses(status):
    """A status has its own words, and its URL without credentials; only 404 speaks of the version."""
    error = of_status(status, URL)
    assert STATUSES[status] in error.reason
    assert f"({status}" in error.reason
    assert "https://********@repo.example/x.jar?********" in error.reason
    assert "hunter2" not in f"{error!r} {error}"
    assert ("Check the version" in error.hint) is (status == 404)
    assert ("does not have" in error.reason) is (status == 404)
    assert MIRROR_VARIABLE in error.hint


def test_advice_differs():
    """What to do depends on what happened."""
    hints = [of_status(status, URL).hint for status in (302, 401, 403, 404, 407, 418, 429, 503)]
    hints += [
        of_trouble(trouble, URL).hint for trouble in ("name", "connection", "tls", "time-out", "broken off")
    ]
    assert len(set(hints)) == len(hints)


TROUBLES = {
    "tls": (ssl.SSLCertVerificationError("x"), "TLS failed"),
    "name": (socket.gaierror(-2, "x"), "no address is known for its host name"),
    "time-out": (TimeoutError(), "did not answer in time"),
    "connection": (ConnectionRefusedError(), "no connection could be made"),
    "broken off": (ConnectionResetError(), "broke off its answer"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_troubles(trouble):
    """No answer at all has its own words too."""
    error, words = TROUBLES[trouble]
    assert trouble_of(error) == trouble
    failed = of_trouble(trouble, URL, "said")
    assert words in failed.reason
    assert "said" in failed.reason
    assert "hunter2" not in f"{failed!r} {failed} {failed.hint}"
