"""Jars are fetched once, checked on each use, and never half there."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jvm.repository import jar

from cloudevents_kafka.jvm import (
    NoJars,
    cache,
    cache_folder,
    fetch,
    ivy,
    jars,
    manifest,
    maven,
    resolve,
    sums,
)
from cloudevents_kafka.jvm.coordinates import Coordinate
from cloudevents_kafka.jvm.errors import FetchFailed
from cloudevents_kafka.jvm.fetch import Delivery, Request, explain, proxy_flags

THING = "org.example:thing:1.0"


THING_JAR, NEEDED_JAR = jar("thing"), jar("needed")


def delivery(work, text, content):
    """Deliver a jar by a name in `work`, with its sum."""
    coordinate = Coordinate.parse(text)
    path = work / coordinate.file_name
    path.write_bytes(content)
    return Delivery(coordinate, path, lambda name: hashlib.new(name, content).hexdigest())


class Repository:
    """Counts the fetches, and gives two jars each time."""

    def __init__(self):
        self.requests = []

    def __call__(self, request, work, progress):
        self.requests.append(request)
        progress.step("working")
        return [delivery(work, THING, THING_JAR), delivery(work, "org.example:needed:2.0", NEEDED_JAR)]


@pytest.fixture(autouse=True)
def _own_cache(own_cache):
    """Keep the user's cache out of these tests."""


@pytest.fixture
def repository(monkeypatch):
    """A repository in memory."""
    made = Repository()
    monkeypatch.setattr(jars, "choose_fetch", lambda: made)
    return made


def entries():
    """List what the jar cache holds, locks apart."""
    folder = cache_folder() / "jars"
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock") if folder.exists() else []


def test_fetched_once(repository, capsys):
    """The second use takes the cache, and says nothing."""
    first = resolve([THING])
    assert [jar.read_bytes() for jar in first] == [NEEDED_JAR, THING_JAR]
    assert "2 jars" in capsys.readouterr().err
    assert resolve([THING]) == first
    assert len(repository.requests) == 1
    assert capsys.readouterr().err == ""


def test_each_request_has_its_place(repository):
    """Other coordinates and other exclusions are other folders; the order of exclusions is nothing."""
    resolve([THING])
    resolve([THING], exclude=["a:b", "c:d"])
    resolve([THING], exclude=["c:d", "a:b"])
    resolve([THING, "org.example:more:1"])
    assert len(repository.requests) == len(entries()) == 3


def test_manifest(repository):
    """The manifest holds the request and each jar's size and SHA-256."""
    folder = resolve([THING], exclude=["a:b"])[0].parent
    held = json.loads((folder / manifest.FILE_NAME).read_text())
    assert (held["coordinates"], held["exclude"]) == ([THING], ["a:b"])
    assert [(jar["name"], jar["size"]) for jar in held["jars"]] == [
        ("needed-2.0.jar", len(NEEDED_JAR)),
        ("thing-1.0.jar", len(THING_JAR)),
    ]
    assert [jar["checked"] for jar in held["jars"]] == ["sha512 of the repository"] * 2
    assert all(re.fullmatch("[0-9a-f]{64}", jar["sha256"]) for jar in held["jars"])


DAMAGES = {
    "cut": (lambda jar: jar.write_bytes(b"thi"), f"thing-1.0.jar has 3 bytes, not {len(THING_JAR)}"),
    "changed": (
        lambda path: path.write_bytes(jar("thung")),
        "thing-1.0.jar is not the file that was fetched",
    ),
    "gone": (lambda jar: jar.unlink(), "thing-1.0.jar is missing"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damage(repository, capsys, case):
    """A damaged jar is noticed, told, and fetched again."""
    harm, told = DAMAGES[case]
    harm(resolve([THING])[1])
    capsys.readouterr()
    assert resolve([THING])[1].read_bytes() == THING_JAR
    assert told in capsys.readouterr().err
    assert len(repository.requests) == 2


@pytest.mark.parametrize("text", [b"", b"{", b"{}", b'{"coordinates":[],"exclude":[],"jars":[]}'])
def test_damaged_manifest(repository, text):
    """A manifest that cannot be read counts for nothing."""
    folder = resolve([THING])[0].parent
    (folder / manifest.FILE_NAME).write_bytes(text)
    assert len(resolve([THING])) == 2
    assert len(repository.requests) == 2


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), FetchFailed("no", "do"), OSError("disk full")])
def test_interrupted(monkeypatch, trouble):
    """A fetch that ends early, by Ctrl-C too, leaves nothing in the cache."""

    def broken(request, work, progress):
        (work / "thing-1.0.jar").write_bytes(b"th")
        raise trouble

    monkeypatch.setattr(jars, "choose_fetch", lambda: broken)
    with pytest.raises(NoJars if isinstance(trouble, FetchFailed) else type(trouble)):
        resolve([THING])
    assert entries() == []


