"""A suitable Java is found; if there is none, the error says why."""

from __future__ import annotations

import importlib
import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest

from cloudevents_kafka.jvm import NoJava, _install, find_java, install_java
from cloudevents_kafka.jvm._java import INSTALL_VARIABLE, NEEDED_MODULE, Java, parse_settings, read_release

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


@pytest.mark.parametrize(
    ("version", "feature"),
    [("17.0.15", 17), ("21", 21), ("25.0.3", 25), ("1.8.0_402", 8), ("9-ea", 9), ("x", 0)],
)
def test_feature(version, feature):
    """The feature number is read from each form of version."""
    assert Java(Path("/java"), version, frozenset()).feature == feature


@pytest.mark.parametrize(
    ("version", "suitable"), [("17.0.1", True), ("21.0.2", True), ("11.0.1", False), ("25.0.3", False)]
)
def test_versions(tmp_path, version, suitable):
    """Java 17 and 21 are suitable, older and newer ones are not."""
    java = read_release(make_home(tmp_path / "java", version))
    assert (java.problem is None) is suitable


def test_order(tmp_path):
    """JAVA_HOME is first, then PATH, then the usual folders."""
    homes = {name: make_home(tmp_path / name, "17.0.1") for name in ("home", "path", "found")}
    env = {"JAVA_HOME": str(homes["home"]), "PATH": str(homes["path"] / "bin")}
    places = [str(tmp_path / "fou*")]
    assert find_java(env, places).home == homes["home"]
    del env["JAVA_HOME"]
    assert find_java(env, places).home == homes["path"]
    assert find_java({}, places).home == homes["found"]


def test_unsuited_are_passed_over(tmp_path):
    """A Java that is too new or has too few modules is skipped, even if JAVA_HOME names it."""
    new = make_home(tmp_path / "a-new", "25.0.3")
    make_home(tmp_path / "b-small", "17.0.1", "java.base")
    good = make_home(tmp_path / "c-good", "21.0.1")
    assert find_java({"JAVA_HOME": str(new)}, [str(tmp_path / "*")]).home == good


def test_none(tmp_path):
    """If none is suitable, the error lists each Java with its problem, and what to do."""
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
    """If there is no Java at all, the error lists the places."""
    with pytest.raises(NoJava, match=r"JAVA_HOME, PATH, .*no Java at all"):
        find_java({}, [str(tmp_path / "*")])


def test_no_release_file(tmp_path):
    """A Java without a release file, such as a shim, is run for its settings."""
    settings = "    java.home = /real/home\n    java.version = 17.0.9"
    script = f"cat <<'EOF' >&2\n{settings}\nEOF\necho '{NEEDED_MODULE}@17.0.9'"
    home = make_home(tmp_path / "shim", "", release=False, script=script)
    java = find_java({"JAVA_HOME": str(home)}, [])
    assert (java.home, java.version) == (Path("/real/home"), "17.0.9")


def test_incomplete_settings():
    """Settings without a home folder are not those of a Java."""
    assert parse_settings("    java.version = 17\n") is None


def test_this_machine():
    """This machine has a suitable Java: the tests with Kafka and Spark need it."""
    java = find_java()
    assert java.problem is None
    assert java.executable.is_file()


def test_install_takes_what_is_there(monkeypatch, tmp_path):
    """Nothing is installed if a suitable Java is found."""
    java = Java(tmp_path, "17.0.1", frozenset())
    monkeypatch.setattr(_install, "find_java", lambda: java)
    monkeypatch.setattr(_install, "_by_apt", lambda: pytest.fail("nothing to install"))
    assert install_java() is java


@pytest.fixture
def no_java(monkeypatch):
    """A machine without Java, whose apt installs nothing."""

    def nothing():
        raise NoJava("a Java", ["seen"], "do this")

    monkeypatch.setattr(_install, "find_java", nothing)
    monkeypatch.setattr(_install, "_by_apt", lambda: "apt: no")
    monkeypatch.delenv(INSTALL_VARIABLE, raising=False)
    return monkeypatch


@pytest.mark.parametrize(("variable", "download"), [("1", None), ("0", True), (None, True)])
def test_install_tries_in_turn(no_java, variable, download):
    """Apt is first, then install-jdk on request; the error lists both attempts."""
    if variable is not None:
        no_java.setenv(INSTALL_VARIABLE, variable)
    no_java.setattr(_install, "_by_install_jdk", lambda: "install-jdk: no")
    with pytest.raises(NoJava) as caught:
        install_java(download=download)
    assert caught.value.searched == ("seen", "apt: no", "install-jdk: no")


@pytest.mark.parametrize(("variable", "download"), [(None, None), ("", None), ("0", None), ("1", False)])
def test_nothing_is_downloaded_unasked(no_java, variable, download):
    """Without the option or the variable nothing is downloaded, and the error names both."""
    if variable is not None:
        no_java.setenv(INSTALL_VARIABLE, variable)
    no_java.setattr(_install, "_by_install_jdk", lambda: pytest.fail("downloaded"))
    with pytest.raises(NoJava, match="install-jdk: not tried") as caught:
        install_java(download=download)
    hint = caught.value.hint
    packages = ("apt install openjdk-17-jre-headless", "dnf install java-21-openjdk-headless", "brew install")
    positions = [
        hint.index(word) for word in (*packages, "JAVA_HOME", "--install-jdk", "not compared with a checksum")
    ]
    assert positions == sorted(positions)


def test_a_download_is_reported(no_java, capsys):
    """The download of install-jdk is reported, with the warning that it is not checked."""
    fake = types.SimpleNamespace(JdkError=RuntimeError, install=lambda version: f"/jdk/{version}")
    no_java.setitem(sys.modules, "jdk", fake)
    with pytest.raises(NoJava, match="install-jdk: installed /jdk/17"):
        install_java(download=True)
    assert "its archive is not compared with a checksum" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["cloudevents_kafka.jvm", "cloudevents_kafka.testing"])
@pytest.mark.parametrize(("args", "download"), [([], None), (["--install-jdk"], True)])
def test_the_option(monkeypatch, capsys, module, args, download):
    """The commands that install a Java have the option; a failure is a message, not a traceback."""
    downloads = []

    def none(*, download):
        downloads.append(download)
        raise NoJava("a Java", ["seen"], "do this")

    main = importlib.import_module(f"{module}.__main__")
    monkeypatch.setattr(main, "install_java", none)
    monkeypatch.setattr(sys, "argv", ["x", *args])
    assert main.main() == 1
    assert downloads == [download]
    assert capsys.readouterr().err == "no suitable Java: a Java. Searched:\n  - seen\ndo this\n"


def test_the_makefile_asks():
    """Make allows the download of a Java by itself; INSTALL_JDK=0 forbids it."""
    makefile = Path(__file__).parents[2] / "Makefile"
    for args, value in (([], "1"), (["INSTALL_JDK=0"], "0")):
        done = subprocess.run(
            ["make", "-n", "-f", makefile, "ready", *args],
            cwd=makefile.parent,
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"{INSTALL_VARIABLE}={value} " in done.stdout
