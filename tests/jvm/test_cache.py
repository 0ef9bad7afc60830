"""The cache folder is where the user wants it, and each entry is complete or absent."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from cloudevents_kafka.jvm import CACHE_VARIABLE, _jars, cache_folder, resolve
from cloudevents_kafka.jvm._coordinates import JarRequest
from tests.support.maven_repository import THING, entries

pytestmark = pytest.mark.filterwarnings("ignore::cloudevents_kafka.jvm.PlainHttp")


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({CACHE_VARIABLE: "/own"}, "/own"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/cloudevents-kafka"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/.cache/cloudevents-kafka"),
        ({}, "/home/.cache/cloudevents-kafka"),
    ],
)
def test_cache_folder(monkeypatch, env, folder):
    """The package's variable comes first, then XDG's (absolute, as XDG requires), then the home folder."""
    for name in (CACHE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder()) == folder


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("disk full")])
def test_interrupted(mirror, monkeypatch, error):
    """A fetch that ends early leaves nothing in the cache."""

    def check(*_):
        raise error

    monkeypatch.setattr(_jars, "check_jar", check)
    mirror.add()
    with pytest.raises(type(error)):
        resolve([str(THING)])
    assert entries() == []


def test_leftovers(mirror):
    """The partial folders of a killed process are removed by the next fetch."""
    mirror.add()
    name = JarRequest((str(THING),)).folder_name
    (cache_folder() / "jars" / f".{name}-left").mkdir(parents=True)
    resolve([str(THING)])
    assert entries() == [name]


SOURCE = f"from cloudevents_kafka.jvm import resolve; print(resolve([{str(THING)!r}]))"


def test_two_processes(mirror):
    """Processes that resolve at once fetch once, and all return the jars."""
    mirror.add()
    mirror.delay = 0.1
    argv = [sys.executable, "-W", "ignore", "-c", SOURCE]
    processes = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    printed = [process.communicate(timeout=60)[0] for process in processes]
    assert printed[0] == printed[1] == printed[2] != b""
    assert mirror.count(THING.path) == 1


def test_ctrl_c(mirror):
    """Ctrl-C during a download ends it and leaves an empty cache."""
    mirror.add()
    mirror.delay = 30.0
    argv = [sys.executable, "-W", "ignore", "-c", SOURCE]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, start_new_session=True) as program:
        assert b"fetching" in program.stderr.readline()
        while not mirror.requests:
            assert program.poll() is None
        mirror.delay = 0.0
        program.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in program.communicate(timeout=60)[1]
    assert entries() == []
