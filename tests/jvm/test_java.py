"""The right Java is found, and where there is none the user learns why."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cloudevents_kafka.jvm import NoJava, find_java, install, install_java
from cloudevents_kafka.jvm.java import NEEDED_MODULE, Java, parse_settings, read_release

MODULES = f"java.base java.logging {NEEDED_MODULE}"


def make_home(folder, version, modules=MODULES, *, release=True, script="exit 1"):
    """Make a Java home of which only the outside is real."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    if release:
        (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.mark.parametrize(
    ("version", "feature"),
    [("17.0.15", 17), ("21", 21), ("25.0.3", 25), ("1.8.0_402", 8), ("9-ea", 9), ("x", 0)],
)
def test_feature(version, feature):
    """The feature number is read from every form of version."""
    assert Java(Path("/java"), version, frozenset()).feature == feature


@pytest.mark.parametrize(
    ("version", "suits"), [("17.0.1", True), ("21.0.2", True), ("11.0.1", False), ("25.0.3", False)]
)
def test_versions(tmp_path, version, suits):
    """Java 17 and 21 do, older and newer ones do not."""
    java = read_release(make_home(tmp_path / "java", version))
    assert (java.lacks is None) is suits


def test_order(tmp_path):
    """JAVA_HOME comes before PATH, PATH before the usual folders."""
    homes = {name: make_home(tmp_path / name, "17.0.1") for name in ("home", "path", "found")}
    env = {"JAVA_HOME": str(homes["home"]), "PATH": str(homes["path"] / "bin")}
    places = [str(tmp_path / "fou*")]
    assert find_java(env, places).home == homes["home"]
    del env["JAVA_HOME"]
    assert find_java(env, places).home == homes["path"]
    assert find_java({}, places).home == homes["found"]


def test_unsuited_are_passed_over(tmp_path):
    """A Java too new or cut down is passed over for one that does, even if JAVA_HOME names it."""
    new = make_home(tmp_path / "a-new", "25.0.3")
    make_home(tmp_path / "b-small", "17.0.1", "java.base")
    good = make_home(tmp_path / "c-good", "21.0.1")
    assert find_java({"JAVA_HOME": str(new)}, [str(tmp_path / "*")]).home == good


def test_none(tmp_path):
    """Where none does, the error lists each Java with what it lacks, and what to do."""
    make_home(tmp_path / "new", "25.0.3")
    make_home(tmp_path / "small", "17.0.1", "java.base")
    with pytest.raises(NoJava) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone")}, [str(tmp_path / "*")])
    text = str(caught.value)
    assert f"JAVA_HOME {tmp_path / 'gone'}: no working Java there" in text
    assert f"{tmp_path / 'new'}: version 25.0.3" in text
    assert f"{tmp_path / 'small'}: version 17.0.1 without module {NEEDED_MODULE}" in text
    assert "Java 17 or 21" in text
    assert "set JAVA_HOME" in text


def test_nothing_at_all(tmp_path):
    """Where there is no Java at all, the error says where it looked."""
    with pytest.raises(NoJava, match=r"JAVA_HOME, PATH, .*no Java at all"):
        find_java({}, [str(tmp_path / "*")])


def test_asks_where_no_release_file_is(tmp_path):
    """A Java without a release file, or a shim for one, is asked."""
    settings = "    java.home = /real/home\n    java.version = 17.0.9"
    told = f"cat <<'EOF' >&2\n{settings}\nEOF\necho '{NEEDED_MODULE}@17.0.9'"
    home = make_home(tmp_path / "shim", "", release=False, script=told)
    java = find_java({"JAVA_HOME": str(home)}, [])
    assert (java.home, java.version) == (Path("/real/home"), "17.0.9")


def test_settings_that_say_too_little():
    """An answer without home and version is no Java."""
    assert parse_settings("    java.version = 17\n") is None


def test_this_machine():
    """The Java of this machine suits: the tests with Kafka and Spark need it."""
    java = find_java()
    assert java.lacks is None
    assert java.executable.is_file()


def test_install_takes_what_is_there(monkeypatch, tmp_path):
    """Nothing is installed where a suitable Java is found."""
    java = Java(tmp_path, "17.0.1", frozenset())
    monkeypatch.setattr(install, "find_java", lambda: java)
    monkeypatch.setattr(install, "_by_apt", lambda: pytest.fail("nothing to install"))
    assert install_java() is java


def test_install_tries_in_turn(monkeypatch):
    """Apt comes first, then install-jdk; the error tells how both went."""

    def nothing():
        raise NoJava("a Java", ["seen"], "do this")

    monkeypatch.setattr(install, "find_java", nothing)
    monkeypatch.setattr(install, "_by_apt", lambda: "apt: no")
    monkeypatch.setattr(install, "_by_install_jdk", lambda: "install-jdk: no")
    with pytest.raises(NoJava) as caught:
        install_java()
    assert caught.value.looked == ("seen", "apt: no", "install-jdk: no")
