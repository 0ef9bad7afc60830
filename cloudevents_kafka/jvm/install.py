"""Get a Java where there is none: the system's package as root, else, where asked for, a download.

What apt installs is signed. What install-jdk downloads into the home folder is not checked, so
it is done only where it is asked for, by an option or by ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1``.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from pathlib import Path

from cloudevents_kafka.jvm.errors import NoJava
from cloudevents_kafka.jvm.java import HINT, INSTALL_VARIABLE, SUPPORTED, UNCHECKED, WANTED, Java, find_java
from cloudevents_kafka.jvm.progress import Progress

INSTALL_OPTION = "--install-jdk"


def install_java(*, download: bool | None = None) -> Java:
    """Return a suitable Java; where there is none, install it by apt, as root on Debian and Ubuntu.

    With `download`, or ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1`` where that is None, what apt cannot do
    install-jdk does, whose archive is not checked. This changes the machine, so nothing in this
    library calls it unasked. Raises `NoJava` with what was tried, and what to do.
    """
    try:
        return find_java()
    except NoJava as error:
        looked = error.looked
    tried: list[str] = []
    for way in (_by_apt, _by_install_jdk if _is_asked_for(download) else _not_by_install_jdk):
        tried.append(way())
        try:
            return find_java()
        except NoJava as error:
            looked = error.looked
    raise NoJava(WANTED, [*looked, *tried], HINT)


def _is_asked_for(download: bool | None) -> bool:  # noqa: FBT001  # as the user gave it
    if download is None:
        return os.environ.get(INSTALL_VARIABLE, "") not in {"", "0"}
    return download


def _not_by_install_jdk() -> str:
    return f"install-jdk: not tried (needs --install-jdk or {INSTALL_VARIABLE}=1, as {UNCHECKED})"


def _by_apt() -> str:
    """Install a headless JRE with apt; say how that went."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "apt: not tried (needs root on Debian or Ubuntu)"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with Progress() as progress:
        progress.say("Java: installing with apt")
        subprocess.run(["apt-get", "update", "-qq"], env=env, check=False, stdout=subprocess.DEVNULL)
        for feature in SUPPORTED:
            package = f"openjdk-{feature}-jre-headless"
            argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
            done = subprocess.run(argv, env=env, check=False, capture_output=True, text=True)
            if done.returncode == 0:
                return f"apt: installed {package}"
    return f"apt: failed ({_last_line(done.stderr)})"


def _by_install_jdk() -> str:
    """Download a JDK into ``~/.jdk`` with the package install-jdk; say how that went."""
    try:
        jdk = importlib.import_module("jdk")
    except ImportError:
        return "install-jdk: not installed (pip install 'cloudevents-kafka[testing]')"
    with Progress() as progress:
        progress.say(f"Java: downloading version {SUPPORTED[0]} into {Path.home() / '.jdk'}; {UNCHECKED}")
        try:
            return f"install-jdk: installed {jdk.install(str(SUPPORTED[0]))}"
        except (OSError, ValueError, jdk.JdkError) as error:
            return f"install-jdk: failed ({error})"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"
