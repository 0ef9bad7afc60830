"""Real downloads from 127.0.0.1: what is sent is checked, and what fails is told in its own words."""

from __future__ import annotations

import base64
import hashlib
import socket
import subprocess
import sys

import pytest
from jvm.repository import THING, jar, pom

from cloudevents_kafka.jvm import NoJars, PlainHttp, cache_folder, fetch, jars, manifest, resolve, sums
from cloudevents_kafka.jvm.answers import MIRROR_VARIABLE
from cloudevents_kafka.jvm.coordinates import Coordinate

pytestmark = pytest.mark.filterwarnings("ignore::cloudevents_kafka.jvm.PlainHttp")
NEEDED = Coordinate("org.example", "needed", "2.0", extension="jar")


def refusal(*coordinates: str) -> str:
    """Resolve what cannot be had; return the error's text, of which nothing is left in the cache."""
    with pytest.raises(NoJars) as caught:
        resolve(coordinates or [str(THING)])
    left = [path.name for path in (cache_folder() / "jars").iterdir() if path.suffix != ".lock"]
    assert left == []
    error: BaseException | None = caught.value
    said = str(error)
    while error is not None:
        assert "hunter2" not in f"{error!r} {error}"
        error = error.__cause__
    return said


@pytest.mark.parametrize("algorithm", sums.ALGORITHMS)
def test_sums_of_the_repository(mirror, algorithm):
    """A jar is compared with the strongest sum that its repository has, and the manifest says with which."""
    mirror.add(algorithms=(algorithm,))
    (found,) = resolve([str(THING)])
    assert found.read_bytes() == jar()
    (held,) = manifest.read(found.parent).jars
    assert (held.coordinate, held.checked) == (str(THING), f"{algorithm} of the repository")


def test_no_sum(mirror):
    """A jar without any sum is refused."""
    mirror.add()
    mirror.put(f"{THING.path}.md5", hashlib.md5(jar()).hexdigest().encode())
    said = refusal()
    assert "has no checksum of org.example:thing:1.0: no .sha512, .sha256 or .sha1 file" in said
    assert MIRROR_VARIABLE in said


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>Log in</html>", "is an HTML page"),
        (b"", "is empty (0 bytes)"),
        (b"PK\3\4 cut", "is not a whole zip"),
    ],
)
def test_not_a_jar(mirror, content, reason):
    """What is not a jar is refused, though its repository vouches for it."""
    mirror.add(content=content, algorithms=("sha256",))
    assert reason in refusal()


@pytest.mark.parametrize("algorithm", sums.ALGORITHMS)
def test_another_sum(mirror, algorithm):
    """A jar that is not the one that its repository has a sum of is refused."""
    mirror.add(algorithms=(algorithm,))
    mirror.put(THING.path, jar("changed"))
    said = refusal()
    assert "was changed on the way" in said or "does not have the checksum of the repository" in said


@pytest.mark.parametrize("text", [b"<html>404</html>", b"", b"0" * 39])
def test_a_sum_that_is_none(mirror, text):
    """A checksum file without a checksum is not taken for one that is missing."""
    mirror.add(algorithms=("sha1",))
    mirror.put(f"{THING.path}.sha256", text)
    assert "its .sha256 file has 0 checksums" in refusal()


def test_the_package_knows_better(mirror, monkeypatch):
    """Where the package has a sum, the repository's own does not count."""
    mirror.add(algorithms=("sha512", "sha256", "sha1"))
    monkeypatch.setattr(sums, "pinned", lambda: {str(THING): "0" * 64})
    assert "and the package says 0000" in refusal()


def test_what_it_needs_is_checked_too(mirror):
    """So is each jar that another one needs."""
    mirror.add(algorithms=("sha1",))
    mirror.add(NEEDED)
    mirror.put(THING.path.removesuffix("jar") + "pom", pom(THING, ("org.example", "needed", "2.0")))
    assert "has no checksum of org.example:needed:2.0" in refusal()
    mirror.add(NEEDED, algorithms=("sha1",))
    assert [path.name for path in resolve([str(THING)])] == ["needed-2.0.jar", "thing-1.0.jar"]


@pytest.mark.parametrize("name", ["../../evil", "..", "e/vil"])
def test_evil_needs(mirror, name, tmp_path):
    """A jar that needs one whose name leads out of the cache is refused; nothing is written there."""
    mirror.add(algorithms=("sha1",))
    mirror.put(THING.path.removesuffix("jar") + "pom", pom(THING, ("org.example", name, "1")))
    evil = jar("evil")
    for path in (f"org/example/{name}/1/{name}-1.jar", "org/evil/1/evil-1.jar"):
        mirror.put(path, evil)
        mirror.put(path.removesuffix("jar") + "pom", pom(Coordinate("org.example", "evil", "1")))
        mirror.put(f"{path}.sha1", hashlib.sha1(evil).hexdigest().encode())
    refusal()
    assert [path.name for path in tmp_path.rglob("*evil*")] == []


