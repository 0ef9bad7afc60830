"""Maven coordinates: what they may be, and where their files are in a repository.

Names become names of files and folders, so a pattern bounds them: no ``/``, no ``..``, no
wildcard or range of versions, and no more characters than a file's name takes.
"""

from __future__ import annotations

import re
from typing import Final, Self

import msgspec

_WORD: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_.+-]{0,98}[A-Za-z0-9_-])?"
_PART: Final = re.compile(rf"(?!.*\.\.){_WORD}")
_EXTENSION: Final = re.compile(r"[A-Za-z0-9]{1,16}")
_RULE: Final = (
    "write group:artifact:version, each of letters, digits, '.', '_' and '-' (in a version '+' too), "
    "100 characters at most, and never '..'"
)


class Coordinate(msgspec.Struct, frozen=True, order=True):
    """One file in a Maven repository; raises ValueError for names that cannot be."""

    group: str
    artifact: str
    version: str
    classifier: str = ""
    extension: str = "jar"

    def __post_init__(self) -> None:
        names = (self.group, self.artifact, self.version, *([self.classifier] if self.classifier else ()))
        if not all(map(_PART.fullmatch, names)) or _EXTENSION.fullmatch(self.extension) is None:
            raise ValueError(f"not a Maven coordinate: {str(self)!r}; {_RULE}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``group:artifact:version``, of a jar; ValueError if it is not that."""
        match text.split(":"):
            case [group, artifact, version]:
                return cls(group, artifact, version)
        raise ValueError(f"not a Maven coordinate: {text!r}; {_RULE}")

    @property
    def file_name(self) -> str:
        """The name of the file: ``kafka-clients-4.3.1.jar``."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.extension}"

    @property
    def path(self) -> str:
        """The path of the file in a repository."""
        return "/".join((*self.group.split("."), self.artifact, self.version, self.file_name))

    def __str__(self) -> str:
        """Return ``group:artifact:version``, and ``:classifier`` and ``@extension`` where there are such."""
        classifier = f":{self.classifier}" if self.classifier else ""
        extension = f"@{self.extension}" if self.extension != "jar" else ""
        return f"{self.group}:{self.artifact}:{self.version}{classifier}{extension}"


def check_exclusion(text: str) -> str:
    """Return an exclusion, ``group:artifact``; ValueError if it is not that."""
    parts = text.split(":")
    if len(parts) != len(("group", "artifact")) or not all(map(_PART.fullmatch, parts)):
        raise ValueError(f"not an exclusion: {text!r}; write group:artifact")
    return text
