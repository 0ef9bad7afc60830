"""Maven coordinates, and requests for the jars of some.

The parts of a coordinate become names of files and folders. A pattern bounds them: no ``/``,
no ``..``, no wildcard and no range of versions, at most 100 characters.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final, Self

import msgspec

_WORD: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_.+-]{0,98}[A-Za-z0-9_-])?"
_PART: Final = re.compile(rf"(?!.*\.\.){_WORD}")
_RULE: Final = (
    "write group:artifact:version, each of letters, digits, '.', '_' and '-' (in a version '+' too), "
    "at most 100 characters, without '..'"
)


class Coordinate(msgspec.Struct, frozen=True, order=True):
    """A jar in a Maven repository. Raises ValueError if a part does not match the pattern."""

    group: str
    artifact: str
    version: str
    classifier: str = ""

    def __post_init__(self) -> None:
        parts = (self.group, self.artifact, self.version, *([self.classifier] if self.classifier else ()))
        if not all(map(_PART.fullmatch, parts)):
            raise ValueError(f"not a Maven coordinate: {str(self)!r}; {_RULE}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the coordinate for ``group:artifact:version``; raise ValueError for other texts."""
        parts = text.split(":")
        if len(parts) != 3:
            raise ValueError(f"not a Maven coordinate: {text!r}; {_RULE}")
        return cls(*parts)

    @property
    def file_name(self) -> str:
        """The name of the file, such as ``kafka-clients-4.3.1.jar``."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.jar"

    @property
    def path(self) -> str:
        """The path of the file in a repository."""
        return f"{self._folder}/{self.file_name}"

    @property
    def pom_path(self) -> str:
        """The path of its POM file in a repository."""
        return f"{self._folder}/{self.artifact}-{self.version}.pom"

    @property
    def _folder(self) -> str:
        return "/".join((*self.group.split("."), self.artifact, self.version))

    def __str__(self) -> str:
        """Return ``group:artifact:version[:classifier]``."""
        classifier = f":{self.classifier}" if self.classifier else ""
        return f"{self.group}:{self.artifact}:{self.version}{classifier}"


class JarRequest(msgspec.Struct, frozen=True):
    """Coordinates of jars, and the exclusions, sorted, from what they depend on."""

    coordinates: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    @classmethod
    def create(cls, coordinates: Sequence[str], exclude: Sequence[str] = ()) -> Self:
        """Return a request; raise ValueError for an invalid coordinate or exclusion, or no coordinate."""
        if not coordinates:
            raise ValueError("coordinates must have one item or more, got none; add group:artifact:version")
        names = tuple(str(Coordinate.parse(text)) for text in coordinates)
        return cls(names, tuple(sorted(map(_check_exclusion, exclude))))

    @property
    def folder_name(self) -> str:
        """The name of the request's folder in the cache, with a hash of the request."""
        first = Coordinate.parse(self.coordinates[0])
        digest = hashlib.sha256(msgspec.json.encode(self)).hexdigest()
        return f"{first.artifact}-{first.version}-{digest[:8]}"


def _check_exclusion(text: str) -> str:
    parts = text.split(":")
    if len(parts) != 2 or not all(map(_PART.fullmatch, parts)):
        raise ValueError(f"not an exclusion: {text!r}; write group:artifact")
    return text
