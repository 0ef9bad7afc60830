"""Make installs a Java where there is none: by apt, or by a download that can be forbidden."""

from __future__ import annotations

import subprocess
import sys
import types
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from cloudevents_kafka.jvm import NoJava

ROOT = Path(__file__).parents[1]


@pytest.fixture
def java():
    """The module of the script."""
    spec = spec_from_file_location("ci_java", ROOT / ".ci" / "java.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def no_java(java, monkeypatch):
    """A machine without Java, whose apt installs nothing."""

    def nothing():
        raise NoJava(["seen"])

    monkeypatch.setattr(java, "find_java", nothing)
    monkeypatch.setattr(java, "by_apt", lambda: "apt: no")
    return monkeypatch


def test_what_is_there_is_taken(java, monkeypatch):
    """Nothing is installed if a suitable Java is found."""
    monkeypatch.setattr(java, "find_java", lambda: "found")
    monkeypatch.setattr(java, "by_apt", lambda: pytest.fail("nothing to install"))
    assert java.install_java(download=True) == "found"


def test_apt_is_first(java, no_java):
    """Apt is first, then install-jdk; the error lists both attempts."""
    no_java.setattr(java, "by_install_jdk", lambda: "install-jdk: no")
    with pytest.raises(NoJava) as caught:
        java.install_java(download=True)
    assert caught.value.searched == ("seen", "apt: no", "install-jdk: no")


def test_nothing_is_downloaded_unasked(java, no_java):
    """Without the option nothing is downloaded, and the error says what allows it."""
    no_java.setattr(java, "by_install_jdk", lambda: pytest.fail("downloaded"))
    with pytest.raises(NoJava, match=r"install-jdk: not tried \(make INSTALL_JDK=1 allows it"):
        java.install_java(download=False)


def test_a_download_is_reported(java, no_java, capsys):
    """The download of install-jdk is reported, with the warning that it is not checked."""
    fake = types.SimpleNamespace(JdkError=RuntimeError, install=lambda version: f"/jdk/{version}")
    no_java.setitem(sys.modules, "jdk", fake)
    with pytest.raises(NoJava, match="install-jdk: installed /jdk/17"):
        java.install_java(download=True)
    assert "its archive is not compared with a checksum" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "allowed"), [([], True), (["INSTALL_JDK=0"], False)])
def test_the_makefile_asks(words, allowed):
    """Make allows the download of a Java by itself; INSTALL_JDK=0 forbids it."""
    argv = ["make", "-n", "-f", ROOT / "Makefile", "ready", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ("python .ci/java.py --download" in done.stdout) is allowed
    assert "python .ci/java.py" in done.stdout


def test_the_package_installs_no_java():
    """No module of the package runs a package manager."""
    for path in (ROOT / "cloudevents_kafka").rglob("*.py"):
        assert "apt-get" not in path.read_text("utf-8"), path
