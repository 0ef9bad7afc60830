"""Files are copied by http, https and file, with limits, complete or with an error that says what to do."""

from __future__ import annotations

import base64
import gc
import socket
import ssl
import threading
from http.client import IncompleteRead

import pytest

from cloudevents_kafka.jvm._web import (
    FetchFailed,
    FileMissing,
    Login,
    Repository,
    network_error,
    status_error,
)
from tests.support.cases import each

SECRET_URL = "https://me:hunter2@repo.example/x.jar?token=hunter2"


def read(url, login=None):
    folder, _, name = url.rpartition("/")
    return Repository(folder, login).read(name)


def test_read(mirror):
    """A file is read; a missing one is an error of its own class."""
    mirror.put("a.sha1", b"x")
    assert read(f"{mirror.url}/a.sha1") == b"x"
    with pytest.raises(FileMissing):
        read(f"{mirror.url}/b.sha1")


def test_full_disk(mirror):
    """An error of the target is not an error of the repository."""

    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

    mirror.put("a", b"x")
    with pytest.raises(OSError, match="No space left"):
        Repository(mirror.url).copy("a", Full(), limit=10)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_proxy(monkeypatch):
    """A proxy that requires a login is an error of its own, also for https."""

    def answer():
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{listening.getsockname()[1]}")
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(FetchFailed, match="is behind a proxy that requires"):
            read("https://repo.invalid/a")
        thread.join()
        gc.collect()  # early patch releases of Python leave the socket open when a proxy refuses


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x"])
def test_redirects_from_http(mirror, target):
    """A redirect to another scheme is not followed."""
    mirror.statuses["*"] = 302
    mirror.headers["Location"] = target
    with pytest.raises(FetchFailed, match="302"):
        read(f"{mirror.url}/a")


def test_login(mirror):
    """A login is sent to the repository, and not to the target of a redirect."""
    login = Login("me", "hunt:er@2")
    mirror.authorization = "Basic " + base64.b64encode(b"me:hunt:er@2").decode()
    mirror.put("a", b"x")
    assert read(f"{mirror.url}/a", login) == b"x"
    mirror.authorizations.clear()
    mirror.authorization = None
    mirror.headers["Location"] = f"{mirror.url}/b"
    mirror.statuses["/repo/a"] = 302
    with pytest.raises(FileMissing):
        read(f"{mirror.url}/a", login)
    assert len(mirror.authorizations) == 1
    assert "hunt" not in repr(login)


def test_file(tmp_path):
    """A repository may be a folder."""
    (tmp_path / "a b").write_bytes(b"x")
    assert read((tmp_path / "a b").as_uri()) == b"x"
    with pytest.raises(FileMissing):
        read((tmp_path / "c").as_uri())


@each("url", ["http://127.0.0.1:x/a", "http://127.0.0.1:1/a b", "http://127.0.0.1:1/ä"])
def test_bad_url(url):
    """A URL that cannot be requested is an error without its query."""
    with pytest.raises(FetchFailed, match="must have a valid URL") as caught:
        read(f"{url}?token=hunter2")
    assert "hunter2" not in str(caught.value)


def test_other_schemes():
    """No other scheme is opened."""
    with pytest.raises(FetchFailed, match="must start with http:, https: or file:"):
        read("ftp://127.0.0.1/x")


NETWORK_ERRORS = [
    (ssl.SSLCertVerificationError("x"), "TLS failed"),
    (socket.gaierror(-2, "x"), "its host name has no address"),
    (TimeoutError(), "did not answer in time"),
    (ConnectionRefusedError(), "the connection failed"),
    (OSError(101, "Network is unreachable"), "the connection failed"),
    (ConnectionResetError(), "closed the connection before the end"),
    (IncompleteRead(b"x"), "closed the connection before the end"),
]


@each(("error", "words"), NETWORK_ERRORS, ids=lambda one: str(one)[:20])
def test_network_errors(error, words):
    """A request without an answer has a reason too, with the name of Python's error."""
    failed = network_error(error, SECRET_URL)
    assert words in failed.reason
    assert type(error).__name__ in failed.reason
    assert "hunter2" not in f"{failed!r} {failed}"


def test_hints_differ():
    """The advice depends on the failure."""
    hints = [status_error(status, SECRET_URL).hint for status in (302, 401, 403, 404, 407, 418, 429, 503)]
    hints += {network_error(error, SECRET_URL).hint for error, _ in NETWORK_ERRORS}
    assert len(set(hints)) == len(hints) == 13
