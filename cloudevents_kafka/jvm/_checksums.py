"""Checksums of jars, and the comparison of downloaded jars with these checksums."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path
from typing import Final

from cloudevents_kafka.jvm._coordinates import Coordinate, pinned_checksums
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE, FetchFailed, FileMissing, Repository
from cloudevents_kafka.primitives.plural import pluralize

# The algorithms that repositories publish, the strongest first. MD5 is too weak.
ALGORITHMS: Final = ("sha512", "sha256", "sha1")
_START: Final = 512  # bytes in which an HTML page is recognized
_HTML: Final = (b"<!doctype html", b"<html", b"<head", b"<body")


class BadJar(Exception):
    """A downloaded file is not the jar that was requested."""


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def published_digest(repository: Repository, path: str, algorithm: str) -> str | None:
    """Return the checksum that a repository publishes for a file, or None.

    A checksum file contains only the checksum, or the checksum before a file name, or the checksum after
    ``=``.
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


def check_jar(path: Path, coordinate: Coordinate, repository: Repository) -> None:
    """Raise `BadJar` if a file is not a complete zip archive, or if its checksum is wrong.

    The checksum must be the SHA-256 that this package lists for the jar, or else the strongest checksum that
    the repository publishes. Raises `FetchFailed` if the jar has neither of the two checksums.
    """
    _check_zip(path)
    algorithm, expected, origin = _find_checksum(coordinate, repository)
    digest = file_digest(path, algorithm)
    if digest != expected:
        raise BadJar(
            f"its {algorithm.replace('sha', 'SHA-')} must be {expected}, as in the {origin}, got {digest}: "
            "the file was changed on the way or in the repository"
        )


def _find_checksum(coordinate: Coordinate, repository: Repository) -> tuple[str, str, str]:
    """Return a jar's checksum: its algorithm, its digits, and its source, "package" or "repository"."""
    if coordinate in pinned_checksums():
        return "sha256", pinned_checksums()[coordinate], "package"
    for algorithm in ALGORITHMS:
        if digest := published_digest(repository, coordinate.path, algorithm):
            return algorithm, digest, "repository"
    raise FetchFailed(
        f"the Maven repository has no checksum of {coordinate}: no .sha512, .sha256 or .sha1 file",
        f"A jar without a checksum is not used. Set {MIRROR_VARIABLE} to a repository with a checksum.",
    )


def _check_zip(path: Path) -> None:
    size = pluralize(path.stat().st_size, "byte")
    with path.open("rb") as file:
        start = file.read(_START).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(_HTML):
        raise BadJar(f"it is an HTML page ({size}): a proxy or a login page answered instead")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise BadJar(f"it is not a complete zip archive ({size}; {error})") from None
    if not entries:
        raise BadJar(f"it is a zip archive without entries ({size})")
