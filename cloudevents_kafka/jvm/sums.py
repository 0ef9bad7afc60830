"""The checksums that jars must have: those of this package, else those that their repository publishes.

``sums.txt`` has the SHA-256 of each jar of Kafka, of the brokers of old, and of Spark's
connectors, as lines of ``digest  coordinate``. It was made of the jars of Maven Central, each
compared with the sum published there; ``tests/jvm/pin.py`` makes it again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from cloudevents_kafka.jvm.coordinates import Coordinate

FILE_NAME: Final = "sums.txt"
# Those that repositories publish, the strongest first; MD5 is not one of them.
ALGORITHMS: Final = ("sha512", "sha256", "sha1")
OF_PACKAGE: Final = "package"


class Sum(msgspec.Struct, frozen=True):
    """A checksum in hex, and whose word it is: the package's, or the repository's."""

    algorithm: str
    digest: str
    origin: str

    def of(self, path: Path) -> str:
        """Return the checksum that a file has."""
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, self.algorithm).hexdigest()


@cache
def pinned() -> Mapping[str, str]:
    """Return the SHA-256 of each jar that the package knows, by coordinate."""
    text = (files("cloudevents_kafka.jvm") / FILE_NAME).read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {coordinate: digest for digest, coordinate in rows}


@cache
def pinned_by_name() -> Mapping[str, frozenset[str]]:
    """Return the same by name of file, of which two coordinates may have one."""
    found: dict[str, set[str]] = {}
    for text, digest in pinned().items():
        group, artifact, version, *classifier = text.split(":")
        name = Coordinate(group, artifact, version, *classifier).file_name
        found.setdefault(name, set()).add(digest)
    return {name: frozenset(digests) for name, digests in found.items()}


def wanted(coordinate: Coordinate, published: Callable[[str], str | None]) -> Sum | None:
    """Return the sum that a jar must have; None where there is none at all.

    `published` gives the text of the repository's checksum file for an algorithm, or None.
    Raises ValueError for a text that is no checksum.
    """
    ours = pinned().get(str(coordinate))
    if ours is not None:
        return Sum("sha256", ours, OF_PACKAGE)
    for algorithm in ALGORITHMS:
        text = published(algorithm)
        if text is not None:
            return Sum(algorithm, parse(text, algorithm), "repository")
    return None


def parse(text: str, algorithm: str) -> str:
    """Return the digest in a checksum file: alone, before a name, or behind ``=``; ValueError if none is."""
    length = hashlib.new(algorithm, usedforsecurity=False).digest_size * 2
    found = re.findall(rf"(?<![0-9A-Za-z])[0-9A-Fa-f]{{{length}}}(?![0-9A-Za-z])", text)
    if len(set(map(str.lower, found))) != 1:
        raise ValueError(f"its .{algorithm} file has {len(found)} checksums; it must have one")
    return str(found[0]).lower()
