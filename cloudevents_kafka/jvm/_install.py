"""Install a Java if none is found: with apt as root, else, on request, by a download.

Packages of apt are signed. The archive that install-jdk downloads is not checked, so the download
needs the option ``--install-jdk`` or ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1``.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from cloudevents_kafka.jvm._errors import NoJava
from cloudevents_kafka.jvm._java import (
    HINT,
    INSTALL_VARIABLE,
    REQUIRED,
    SUPPORTED,
    UNCHECKED,
    Java,
    find_java,
)
from cloudevents_kafka.jvm._progress import Progress

INSTALL_OPTION: Final = "--install-jdk"


def install_java(*, download: bool | None = None) -> Java:
    """Return a suitable Java; install one with apt if there is none, as root on Debian and Ubuntu.

    With `download` (None: if ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1``) install-jdk downloads one if apt
    fails; its archive is not checked. Only the commands that prepare a machine call this function.
    Raises `NoJava`, which lists the attempts.
    """
    try:
        return find_java()
    except NoJava as error:
        searched = error.searched
    attempts: list[str] = []
    for install in (_by_apt, _by_install_jdk if _is_requested(download) else _skip_install_jdk):
        attempts.append(install())
        try:
            return find_java()
        except NoJava as error:
            searched = error.searched
    raise NoJava(REQUIRED, [*searched, *attempts], HINT)


def _is_requested(download: bool | None) -> bool:  # noqa: FBT001  # the caller's argument
    if download is None:
        return os.environ.get(INSTALL_VARIABLE, "") not in {"", "0"}
    return download


def _skip_install_jdk() -> str:
    return f"install-jdk: not tried (needs {INSTALL_OPTION} or {INSTALL_VARIABLE}=1, as {UNCHECKED})"


def _by_apt() -> str:
    """Install a headless JRE with apt; return the result in words."""
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
    """Download a JDK into ``~/.jdk`` with the package install-jdk; return the result in words."""
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
