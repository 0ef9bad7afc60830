"""Print the home folder of a suitable Java, after installing one if there is none.

    python .ci/java.py [--download]

On Debian and Ubuntu apt installs one for root; its packages are signed. With ``--download`` install-jdk
downloads one where apt cannot; its archive is not compared with a checksum.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cloudevents_kafka.jvm import SUPPORTED, Java, NoJava, find_java

UNCHECKED = "its archive is not compared with a checksum"


def install_java(*, download: bool) -> Java:
    """Return a suitable Java; raise `NoJava`, which lists the attempts to install one."""
    installers: list[Callable[[], str]] = [by_apt, *([by_install_jdk] if download else [])]
    attempts = []
    for install in installers:
        with suppress(NoJava):
            return find_java()
        attempts.append(install())
    if not download:
        attempts.append(f"install-jdk: not tried (make INSTALL_JDK=1 allows it; {UNCHECKED})")
    try:
        return find_java()
    except NoJava as error:
        raise NoJava([*error.searched, *attempts]) from None


def by_apt() -> str:
    """Install a headless JRE with apt; return the result as text."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "apt: not tried (needs root on Debian or Ubuntu)"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print("Java: installing with apt", file=sys.stderr)
    subprocess.run(["apt-get", "update", "-qq"], env=env, check=False, stdout=subprocess.DEVNULL)
    for feature in SUPPORTED:
        package = f"openjdk-{feature}-jre-headless"
        argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        done = subprocess.run(argv, env=env, check=False, capture_output=True, text=True)
        if done.returncode == 0:
            return f"apt: installed {package}"
    return f"apt: failed ({(done.stderr.strip() or 'no message').splitlines()[-1]})"


def by_install_jdk() -> str:
    """Download a JDK into ``~/.jdk`` with the package install-jdk; return the result as text."""
    try:
        jdk = importlib.import_module("jdk")
    except ImportError:
        return "install-jdk: not installed (pip install install-jdk)"
    print(
        f"Java: downloading version {SUPPORTED[0]} into {Path.home() / '.jdk'}; {UNCHECKED}", file=sys.stderr
    )
    try:
        return f"install-jdk: installed {jdk.install(str(SUPPORTED[0]))}"
    except (OSError, ValueError, jdk.JdkError) as error:
        return f"install-jdk: failed ({error})"


if __name__ == "__main__":
    try:
        print(install_java(download="--download" in sys.argv[1:]).home)
    except NoJava as error:
        sys.exit(str(error))
