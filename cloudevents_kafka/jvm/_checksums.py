"""Checksums of jars, and the check of a downloaded jar against one."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

# The algorithms that repositories publish, the strongest first. MD5 is too weak.
ALGORITHMS: Final = ("sha512", "sha256", "sha1")
CHECKSUM_LIMIT: Final = 1 << 16  # bytes of a checksum file
_START: Final = 512  # bytes in which an HTML page is recognized
_HTML: Final = (b"<!doctype html", b"<html", b"<head", b"<body")


class BadJar(Exception):
    """A downloaded file is not the requested jar."""


class Checksum(msgspec.Struct, frozen=True):
    """A checksum in hexadecimal; `origin` is "package" or "repository"."""

    algorithm: str
    digest: str
    origin: str

    def __str__(self) -> str:
        return f"{self.algorithm} of the {self.origin}"


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def published_checksum(read: Callable[[str], bytes | None]) -> Checksum | None:
    """Return the strongest checksum that a repository publishes, or None.

    `read` returns the checksum file of an algorithm, or None. Raises `BadJar` for a file without a checksum.
    """
    for algorithm in ALGORITHMS:
        text = read(algorithm)
        if text is not None:
            return Checksum(algorithm, parse(text.decode("utf-8", "replace"), algorithm), "repository")
    return None


def parse(text: str, algorithm: str) -> str:
    """Return the digest in a checksum file: alone, before a file name, or after ``=``."""
    length = hashlib.new(algorithm, usedforsecurity=False).digest_size * 2
    found = re.findall(rf"(?<![0-9A-Za-z])[0-9A-Fa-f]{{{length}}}(?![0-9A-Za-z])", text)
    if len({digest.lower() for digest in found}) != 1:
        raise BadJar(f"its .{algorithm} file must have one checksum, got {len(found)}")
    return str(found[0]).lower()


def check_jar(path: Path, checksum: Checksum) -> None:
    """Raise `BadJar` if a file is not a complete zip archive or has another checksum."""
    _check_zip(path)
    digest = file_digest(path, checksum.algorithm)
    if digest != checksum.digest:
        name = checksum.algorithm.upper().replace("SHA", "SHA-")
        raise BadJar(
            f"its {name} must be {checksum.digest}, as in the {checksum.origin}, got {digest}: "
            "the file was changed on the way or in the repository"
        )


def _check_zip(path: Path) -> None:
    size = path.stat().st_size
    if size == 0:
        raise BadJar("it is empty (0 bytes)")
    with path.open("rb") as file:
        start = file.read(_START).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(_HTML):
        raise BadJar(f"it is an HTML page ({size} bytes): a proxy or a login page answered instead")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise BadJar(f"it is not a complete zip archive ({size} bytes; {error})") from None
    if not entries:
        raise BadJar(f"it is a zip archive without entries ({size} bytes)")