def test_failed_refetch_keeps_nothing_broken(repository, monkeypatch):
    """While a damaged folder cannot be replaced, it is not taken either."""
    resolve([THING])[1].unlink()

    def broken(request, folder, progress):
        raise FetchFailed("no network", "get one")

    monkeypatch.setattr(jars, "choose_fetch", lambda: broken)
    with pytest.raises(NoJars, match="no network"):
        resolve([THING])


def test_leftovers_of_a_crash(repository):
    """What a killed process left behind goes with the next fetch."""
    folder = cache_folder() / "jars"
    name = jars.folder_name(Request((THING,)))
    (folder / f".{name}-left").mkdir(parents=True)
    resolve([THING])
    assert entries() == [name]


def test_error_says_all(monkeypatch):
    """A failure names the coordinates, the folder, the reason and what to do."""

    def broken(request, folder, progress):
        raise explain(["Host repo.invalid not found. url=x"], ivy._MISSING)

    monkeypatch.setattr(jars, "choose_fetch", lambda: broken)
    with pytest.raises(NoJars) as caught:
        resolve([THING])
    text = str(caught.value)
    assert THING in text
    assert str(cache_folder()) in text
    assert "cannot be reached: no address is known for its host name" in text
    assert "Host repo.invalid not found" in text
    assert fetch.MIRROR_VARIABLE in text
    assert cache.CACHE_VARIABLE in text


def test_no_downloader(monkeypatch):
    """Without PySpark and Maven the error says which of them to install."""
    monkeypatch.setattr(ivy, "find_ivy", lambda: None)
    monkeypatch.setattr(maven, "find_maven", lambda: None)
    with pytest.raises(NoJars, match=r"pip install 'cloudevents-kafka\[spark\]'.*apt install maven"):
        resolve([THING])


def test_nothing_given(monkeypatch):
    """A repository that gives no jar is an error, not an empty list."""
    monkeypatch.setattr(jars, "choose_fetch", lambda: lambda request, work, progress: [])
    with pytest.raises(NoJars, match="gave no jar"):
        resolve([THING])


