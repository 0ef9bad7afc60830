"""A suitable Java is found; if there is none, the error says why."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cloudevents_kafka.jvm import NoJava, _java, find_java
from cloudevents_kafka.jvm._java import NEEDED_MODULE, Java
from tests.support.cases import each

MODULES = f"java.base java.logging {NEEDED_MODULE}"


def make_home(folder, version, modules=MODULES, *, release=True, script="exit 1"):
    """Create a Java home whose program is a shell script."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    if release:
        (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture
def search(monkeypatch, tmp_path):
    """A search for Java in some places only."""

    def search(*places, home="", path=""):
        monkeypatch.setattr(_java, "JAVA_HOMES", [str(tmp_path / place) for place in places])
        monkeypatch.setenv("JAVA_HOME", str(home))
        monkeypatch.setenv("PATH", str(path))
        return find_java()

    return search


@each("version", ["17.0.15", "17-ea", "21"])
def test_suitable_versions(version):
    """Java 17 and 21 are suitable."""
    assert Java(Path("/java"), version, frozenset({NEEDED_MODULE})).problem is None


@each("version", ["11.0.1", "25.0.3", "1.8.0_402", "9-ea", "170", "x"])
def test_other_versions(version):
    """Older and newer versions are not suitable."""
    assert Java(Path("/java"), version, frozenset({NEEDED_MODULE})).problem == f"version {version}"


def test_order(tmp_path, search):
    """JAVA_HOME is first, then PATH, then the usual folders."""
    home, path, found = (make_home(tmp_path / name, "17.0.1") for name in ("home", "path", "found"))
    assert search("fou*", home=home, path=path / "bin").home == home
    assert search("fou*", path=path / "bin").home == path
    assert search("fou*").home == found


def test_unsuited_are_passed_over(tmp_path, search):
    """A Java that is too new or has too few modules is skipped, even if JAVA_HOME names it."""
    new = make_home(tmp_path / "a-new", "25.0.3")
    make_home(tmp_path / "b-small", "17.0.1", "java.base")
    good = make_home(tmp_path / "c-good", "21.0.1")
    assert search("*", home=new).home == good


def test_none(tmp_path, search):
    """If none is suitable, the error lists each Java once with its problem, and what to do."""
    make_home(tmp_path / "new", "25.0.3")
    make_home(tmp_path / "small", "17.0.1", "java.base")
    with pytest.raises(NoJava) as caught:
        search("*", "n*", home=tmp_path / "gone")
    assert caught.value.searched == (
        f"JAVA_HOME {tmp_path / 'gone'}: no working Java there",
        f"found {tmp_path / 'new'}: version 25.0.3",
        f"found {tmp_path / 'small'}: version 17.0.1 without module {NEEDED_MODULE}",
    )
    assert "Java 17 or 21" in str(caught.value)
    assert "set JAVA_HOME" in str(caught.value)


def test_nothing_at_all(search):
    """If there is no Java at all, the error lists the places."""
    with pytest.raises(NoJava, match=r"JAVA_HOME, PATH, .*no Java at all"):
        search("*")


SHIM = f"""\
/bin/cat <<'EOF' >&2
    java.version = 17.0.9
    java.home = /real/home
EOF
echo '{NEEDED_MODULE}@17.0.9'
"""


def test_no_release_file(tmp_path, search):
    """A Java without a release file, such as a shim, is run for its settings, which must be complete."""
    home = make_home(tmp_path / "shim", "", release=False, script=SHIM)
    java = search(home=home)
    assert (java.home, java.version) == (Path("/real/home"), "17.0.9")
    incomplete = make_home(tmp_path / "incomplete", "", release=False, script=SHIM.replace("home", "x"))
    with pytest.raises(NoJava, match="no working Java there"):
        search(home=incomplete)


def test_this_machine():
    """This machine has a suitable Java: the tests with Kafka and Spark need it."""
    assert find_java().executable.is_file()


def test_the_hint_has_what_to_install(search):
    """The error has the command of each system, then the variable that names another Java."""
    with pytest.raises(NoJava) as caught:
        search("*")
    hint = str(caught.value).rpartition("\n")[2]
    commands = ("apt install openjdk-17-jre-headless", "dnf install java-21-openjdk-headless", "brew install")
    positions = [hint.index(word) for word in (*commands, "JAVA_HOME")]
    assert positions == sorted(positions)
