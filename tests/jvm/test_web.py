"""Checksums are read by https as by http, bounded, and never by less than they were asked for."""

from __future__ import annotations

import base64
import socket

import pytest

from cloudevents_kafka.jvm import web
from cloudevents_kafka.jvm.errors import FetchFailed
from cloudevents_kafka.jvm.web import Login, read, realm, split_login


def test_read(mirror):
    """What is there is read, what is not is None, and any other answer is an error of its own."""
    mirror.put("a.sha1", b"x")
    assert read(f"{mirror.url}/a.sha1") == b"x"
    assert read(f"{mirror.url}/b.sha1") is None
    mirror.statuses["*"] = 503
    with pytest.raises(FetchFailed, match=r"has trouble of its own \(503 Service Unavailable"):
        read(f"{mirror.url}/a.sha1")


def test_bounded(mirror):
    """More than a checksum file may have is not read."""
    mirror.put("a", b"x" * (web.MOST_BYTES + 1))
    with pytest.raises(FetchFailed, match="has more than 65536 bytes"):
        read(f"{mirror.url}/a")


def test_cut(mirror):
    """An answer that ends early is an error, and not a short one."""
    mirror.put("a", b"x" * 1000)
    mirror.cut = 10
    with pytest.raises(FetchFailed, match="broke off its answer"):
        read(f"{mirror.url}/a")


def test_nobody_there():
    """Where nobody listens, the error says so, without the password."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(FetchFailed, match="no connection could be made") as caught:
        read(f"http://127.0.0.1:{port}/a?token=hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("to", ["http://127.0.0.1:1/x", "file:///etc/passwd", "ftp://h/x"])
def test_redirects_from_https(to):
    """A redirect from https goes to https only."""
    asked = web.urllib.request.Request("https://h/a")
    assert web._Redirects().redirect_request(asked, None, 302, "Found", {}, to) is None
    assert (
        web._Redirects().redirect_request(asked, None, 302, "Found", {}, "https://i/a").full_url
        == "https://i/a"
    )


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x"])
def test_redirects_from_http(mirror, to):
    """A redirect to what is not of the web is not followed."""
    mirror.statuses["*"] = 302
    mirror.headers["Location"] = to
    with pytest.raises(FetchFailed, match="302"):
        read(f"{mirror.url}/a")


def test_login(mirror):
    """A login is sent where it is asked for, and not on to where a redirect leads."""
    login = Login("me", "hunt:er@2")
    mirror.login = "Basic " + base64.b64encode(b"me:hunt:er@2").decode()
    mirror.put("a", b"x")
    assert realm(f"{mirror.url}/a") == "the 'jars'"
    assert read(f"{mirror.url}/a", login) == b"x"
    mirror.logins.clear()
    mirror.login = None
    mirror.headers["Location"] = f"{mirror.url}/b"
    mirror.statuses["/repo/a"] = 302
    assert read(f"{mirror.url}/a", login) is None
    assert len(mirror.logins) == 1
    assert "hunt" not in repr(login)
    assert realm(f"{mirror.url}/b") is None


@pytest.mark.parametrize(
    ("url", "bare", "login"),
    [
        ("https://h/x", "https://h/x", None),
        ("https://me:p%40s%2Fs@h:1/x", "https://h:1/x", Login("me", "p@s/s")),
        ("https://me:p@s@h/x", "https://h/x", Login("me", "p@s")),
        ("https://me@h/x", "https://h/x", Login("me", "")),
    ],
)
def test_split(url, bare, login):
    """A URL is divided into where, and as whom."""
    assert split_login(url) == (bare, login)


def test_local(tmp_path):
    """A repository may be a folder."""
    (tmp_path / "a b").write_bytes(b"x")
    assert read((tmp_path / "a b").as_uri()) == b"x"
    assert read((tmp_path / "c").as_uri()) is None


def test_other_schemes():
    """No other kind of URL is opened."""
    with pytest.raises(FetchFailed, match="is no URL of http, https or file"):
        read("ftp://127.0.0.1/x")