STATUSES = {
    302: "redirects to where it may not",
    401: "asks for a name and a password",
    403: "forbids to read it",
    407: "is behind a proxy",
    429: "was asked too often",
    500: "has trouble of its own",
    503: "has trouble of its own",
}


@pytest.mark.parametrize("status", STATUSES)
def test_statuses(mirror, status, monkeypatch):
    """Each status is told in its own words, and none but 404 as a jar that is not there."""
    monkeypatch.setenv(MIRROR_VARIABLE, mirror.url.replace("//", "//me:hunter2@"))
    mirror.statuses["*"] = status
    said = refusal()
    assert STATUSES[status] in said
    assert str(status) in said
    assert "does not have" not in said
    assert "Check the version" not in said


@pytest.mark.parametrize("status", [401, 503])
def test_statuses_of_sums(mirror, status):
    """A checksum that the repository will not send is not one that it does not have."""
    mirror.add(algorithms=("sha1",))
    mirror.statuses[f"/repo/{THING.path}.sha512"] = status
    assert STATUSES[status] in refusal()


def test_not_there(mirror):
    """Only what the repository does not have is told so, and then the version is to be checked."""
    said = refusal()
    assert "does not have org.example:thing:1.0" in said
    assert "Check the version" in said


def test_nobody_there(mirror, monkeypatch):
    """A repository where nobody listens cannot be reached."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    monkeypatch.setenv(MIRROR_VARIABLE, f"http://me:hunter2@127.0.0.1:{port}/x?token=hunter2")
    said = refusal()
    assert "cannot be reached: no connection could be made" in said
    assert "Check the version" not in said


def test_login(mirror, monkeypatch, capfd):
    """A login in the mirror's URL is sent where it is asked for, and shown nowhere."""
    mirror.add(algorithms=("sha256",))
    mirror.login = "Basic " + base64.b64encode(b"me:hunter2/@").decode()
    monkeypatch.setenv(MIRROR_VARIABLE, mirror.url.replace("//", "//me:hunter2%2F%40@"))
    assert len(resolve([str(THING)])) == 1
    mirror.login = "Basic other"
    with pytest.raises(NoJars, match="401"):
        resolve(["org.example:more:1"])
    printed = capfd.readouterr()
    assert "hunter2" not in printed.out + printed.err


def test_http_is_warned_about(mirror, monkeypatch):
    """A repository without TLS is warned about, without its password."""
    mirror.add(algorithms=("sha1",))
    monkeypatch.setenv(MIRROR_VARIABLE, mirror.url.replace("//", "//me:hunter2@"))
    with pytest.warns(PlainHttp, match=r"is read by http") as caught:
        resolve([str(THING)])
    assert "hunter2" not in str(caught[0].message)
    resolve([str(THING)])  # from the cache, where nothing is read
    assert len(caught) == 1


def test_too_large(mirror, monkeypatch):
    """A file may have only so many bytes."""
    monkeypatch.setattr(fetch, "MOST_BYTES", 1 << 16)
    mirror.add(content=jar("x" * (1 << 17)), algorithms=("sha1",))
    assert "has more than" in refusal()


def test_cut(mirror):
    """An answer that ends early leaves nothing."""
    mirror.add(algorithms=("sha1",))
    mirror.cut = 10
    refusal()


def test_two_processes(mirror):
    """Processes that ask at once fetch once, and both get the jars."""
    mirror.add(algorithms=("sha1",))
    source = f"from cloudevents_kafka.jvm import resolve; print(resolve([{str(THING)!r}]))"
    argv = [sys.executable, "-W", "ignore", "-c", source]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert said[0] == said[1] != b""
    assert mirror.asked.count(f"/repo/{THING.path}.sha512") == 1


@pytest.mark.parametrize("text", ["g:../../evil:1", "g:a:../../../evil", "../g:a:1"])
def test_coordinates_stay_in_the_cache(own_cache, tmp_path, text):
    """What leads out of the cache is refused before anything is written, a lock too."""
    with pytest.raises(ValueError, match="write group:artifact:version"):
        resolve([text])
    assert list(tmp_path.rglob("*")) == []


def test_nothing_asked_for(own_cache):
    """There is one coordinate at least, and an exclusion is one."""
    with pytest.raises(ValueError, match="give one at least"):
        resolve([])
    with pytest.raises(ValueError, match="write group:artifact"):
        resolve([str(THING)], exclude=["../x"])


def test_names_of_entries():
    """The name of an entry in the cache is a plain one."""
    assert jars.folder_name(jars.Request(("a:b:1",), ())).startswith("b-1-")
