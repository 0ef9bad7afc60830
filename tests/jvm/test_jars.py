"""Jars are downloaded once from a repository on 127.0.0.1, checked, and complete in the cache or absent."""

from __future__ import annotations

import base64
import hashlib
import json
import socket

import pytest

from cloudevents_kafka.jvm import CACHE_VARIABLE, NoJars, PlainHttp, _jars, cache_folder, resolve
from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE
from tests.support.maven_repository import NEEDED, THING, entries, failure, jar, pom

pytestmark = pytest.mark.filterwarnings("ignore::cloudevents_kafka.jvm.PlainHttp")
THING_JAR, NEEDED_JAR = jar("thing"), jar("needed")


@pytest.fixture
def two_jars(mirror):
    """A repository with a jar and another that it depends on."""
    mirror.add(THING, THING_JAR, dependencies=(NEEDED,), algorithms=("sha512",))
    mirror.add(NEEDED, NEEDED_JAR)
    return mirror


def test_fetched_once(two_jars, capsys):
    """The second use reads the cache, requests nothing and prints nothing."""
    first = resolve([str(THING)])
    assert [path.read_bytes() for path in first] == [NEEDED_JAR, THING_JAR]
    assert "2 jars" in capsys.readouterr().err
    requests = len(two_jars.requests)
    assert resolve([str(THING)]) == first
    assert len(two_jars.requests) == requests
    assert capsys.readouterr().err == ""


def test_each_request_has_an_entry(two_jars):
    """Other coordinates and other exclusions are other entries; the order of exclusions does not matter."""
    resolve([str(THING)])
    resolve([str(THING)], exclude=["a:b", "c:d"])
    resolve([str(THING)], exclude=["c:d", "a:b"])
    resolve([str(THING), str(NEEDED)])
    assert len(entries()) == 3
    assert JarRequest.create(["a:b:1"]).folder_name.startswith("b-1-")


def test_exclude(two_jars):
    """An excluded dependency is not requested, neither its POM file nor its jar."""
    (path,) = resolve([str(THING)], exclude=["org.example:needed"])
    assert path.name == "thing-1.0.jar"
    assert not any("needed" in requested for requested in two_jars.requests)


def test_manifest(two_jars):
    """The manifest has the SHA-256 of each jar."""
    folder = resolve([str(THING)], exclude=["a:b"])[0].parent
    assert json.loads((folder / _jars.MANIFEST).read_text()) == {
        str(NEEDED): hashlib.sha256(NEEDED_JAR).hexdigest(),
        str(THING): hashlib.sha256(THING_JAR).hexdigest(),
    }


