"""Get a Java where there is none: the system's package as root, else a download into the home folder."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from pathlib import Path

from cloudevents_kafka.jvm.errors import NoJava
from cloudevents_kafka.jvm.java import HINT, SUPPORTED, WANTED, Java, find_java
from cloudevents_kafka.jvm.progress import Progress


def install_java() -> Java:
    """Find a suitable Java, or install one: apt as root on Debian and Ubuntu, else install-jdk.

    This changes the machine, so nothing in this library calls it unasked.
    Raises `NoJava` with what was tried.
    """
    try:
        return find_java()
    except NoJava as error:
        looked = error.looked
    tried: list[str] = []
    for way in (_by_apt, _by_install_jdk):
        tried.append(way())
        try:
            return find_java()
        except NoJava as error:
            looked = error.looked
    raise NoJava(WANTED, [*looked, *tried], HINT)


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
        progress.say(f"Java: downloading version {SUPPORTED[0]} into {Path.home() / '.jdk'}")
        try:
            return f"install-jdk: installed {jdk.install(str(SUPPORTED[0]))}"
        except (OSError, ValueError, jdk.JdkError) as error:
            return f"install-jdk: failed ({error})"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"
