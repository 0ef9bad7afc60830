"""What the two downloaders share: the request, how they run, and what their failures mean."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from cloudevents_kafka.jvm.answers import (
    MIRROR_VARIABLE,
    MISSING_HINT,
    REACH_HINT,
    WRONG_HINT,
    Trouble,
    of_status,
    of_trouble,
)
from cloudevents_kafka.jvm.coordinates import Coordinate
from cloudevents_kafka.jvm.errors import FetchFailed
from cloudevents_kafka.jvm.progress import Progress
from cloudevents_kafka.redaction import mask_url, mask_urls

# A file of more bytes is none of a jar's: the downloader may write no larger one.
MOST_BYTES = 1 << 29
_BLOCK = 512  # bytes in what the shell counts

# How failures look in the output of Ivy and Maven: the HTTP status, else Java's exception.
_STATUS = re.compile(
    r"(?:HTTP response status: |Proxy returns \"HTTP/[\d.]+ |status(?: code)?:? |phrase: [^()]*\()(\d{3})\b"
)
_JAVA: tuple[tuple[str, Trouble], ...] = (
    (r"SSL\w*Exception|PKIX path|CertificateException|CertPathBuilder", "tls"),
    (r"UnknownHostException|Unknown host|Host \S+ not found|Name or service not known", "name"),
    (r"timed out|SocketTimeoutException", "time-out"),
    (r"ConnectException|Connection refused|NoRouteToHost|Network is unreachable", "connection"),
    (r"Server access error|SocketException|Premature EOF|unexpected end of (?:stream|file)", "broken off"),
)
_AS_EXPECTED = (200, 204, 404)  # Ivy asks for files that need not be there
_WRONG_SUM = re.compile(
    r"invalid (sha1|md5): expected=(\w+) computed=(\w+)|(Checksum validation failed[^\[]*)"
)
_TOO_LARGE = re.compile(r"File too large|File size limit")
_URL = re.compile(r"(?:https?|file):[^\s'\")\]]+")
# What of the output may matter afterwards; Ivy says statuses only among thousands of other lines.
_TELLING = re.compile(
    r"(?i)status|error|not found|invalid|problem|failed|too large|proxy|exception|could not|!\S+\."
)
_NOISE = re.compile(r"\s*(?:at [\w.$/]+\(|setting '|\.{3} \d+ more)")


class Request(msgspec.Struct, frozen=True):
    """Which jars are wanted: coordinates, and what to leave out of what they need."""

    coordinates: tuple[str, ...]
    exclude: tuple[str, ...] = ()


class Delivery(NamedTuple):
    """One file that was fetched, not checked yet.

    ``published`` gives the text of the repository's checksum file for an algorithm, or None.
    """

    coordinate: Coordinate
    path: Path
    published: Callable[[str], str | None]


class Fetch(Protocol):
    """Downloads the jars of a request, or raises `FetchFailed`."""

    def __call__(self, request: Request, work: Path, progress: Progress) -> Sequence[Delivery]:
        """Return what was fetched, perhaps into `work`, a folder that goes afterwards."""


def mirror() -> str | None:
    """Return the URL of the user's own Maven repository, with its credentials; None where none is set."""
    return os.environ.get(MIRROR_VARIABLE) or None


def run(argv: Sequence[str], on_line: Callable[[str], object]) -> tuple[int, list[str]]:
    """Run a downloader, passing on each line; return its exit code and the last lines that matter.

    It can write no file of more than `MOST_BYTES`. Whatever stops this process (Ctrl-C too) stops
    the downloader first, so it cannot write into a folder that is being removed.
    """
    lines: deque[str] = deque(maxlen=400)
    bounded = ["sh", "-c", 'ulimit -f "$0" && exec "$@"', str(MOST_BYTES // _BLOCK), *argv]
    with subprocess.Popen(
        bounded,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                on_line(line)
                if _TELLING.search(line) and not _NOISE.match(line):
                    lines.append(line.rstrip())
            return process.wait(), list(lines)
        except BaseException:
            process.kill()
            raise


def explain(lines: Iterable[str], missing: re.Pattern[str]) -> FetchFailed:
    """Return why a download failed, from the downloader's output.

    `missing` finds an artifact that the repository does not have.
    """
    text = [line.strip() for line in lines if line.strip()]
    found = next(filter(None, map(_explain_line, text)), None)
    if found is not None:
        return found
    gone = sorted(
        {match[1].replace("#", ":").replace(";", ":") for line in text if (match := missing.search(line))}
    )
    if gone:
        return FetchFailed(f"the Maven repository does not have {', '.join(gone)}", MISSING_HINT)
    said = mask_urls(text[-1])[:160] if text else "without a word"
    return FetchFailed(f"the download failed ({said})", REACH_HINT)


def _explain_line(line: str) -> FetchFailed | None:
    """Return what one line says of the failure; None where it says nothing, or that a file is not there."""
    where = url[0] if (url := _URL.search(line)) else "no URL is named"
    if wrong := _WRONG_SUM.search(line):
        return FetchFailed(
            f"{mask_url(where)} does not have the checksum of the repository ({wrong[0]})", WRONG_HINT
        )
    if _TOO_LARGE.search(line):
        return FetchFailed(f"{mask_url(where)} has more than {MOST_BYTES >> 20} MiB", WRONG_HINT)
    if status := _STATUS.search(line):
        code = int(status[1])
        return None if code in _AS_EXPECTED else of_status(code, where)
    trouble = next((trouble for sign, trouble in _JAVA if re.search(sign, line)), None)
    return None if trouble is None else of_trouble(trouble, where, _said(line))


def _said(line: str) -> str:
    """Return Java's exception, or else the line without what is said elsewhere."""
    java = re.search(r"\(((?:java|javax|sun)\.[\w.]+(?:: [^()]*)?)", line)
    return mask_urls(java[1] if java else re.sub(r"^\W*(?:WARN|ERROR)\W*|\s*\burl=\S+", "", line))[:160]


def proxy_flags(proxies: Mapping[str, str] | None = None) -> list[str]:
    """Return the flags that give Java the proxy settings that Python sees in the environment.

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