TAMPERED = {
    "a name that leads out": (
        lambda held: held["jars"][0].update(name="../../evil.jar"),
        "a name in the manifest is not that of a jar",
    ),
    "never compared": (
        lambda held: held["jars"][0].update(checked=""),
        "needed-2.0.jar was never compared with a checksum",
    ),
    "of an earlier version": (
        lambda held: [jar.pop(name) for jar in held["jars"] for name in ("checked", "coordinate")],
        "needed-2.0.jar was never compared with a checksum",
    ),
    "of other coordinates": (
        lambda held: held.update(coordinates=["a:b:1"]),
        "the manifest is that of other coordinates",
    ),
    "of another jar": (
        lambda held: held["jars"][0].update(sha256="0" * 64),
        "needed-2.0.jar is not the file that was fetched",
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_manifest(repository, capsys, case):
    """A manifest that does not say what was checked, or leads elsewhere, is not believed."""
    change, told = TAMPERED[case]
    folder = resolve([THING])[0].parent
    path = folder / manifest.FILE_NAME
    held = json.loads(path.read_text())
    change(held)
    path.write_text(json.dumps(held))
    capsys.readouterr()
    assert [jar.read_bytes() for jar in resolve([THING])] == [NEEDED_JAR, THING_JAR]
    assert told in capsys.readouterr().err
    assert len(repository.requests) == 2


def test_tampered_jar_and_manifest(repository, monkeypatch, capsys):
    """Whoever changes a jar and its manifest changes nothing where the package knows the sum."""
    known = {THING: hashlib.sha256(THING_JAR).hexdigest()}
    names = {"thing-1.0.jar": frozenset(known.values())}
    monkeypatch.setattr(sums, "pinned", lambda: known)
    monkeypatch.setattr(sums, "pinned_by_name", lambda: names)
    path = resolve([THING])[1]
    path.write_bytes(jar("thung"))
    found = manifest.read(path.parent)
    changed = [manifest.describe(path, THING, "sha1 of the repository")]
    manifest.write(
        path.parent, manifest.Manifest(found.coordinates, found.exclude, (found.jars[0], *changed))
    )
    assert resolve([THING])[1].read_bytes() == THING_JAR
    assert "does not have the SHA-256 that the package knows" in capsys.readouterr().err


def test_cache_of_an_earlier_version(repository, monkeypatch):
    """Jars of a cache without coordinates are taken where the package knows the sums of their names."""
    names = {"thing-1.0.jar": frozenset([hashlib.sha256(THING_JAR).hexdigest()])}
    names["needed-2.0.jar"] = frozenset([hashlib.sha256(NEEDED_JAR).hexdigest()])
    monkeypatch.setattr(sums, "pinned_by_name", lambda: names)
    path = resolve([THING])[0].parent / manifest.FILE_NAME
    held = json.loads(path.read_text())
    for one in held["jars"]:
        del one["coordinate"], one["checked"]
    path.write_text(json.dumps(held))
    assert len(resolve([THING])) == 2
    assert len(repository.requests) == 1


def test_one_name_for_two(monkeypatch):
    """Two jars of one name cannot lie side by side: that is an error, and neither is lost in silence."""

    def two(request, work, progress):
        (work / "other").mkdir()
        return [delivery(work, THING, THING_JAR), delivery(work / "other", "org.other:thing:1.0", NEEDED_JAR)]

    monkeypatch.setattr(jars, "choose_fetch", lambda: two)
    with pytest.raises(NoJars, match="have one name"):
        resolve([THING])


LIST = """
The following files have been resolved:
   org.example:thing:jar:1.0:compile:{0}/thing-1.0.jar
   org.example:native:jar:linux-x86_64:2.0:runtime:{0}/native-2.0-linux-x86_64.jar -- module a.b (auto)
   org.example:test:jar:2.0:test:{0}/test-2.0.jar
"""


def test_what_maven_lists(monkeypatch, tmp_path):
    """Of Maven's list the jars are taken with their coordinates; sums are those beside them."""
    (tmp_path / "thing-1.0.jar.sha1").write_text("abc")

    def run(argv, on_line):
        (output,) = (flag.partition("=")[2] for flag in argv if flag.startswith("-DoutputFile="))
        Path(output).write_text(LIST.format(tmp_path))
        return 0, []

    monkeypatch.setattr(maven, "run", run)
    thing, native = maven.Maven("mvn")(Request((THING,)), tmp_path, None)
    assert (str(thing.coordinate), thing.path) == (THING, tmp_path / "thing-1.0.jar")
    assert str(native.coordinate) == "org.example:native:2.0:linux-x86_64"
    assert native.path.name == native.coordinate.file_name
    assert (thing.published("sha1"), thing.published("sha256")) == ("abc", None)


def _resolve_slowly(log):
    """Resolve in a process of its own; its one fetch takes a while and leaves a line."""

    def slow(request, folder, progress):
        with log.open("a") as handle:
            handle.write("fetched\n")
        time.sleep(0.3)
        return [delivery(folder, THING, THING_JAR)]

    jars.choose_fetch = lambda: slow
    assert len(resolve([THING])) == 1


def test_two_processes(tmp_path):
    """Processes that ask at once fetch once, and all get the jars."""
    log = tmp_path / "log"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_resolve_slowly, args=(log,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert log.read_text() == "fetched\n"


def test_ctrl_c_ends_the_downloader(tmp_path):
    """Ctrl-C during a download ends the downloader too, and leaves an empty cache."""
    pid_file = tmp_path / "pid"
    source = f"""
import os, sys
from cloudevents_kafka.jvm import fetch, jars, resolve
sleep = "import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); print(1, flush=True)"
argv = [sys.executable, "-c", sleep + "; time.sleep(100)"]
jars.choose_fetch = lambda: lambda *_: fetch.run(argv, lambda line: print("up", flush=True))
resolve([{THING!r}])
"""
    with subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout.readline() == b"up\n"
        # To the Python program alone: it must pass the end on.
        program.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in program.communicate(timeout=60)[1]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert entries() == []


OUTPUTS = {
    "ivy: no such module": (
        ivy._MISSING,
        [":: a.b#c-d_2.13;1.0: not found"],
        "does not have a.b:c-d_2.13:1.0",
    ),
    "ivy: no such jar": (ivy._MISSING, [":: a#b;1!b.jar"], "does not have a:b:1"),
    "ivy: no host": (ivy._MISSING, ["Host x not found. url=y", ":: a#b;1: not found"], "cannot be reached"),
    "ivy: refused": (ivy._MISSING, ["Server access error at url x (ConnectException)"], "cannot be reached"),
    "ivy: in trouble": (ivy._MISSING, ["HTTP response status: 503 url=https://a:b@x/y"], "https://.*@x/y"),
    "ivy: first of all": (
        ivy._MISSING,
        ["HTTP response status: 404 url=x", "HTTP response status: 403 url=x", ":: a#b;1: not found"],
        "forbids to read it",
    ),
    "ivy: slow": (
        ivy._MISSING,
        ["url http://x/y (java.net.SocketTimeoutException: Read timed out)"],
        "in time",
    ),
    "ivy: not trusted": (
        ivy._MISSING,
        ["Server access error at url https://x/ (javax.net.ssl.SSLHandshakeException: PKIX path)"],
        r"TLS failed.* \(https://x/: javax.net.ssl.SSLHandshakeException: PKIX path\)$",
    ),
    "ivy: proxy": (
        ivy._MISSING,
        ['(java.io.IOException: Unable to tunnel through proxy. Proxy returns "HTTP/1.1 407 Required")'],
        "is behind a proxy",
    ),
    "ivy: wrong sum": (
        ivy._MISSING,
        ["http://x/y: invalid sha1: expected=a computed=b"],
        "not have the checksum",
    ),
    "maven: not allowed": (
        maven._MISSING,
        ["[ERROR] Could not transfer x (https://a:hunter2@x/y): status code: 401, reason phrase: U (401)"],
        "asks for a name and a password.*x/y",
    ),
    "maven: slow": (maven._MISSING, ["[ERROR] x (https://x/y): Read timed out"], "in time"),
    "maven: wrong sum": (
        maven._MISSING,
        ["[ERROR] Checksum validation failed, no checksums available"],
        "does not have the checksum",
    ),
    "maven: no such": (
        maven._MISSING,
        ["[ERROR] Could not find artifact a:b:jar:1 in x"],
        "does not have a:b:jar:1",
    ),
    "maven: no host": (maven._MISSING, ["[ERROR] x: Unknown host y"], "cannot be reached"),
    "unknown": (ivy._MISSING, ["what a day", ""], r"the download failed \(what a day\)"),
    "silent": (ivy._MISSING, [], "without a word"),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_explanations(case):
    """The downloaders' words become one reason that a reader understands."""
    missing, lines, reason = OUTPUTS[case]
    error = explain(lines, missing)
    assert re.search(reason, error.reason)
    assert "hunter2" not in error.reason + error.hint


def test_mirror():
    """A mirror replaces the repository in both downloaders; without one no address is written."""
    request = Request((THING,), ("a:b",))
    for text in (ivy.settings_xml("http://m/x", cache_folder()), maven.project_xml(request, "http://m/x")):
        assert "http://m/x" in text
    assert "root=" not in ivy.settings_xml("", cache_folder())
    assert "<url>" not in maven.project_xml(request, None)
    assert '<exclude org="a" module="b"/>' in ivy.module_xml(request)
    assert "<exclusion><groupId>a</groupId><artifactId>b</artifactId></exclusion>" in maven.project_xml(
        request, None
    )


PROXIES = {
    "none": ({}, []),
    "https": ({"https": "http://u@p:3128"}, ["-Dhttps.proxyHost=p", "-Dhttps.proxyPort=3128"]),
    "but not": (
        {"http": "http://p:1", "no": "localhost, .corp"},
        ["-Dhttp.proxyHost=p", "-Dhttp.proxyPort=1", "-Dhttp.nonProxyHosts=localhost|*.corp"],
    ),
}


@pytest.mark.parametrize("case", PROXIES)
def test_proxies(case):
    """Java gets the proxies that Python sees."""
    given, flags = PROXIES[case]
    assert proxy_flags(given) == flags


@pytest.mark.parametrize(
    ("env", "end"),
    [
        ({cache.CACHE_VARIABLE: "/own"}, "/own"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/cloudevents-kafka"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/.cache/cloudevents-kafka"),
        ({}, "/home/.cache/cloudevents-kafka"),
    ],
)
def test_cache_folder(monkeypatch, env, end):
    """Our own variable wins, then XDG's (absolute, as it demands), then the home folder."""
    for name in (cache.CACHE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder()) == end
