"""What the two downloaders share: the request, how they run, and what their failures mean."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from cloudevents_kafka.jvm.cache import CACHE_VARIABLE
from cloudevents_kafka.jvm.progress import Progress

MIRROR_VARIABLE = "CLOUDEVENTS_KAFKA_MAVEN_MIRROR"
REACH_HINT = (
    f"Check the network, or set {MIRROR_VARIABLE} to the URL of a Maven repository that you can reach, "
    f"or copy the cache folder of a machine that has them and set {CACHE_VARIABLE} to it."
)
MISSING_HINT = f"Check the version, or set {MIRROR_VARIABLE} to the URL of a Maven repository that has it."

# How Java's network failures look in the output of Ivy and Maven.
_UNREACHABLE = re.compile(
    r".*(?:Server access error|Host \S+ not found|HTTP response status: (?!404)|UnknownHostException|"
    r"Unknown host|ConnectException|Connection refused|timed out|Network is unreachable|SSL\w*Exception)"
)


class Request(msgspec.Struct, frozen=True):
    """Which jars are wanted: coordinates, and what to leave out of what they need."""

    coordinates: tuple[str, ...]
    exclude: tuple[str, ...] = ()


class FetchFailed(Exception):
    """A download failed for ``reason``; ``hint`` says what to do."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.reason = reason
        self.hint = hint


class Fetch(Protocol):
    """Downloads the jars of a request into a folder, or raises `FetchFailed`."""

    def __call__(self, request: Request, folder: Path, progress: Progress) -> None:
        """Download into `folder`, telling how it goes."""


def mirror() -> str | None:
    """Give the user's own Maven repository, if one is set."""
    return os.environ.get(MIRROR_VARIABLE) or None


def run(argv: Sequence[str], on_line: Callable[[str], object]) -> tuple[int, list[str]]:
    """Run a downloader, passing on each line; its exit code and last 400 lines.

    Whatever stops this process (Ctrl-C too) stops the downloader first, so it
    cannot write into a folder that is being removed.
    """
    lines: deque[str] = deque(maxlen=400)
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                on_line(line)
            return process.wait(), list(lines)
        except BaseException:
            process.kill()
            raise


def explain(lines: Iterable[str], missing: re.Pattern[str]) -> FetchFailed:
    """Say why a download failed, from the downloader's output.

    `missing` finds an artifact that the repository does not have.
    """
    text = [line.strip() for line in lines if line.strip()]
    for line in text:
        if _UNREACHABLE.match(line):
            return FetchFailed(f"the Maven repository cannot be reached ({line[:160]})", REACH_HINT)
    gone = sorted(
        {match[1].replace("#", ":").replace(";", ":") for line in text if (match := missing.search(line))}
    )
    if gone:
        return FetchFailed(f"the Maven repository does not have {', '.join(gone)}", MISSING_HINT)
    return FetchFailed(f"the download failed ({text[-1][:160] if text else 'without a word'})", REACH_HINT)


def proxy_flags(proxies: Mapping[str, str] | None = None) -> list[str]:
    """Give Java the proxy settings that Python sees in the environment.

    pip heeds ``https_proxy``; Java does not, so a machine could install us and
    then fail here.
    """
    found = urllib.request.getproxies() if proxies is None else proxies
    flags: list[str] = []
    for scheme in ("http", "https"):
        parts = urlsplit(found.get(scheme, ""))
        if parts.hostname:
            flags += [f"-D{scheme}.proxyHost={parts.hostname}", f"-D{scheme}.proxyPort={parts.port or 80}"]
    if flags and found.get("no"):
        hosts = [host.strip() for host in found["no"].split(",") if host.strip()]
        flags.append(
            f"-Dhttp.nonProxyHosts={'|'.join(f'*{host}' if host.startswith('.') else host for host in hosts)}"
        )
    return flags
