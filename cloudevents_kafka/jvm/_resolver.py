"""Finds all jars on which the artifacts of Maven coordinates depend, with the package jgo.

jgo reads the POM files of the artifacts, and applies Maven's rules. The class `Repository` downloads the POM
files, so POM files have the same login, limits and error messages as jars. This module needs the package jgo.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from jgo.maven import POM, Artifact, MavenContext, Model, Project, PythonResolver
from jgo.parse import Coordinate as JgoCoordinate

from cloudevents_kafka.jvm._checksums import published_digest
from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest
from cloudevents_kafka.jvm._progress import Progress
from cloudevents_kafka.jvm._web import REJECTED_HINT, FetchFailed, Repository
from cloudevents_kafka.primitives.plural import pluralize

_PARENTS: Final = 10_000  # steps from a POM to its parent; a repository could send POMs that form a circle
_JAR_TYPES: Final = frozenset({"jar", "bundle"})
_SCOPES: Final = frozenset({None, "compile", "runtime"})


def resolve_request(request: JarRequest, repository: Repository, progress: Progress) -> list[Coordinate]:
    """Return the requested jars and all jars that they need at run time, in sorted order.

    Raises `FetchFailed` if a POM file is missing or invalid.
    """
    try:
        with TemporaryDirectory(prefix="cloudevents-kafka-") as folder:
            return _resolve(request, _PomReader(repository, progress), Path(folder))
    except FetchFailed:
        raise
    except Exception as error:
        reason = f"the POM files of {', '.join(request.coordinates)} cannot be resolved"
        raise FetchFailed(f"{reason} ({type(error).__name__}: {error})", REJECTED_HINT) from error


def _resolve(request: JarRequest, reader: _PomReader, folder: Path) -> list[Coordinate]:
    context = _Context(resolver=reader, repo_cache=folder, remote_repos={})
    excluded = [context.project(*text.split(":")) for text in request.exclude]
    # raw: the POM of a jar sets the versions of this jar's dependencies only, as in Maven.
    wanted = []
    for group, artifact, version in (text.split(":") for text in request.coordinates):
        jgo_coordinate = JgoCoordinate(group, artifact, version, raw=True)
        wanted.append(context.create_dependency(jgo_coordinate, excluded))
    direct, transitive = reader.resolve(wanted)
    found = [*direct, *transitive]
    for dependency in found:
        # jgo ignores errors in a POM; building the POM's model again raises them.
        Model(dependency.artifact.component.pom(), context)
    return sorted(
        {_coordinate(jar.artifact) for jar in found if jar.type in _JAR_TYPES and jar.scope in _SCOPES}
    )


def _coordinate(artifact: Artifact) -> Coordinate:
    return Coordinate(artifact.groupId, artifact.artifactId, artifact.version, artifact.classifier or "")


class _PomReader(PythonResolver):
    """A subclass of jgo's resolver that reads POM files with this package's `Repository`."""

    def __init__(self, repository: Repository, progress: Progress) -> None:
        super().__init__()
        self._repository = repository
        self._progress = progress
        self._count = 0

    def download(self, artifact: Artifact) -> Path:
        """Write a POM file and return its path; raise `ValueError` if its SHA-1 is not the published one."""
        pom = _coordinate(artifact).pom_path
        content = self._repository.read(pom)
        expected = published_digest(self._repository, pom, "sha1")  # some repositories publish none
        actual = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        if actual != (expected or actual):
            raise ValueError(f"the SHA-1 of {pom} must be {expected}, got {actual}")
        path: Path = artifact.context.repo_cache / pom
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._count += 1
        self._progress.update(f"jars: {pluralize(self._count, 'POM file')} read, now {path.name}")
        return path


class _Project(Project):
    """A subclass of jgo's project that refuses the versions RELEASE and LATEST, which need a request."""

    def update(self, max_age: int | None = None) -> None:  # noqa: ARG002  # jgo's signature
        """Raise ValueError, because the versions RELEASE and LATEST are not supported."""
        raise ValueError(f"the version of {self} must be fixed")


class _Context(MavenContext):
    """A subclass of jgo's context that limits the number of parent POM files."""

    _steps = 0

    def project(self, groupId: str, artifactId: str) -> Project:  # noqa: N803  # jgo's names
        return _Project(self, groupId, artifactId)

    def pom_parent(self, pom: POM) -> POM | None:
        self._steps += 1
        if self._steps > _PARENTS:
            raise RecursionError("too many parents")
        return super().pom_parent(pom)
