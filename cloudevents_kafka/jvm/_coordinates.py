"""Maven coordinates, requests for jars, and for some requests the lists of the jars to download.

The parts of a Maven coordinate become names of files and folders. Therefore, a pattern limits each part of a
coordinate: ``/``, ``..``, wildcards and version ranges are not allowed, and a part has at most 100
characters.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, Self

import msgspec

FILE_NAME: Final = "jar_sets.toml"
_PART: Final = re.compile(r"(?!.*\.\.)[A-Za-z0-9_](?:[A-Za-z0-9_.+-]{0,98}[A-Za-z0-9_-])?")
_RULE: Final = (
    "a Maven coordinate must be group:artifact:version, each of letters, digits, '.', '_' and '-' "
    "(in a version '+' too), at most 100 characters, without '..'"
)


class Coordinate(msgspec.Struct, frozen=True, order=True):
    """The Maven coordinate of a jar. Raises `ValueError` if a part of it does not match the pattern."""

    group: str
    artifact: str
    version: str
    classifier: str = ""

    def __post_init__(self) -> None:
        parts = (self.group, self.artifact, self.version, self.classifier or "none")
        if not all(map(_PART.fullmatch, parts)):
            raise ValueError(f"{_RULE}, got {str(self)!r}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the Maven coordinate in ``group:artifact:version``; raise `ValueError` for another text."""
        parts = text.split(":")
        if len(parts) != 3:
            raise ValueError(f"{_RULE}, got {text!r}")
        return cls(*parts)

    @property
    def file_name(self) -> str:
        """The name of the jar file, such as ``kafka-clients-4.3.1.jar``."""
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"

    @property
    def path(self) -> str:
        """The path of the jar file in a Maven repository."""
        return f"{self._folder}/{self.file_name}"

    @property
    def pom_path(self) -> str:
        """The path of the jar's POM file in a Maven repository."""
        return f"{self._folder}/{self.artifact}-{self.version}.pom"

    @property
    def _folder(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}"

    def __str__(self) -> str:
        """Return ``group:artifact:version[:classifier]``."""
        return f"{self.group}:{self.artifact}:{self.version}:{self.classifier}".removesuffix(":")


class JarRequest(msgspec.Struct, frozen=True):
    """A request for jars: the coordinates of the jars, and the sorted dependencies to exclude."""

    coordinates: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    @classmethod
    def create(cls, coordinates: Sequence[str], exclude: Sequence[str] = ()) -> Self:
        """Return a request for jars; raise `ValueError` if it has no coordinates, or an item is invalid."""
        if not coordinates:
            raise ValueError("coordinates must have one item or more, got none; add group:artifact:version")
        for text in coordinates:
            Coordinate.parse(text)
        for text in exclude:
            parts = text.split(":")
            if len(parts) != 2 or not all(map(_PART.fullmatch, parts)):
                raise ValueError(f"an exclusion must be group:artifact, got {text!r}")
        return cls(tuple(coordinates), tuple(sorted(exclude)))

    @property
    def folder_name(self) -> str:
        """The name of the request's folder in the cache, which contains a hash of the request."""
        first = Coordinate.parse(self.coordinates[0])
        digest = hashlib.sha256(msgspec.json.encode(self)).hexdigest()
        return f"{first.artifact}-{first.version}-{digest[:8]}"


@cache
def jar_sets() -> Mapping[JarRequest, Mapping[Coordinate, str]]:
    """Return the jars, with their SHA-256 checksums, for each request that ``jar_sets.toml`` lists.

    Users of this package choose among some versions of Kafka, Spark's Kafka connector, Delta and Iceberg. The
    file ``jar_sets.toml`` lists the jars for these versions. ``tests/support/pin_jars.py`` writes the file.
    """
    text = (files("cloudevents_kafka.jvm") / FILE_NAME).read_text(encoding="utf-8")
    return {
        JarRequest.create(table["coordinates"], table.get("exclude", [])): {
            Coordinate(*jar.split(":")): digest for digest, jar in map(str.split, table["jars"])
        }
        for table in tomllib.loads(text).values()
    }


@cache
def pinned_checksums() -> Mapping[Coordinate, str]:
    """Return the SHA-256 checksums of all jars that ``jar_sets.toml`` lists."""
    return {jar: digest for jars in jar_sets().values() for jar, digest in jars.items()}
