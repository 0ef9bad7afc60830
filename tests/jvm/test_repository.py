"""The repository is the one of the environment variable, of Maven's settings, or jgo's default."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cloudevents_kafka.jvm import NoJars, resolve
from cloudevents_kafka.jvm._repository import find_repository
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE, FetchFailed, Login, Repository
from cloudevents_kafka.primitives.installing import pip_install


@pytest.fixture
def home(monkeypatch, tmp_path):
    """An empty home folder, and no environment variable."""
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write_settings(home: Path, *elements: str, namespace: str = "") -> None:
    folder = home / ".m2"
    folder.mkdir()
    (folder / "settings.xml").write_text(f"<settings{namespace}>{''.join(elements)}</settings>")


def mirrors(mirror_of: str, url: str = "https://m/x/", more: str = "") -> str:
    mirror = f"<mirror><id>m</id><mirrorOf>{mirror_of}</mirrorOf><url>{url}</url>{more}</mirror>"
    return f"<mirrors>{mirror}</mirrors>"


def server(password: str) -> str:
    login = f"<username>me</username><password>{password}</password>"
    return f"<servers><server><id>m</id>{login}</server></servers>"


@pytest.mark.parametrize(
    ("url", "repository"),
    [
        ("https://h/x", Repository("https://h/x")),
        ("file:///a/b/", Repository("file:///a/b")),
        ("https://me:p%40s%2Fs@h:1/x", Repository("https://h:1/x", Login("me", "p@s/s"))),
        ("https://me:p@s@h/x/", Repository("https://h/x", Login("me", "p@s"))),
        ("https://me@h/x", Repository("https://h/x", Login("me", ""))),
    ],
)
def test_variable(home, monkeypatch, url, repository):
    """The environment variable comes first, with the login in its URL."""
    write_settings(home, mirrors("*"))
    monkeypatch.setenv(MIRROR_VARIABLE, url)
    assert find_repository() == repository


@pytest.mark.parametrize("mirror_of", ["*", "central", "external:*", "a, central", "*,!a"])
@pytest.mark.parametrize("namespace", ["", ' xmlns="urn:settings"'])
def test_settings(home, mirror_of, namespace):
    """A mirror of Maven Central in Maven's settings is used."""
    write_settings(home, mirrors(mirror_of), namespace=namespace)
    assert find_repository() == Repository("https://m/x")


@pytest.mark.parametrize(
    "settings",
    [
        mirrors("a"),
        mirrors("*,!central"),
        mirrors("external:http:*"),
        mirrors("*", more="<blocked>true</blocked>"),
        "",
    ],
)
def test_other_settings(home, settings):
    """Other mirrors are not used; jgo's default is."""
    pytest.importorskip("jgo")
    write_settings(home, settings)
    assert find_repository().url.startswith("https://")
    assert find_repository().url != "https://m/x"


def test_login(home, monkeypatch):
    """The login of the mirror's server is used; variables of the environment are replaced."""
    monkeypatch.setenv("SECRET", "hunter2")
    write_settings(home, mirrors("*", "file://${user.home}/x"), server("${env.SECRET}"))
    assert find_repository() == Repository(f"file://{home}/x", Login("me", "hunter2"))


@pytest.mark.parametrize("text", ["<settings>", ""])
def test_bad_settings(home, text):
    """Settings that cannot be read are an error, which names the file."""
    write_settings(home)
    (home / ".m2" / "settings.xml").write_text(text)
    with pytest.raises(FetchFailed, match=r"settings\.xml cannot be read"):
        find_repository()


def test_encrypted_password(home):
    """An encrypted password is an error, as only Maven can decrypt it."""
    write_settings(home, mirrors("*"), server("{COQLCE6DU6GtcS5P=}"))
    with pytest.raises(FetchFailed, match="must not be encrypted"):
        find_repository()


def test_bad_url(home, monkeypatch):
    """A URL that is not valid is an error without its password."""
    monkeypatch.setenv(MIRROR_VARIABLE, "https://me:hunter2@[x")
    with pytest.raises(FetchFailed, match="must have a valid URL") as caught:
        find_repository()
    assert "hunter2" not in f"{caught.value!r}"


def test_no_jgo(home, monkeypatch, empty_cache):
    """Without a mirror and jgo, the error says how to install jgo."""
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(NoJars, match=r"jgo.*is not installed") as caught:
        resolve(["a:b:1"])
    assert pip_install("testing") in str(caught.value)
    assert MIRROR_VARIABLE in str(caught.value)


PASSWORDS = [
    "hun[ter2",
    "hun]ter2",
    "[hunter2]",
    "hun[ter'2",
    'hun]ter"2',
    "hun[ter 2",
    "hun[ter<2",
    "hun[t/er?2#x",
]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize(
    "form", ["https://me:{}@repo.invalid/x", "https://me:{}@127.0.0.1:1/x", "ftp://me:{}@h/"]
)
def test_no_part_of_a_password_is_shown(monkeypatch, password, form):
    """The password of a mirror is not shown, also if it makes the URL invalid."""
    url = form.format(password)
    monkeypatch.setenv(MIRROR_VARIABLE, url)
    with pytest.raises(FetchFailed) as caught:
        find_repository().read("a")
    shown = f"{caught.value} {caught.value!r} {caught.value.reason}"
    assert not [word for word in ("hun", "ter", "t/er", "2#x", "'2", '"2', "<2") if word in shown]