DAMAGES = {
    "truncated": (lambda path: path.write_bytes(b"thi"), "the SHA-256 of thing-1.0.jar must be"),
    "changed": (lambda path: path.write_bytes(jar("thung")), "the SHA-256 of thing-1.0.jar must be"),
    "gone": (lambda path: path.unlink(), "thing-1.0.jar is missing"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damage(two_jars, capsys, case):
    """A damaged jar is reported, and all jars are fetched again."""
    damage, message = DAMAGES[case]
    damage(resolve([str(THING)])[1])
    capsys.readouterr()
    assert resolve([str(THING)])[1].read_bytes() == THING_JAR
    assert message in capsys.readouterr().err


MANIFESTS = {
    "empty": b"",
    "truncated": b"{",
    "no jars": b"{}",
    "a list": b"[]",
    "no checksum": f'{{"{THING}": 7}}'.encode(),
    "another checksum": f'{{"{THING}": "{"0" * 64}"}}'.encode(),
    "a name outside the folder": b'{"g:../../evil:1": "00"}',
    "two parts": b'{"a:b": "00"}',
    "five parts": b'{"a:b:1:c:d": "00"}',
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_bad_manifest(two_jars, case):
    """Without a manifest that can be read and has the right checksums, the jars are fetched again."""
    folder = resolve([str(THING)])[0].parent
    (folder / _jars.MANIFEST).write_bytes(MANIFESTS[case])
    assert [path.read_bytes() for path in resolve([str(THING)])] == [NEEDED_JAR, THING_JAR]
    assert two_jars.count(THING.path) == 2


def test_changed_jar_and_manifest(two_jars, monkeypatch):
    """A change of a jar and its manifest is found if the package lists the jar."""
    monkeypatch.setattr(_jars, "pinned_checksums", lambda: {THING: hashlib.sha256(THING_JAR).hexdigest()})
    path = resolve([str(THING)])[1]
    manifest = path.with_name(_jars.MANIFEST)
    changed = jar("thung")
    path.write_bytes(changed)
    manifest.write_text(
        manifest.read_text().replace(
            hashlib.sha256(THING_JAR).hexdigest(), hashlib.sha256(changed).hexdigest()
        )
    )
    assert resolve([str(THING)])[1].read_bytes() == THING_JAR


def test_failed_again(two_jars):
    """A damaged folder is not used while the repository fails."""
    resolve([str(THING)])[1].unlink()
    two_jars.statuses["*"] = 503
    with pytest.raises(NoJars, match="internal error"):
        resolve([str(THING)])


def test_two_names(mirror):
    """Two jars with the same file name are an error."""
    other = Coordinate("org.other", "thing", "1.0")
    mirror.add(dependencies=(other,))
    mirror.add(other)
    assert f"{THING} and {other} have the same file name" in failure()


@pytest.mark.parametrize("name", ["../../evil", "..", "e/vil"])
def test_bad_names_of_dependencies(mirror, name, tmp_path):
    """A dependency whose name leads out of the cache is refused; no file is written there."""
    mirror.add()
    mirror.put(THING.pom_path, pom(THING, ("org.example", name, "1")))
    evil = jar("evil")
    for path in (f"org/example/{name}/1/{name}-1", "org/evil/1/evil-1"):
        mirror.put(f"{path}.jar", evil)
        mirror.put(f"{path}.pom", pom(Coordinate("org.example", "evil", "1")))
        mirror.put(f"{path}.jar.sha1", hashlib.sha1(evil).hexdigest().encode())
    assert "a Maven coordinate must be" in failure()
    assert list(tmp_path.rglob("*evil*")) == []


STATUSES = {
    302: "redirects to a URL that must not be followed",
    401: "requires a user name and a password",
    403: "forbids access",
    407: "is behind a proxy that requires",
    418: "refuses the request",
    429: "limits the number of requests",
    500: "has an internal error",
    503: "has an internal error",
    599: "has an internal error",
    999: "refuses the request",
}


@pytest.mark.parametrize("status", STATUSES)
def test_statuses(mirror, status, monkeypatch):
    """Each status has its own reason, and only 404 is about the version; the URL has no credentials."""
    monkeypatch.setenv(MIRROR_VARIABLE, mirror.url.replace("//", "//me:hunter2@"))
    mirror.statuses["*"] = status
    text = failure()
    assert STATUSES[status] in text
    assert f"({status}" in text
    assert MIRROR_VARIABLE in text
    assert "Check the version" not in text


@pytest.mark.parametrize("status", [401, 503])
def test_statuses_of_checksums(mirror, status):
    """A checksum file that the repository refuses is an error, and not a missing file."""
    mirror.add()
    mirror.statuses[f"/repo/{THING.path}.sha512"] = status
    assert STATUSES[status] in failure()


def test_missing_pom(mirror):
    """The error for unknown coordinates names the file, the folder of the jars, and both variables."""
    text = failure()
    assert f"cannot fetch {THING}" in text
    assert f"has no file {mirror.url}/{THING.pom_path} (404 Not Found)" in text
    assert str(cache_folder()) in text
    assert "Check the version" in text
    assert MIRROR_VARIABLE in text


def test_missing_jar(mirror):
    """A POM file without its jar is an error too."""
    mirror.put(THING.pom_path, pom(THING))
    assert f"has no file {mirror.url}/{THING.path} (404 Not Found)" in failure()


def test_no_server(mirror, monkeypatch):
    """A repository that does not run is an error, with both ways out."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    monkeypatch.setenv(MIRROR_VARIABLE, f"http://me:hunter2@127.0.0.1:{port}/x?token=hunter2")
    text = failure()
    assert "cannot be reached: the connection failed" in text
    assert MIRROR_VARIABLE in text
    assert CACHE_VARIABLE in text


def test_login(mirror, monkeypatch, capfd):
    """A login in the mirror's URL is sent, and never printed."""
    mirror.add()
    mirror.authorization = "Basic " + base64.b64encode(b"me:hunter2/@").decode()
    monkeypatch.setenv(MIRROR_VARIABLE, mirror.url.replace("//", "//me:hunter2%2F%40@"))
    assert len(resolve([str(THING)])) == 1
    mirror.authorization = "Basic other"
    with pytest.raises(NoJars, match="401"):
        resolve(["org.example:more:1"])
    printed = capfd.readouterr()
    assert "hunter2" not in printed.out + printed.err


def test_http_warning(mirror, monkeypatch):
    """A repository without TLS causes a warning without its password; the cache causes none."""
    mirror.add()
    monkeypatch.setenv(MIRROR_VARIABLE, mirror.url.replace("//", "//me:hunter2@"))
    with pytest.warns(PlainHttp, match=r"is read by http") as caught:
        resolve([str(THING)])
    assert caught[0].filename == __file__
    assert "hunter2" not in str(caught[0].message)
    resolve([str(THING)])
    assert len(caught) == 1


def test_too_large(mirror, monkeypatch):
    """A jar of more bytes than the limit is refused."""
    monkeypatch.setattr(_jars, "JAR_LIMIT", 1 << 16)
    mirror.add(content=jar("x" * (1 << 17)))
    assert "must have at most 65536 bytes" in failure()


def test_truncated(mirror):
    """An answer that ends early leaves nothing."""
    mirror.add()
    mirror.missing_bytes = 10
    size = len(mirror.files[f"/repo/{THING.pom_path}"])
    assert f"closed the connection before the end of the file ({mirror.url}" in (text := failure())
    assert f"{size - 10} of {size} bytes" in text


def test_bad_arguments(empty_cache, tmp_path):
    """At least one coordinate is required, an exclusion has two parts, and no name leads out of the cache."""
    with pytest.raises(ValueError, match="one item or more, got none"):
        resolve([])
    with pytest.raises(ValueError, match="must be group:artifact"):
        resolve([str(THING)], exclude=["../x"])
    with pytest.raises(ValueError, match="must be group:artifact:version"):
        resolve(["g:a:../../../evil"])
    assert list(tmp_path.rglob("*")) == []
