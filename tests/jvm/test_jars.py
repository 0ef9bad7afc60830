"""Jars are fetched once, checked on each use, and never half there."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from cloudevents_kafka.jvm import NoJars, cache, cache_folder, fetch, ivy, jars, manifest, maven, resolve
from cloudevents_kafka.jvm.fetch import FetchFailed, Request, explain, proxy_flags

THING = "org.example:thing:1.0"


class Repository:
    """Counts the fetches, and gives two jars each time."""

    def __init__(self):
        self.requests = []

    def __call__(self, request, folder, progress):
        self.requests.append(request)
        progress.step("working")
        (folder / "thing-1.0.jar").write_bytes(b"thing")
        (folder / "needed-2.0.jar").write_bytes(b"needed")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """Keep the user's cache out of these tests."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))


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
    assert [jar.read_bytes() for jar in first] == [b"needed", b"thing"]
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
        ("needed-2.0.jar", 6),
        ("thing-1.0.jar", 5),
    ]
    assert all(re.fullmatch("[0-9a-f]{64}", jar["sha256"]) for jar in held["jars"])


DAMAGES = {
    "cut": (lambda jar: jar.write_bytes(b"thi"), "thing-1.0.jar has 3 bytes, not 5"),
    "changed": (lambda jar: jar.write_bytes(b"thung"), "thing-1.0.jar is not the file that was fetched"),
    "gone": (lambda jar: jar.unlink(), "thing-1.0.jar is missing"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damage(repository, capsys, case):
    """A damaged jar is noticed, told, and fetched again."""
    harm, told = DAMAGES[case]
    harm(resolve([THING])[1])
    capsys.readouterr()
    assert resolve([THING])[1].read_bytes() == b"thing"
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

    def broken(request, folder, progress):
        (folder / "thing-1.0.jar").write_bytes(b"th")
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
    assert "cannot be reached (Host repo.invalid not found" in text
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
    monkeypatch.setattr(jars, "choose_fetch", lambda: lambda request, folder, progress: None)
    with pytest.raises(NoJars, match="gave no jar"):
        resolve([THING])


@pytest.mark.parametrize("text", ["thing", "a:b", "a:b:c:d", "::", "a::1"])
def test_not_a_coordinate(text):
    """A coordinate has three parts, none of them empty."""
    with pytest.raises(ValueError, match="write group:artifact:version"):
        resolve([text])


def _resolve_slowly(log):
    """Resolve in a process of its own; its one fetch takes a while and leaves a line."""

    def slow(request, folder, progress):
        with log.open("a") as handle:
            handle.write("fetched\n")
        time.sleep(0.3)
        (folder / "thing-1.0.jar").write_bytes(b"thing")

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
    "ivy: not allowed": (ivy._MISSING, ["HTTP response status: 503 url=x"], "cannot be reached"),
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
    assert re.search(reason, explain(lines, missing).reason)


def test_mirror():
    """A mirror replaces the repository in both downloaders; without one no address is written."""
    request = Request((THING,), ("a:b",))
    for text in (ivy.settings_xml("http://m/x", cache_folder()), maven.project_xml(request, "http://m/x")):
        assert "http://m/x" in text
    assert "root=" not in ivy.settings_xml(None, cache_folder())
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
