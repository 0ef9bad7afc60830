"""Checksums of jars, and the check of a downloaded jar against one."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

from cloudevents_kafka.jvm._coordinates import Coordinate, pinned_checksums
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE, FetchFailed, FileMissing, Repository

# The algorithms that repositories publish, the strongest first. MD5 is too weak.
ALGORITHMS: Final = ("sha512", "sha256", "sha1")
_START: Final = 512  # bytes in which an HTML page is recognized
_HTML: Final = (b"<!doctype html", b"<html", b"<head", b"<body")


class BadJar(Exception):
    """A downloaded file is not the requested jar."""


class Checksum(NamedTuple):
    """A checksum in hexadecimal; `origin` is "package" or "repository"."""

    algorithm: str
    digest: str
    origin: str


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def find_checksum(coordinate: Coordinate, repository: Repository) -> Checksum:
    """Return the SHA-256 that the package lists for a jar, else the strongest that the repository publishes.

    Raises `FetchFailed` if there is none, and `BadJar` for a checksum file without a checksum.
    """
    if coordinate in pinned_checksums():
        return Checksum("sha256", pinned_checksums()[coordinate], "package")
    for algorithm in ALGORITHMS:
        digest = published_digest(repository, coordinate.path, algorithm)
        if digest is not None:
            return Checksum(algorithm, digest, "repository")
    raise FetchFailed(
        f"the Maven repository has no checksum of {coordinate}: no .sha512, .sha256 or .sha1 file",
        f"A jar without a checksum is not used. Set {MIRROR_VARIABLE} to a repository that has one.",
    )


def published_digest(repository: Repository, path: str, algorithm: str) -> str | None:
    """Return the digest that a repository publishes for a file, or None.

    A checksum file has the digest alone, before a file name, or after ``=``.
    """
    try:
        text = repository.read(f"{path}.{algorithm}").decode("utf-8", "replace")
    except FileMissing:
        return None
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
