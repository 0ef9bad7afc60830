"""Resolve Maven coordinates to the list of jars that they depend on, by jgo.

jgo reads the POM files and applies Maven's rules. All that it reads goes through `_web.copy`, so that
the login, the limits and the error messages are the same as for jars. Needs the package jgo.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from jgo.maven import POM, Artifact, Dependency, MavenContext, Model, Project, PythonResolver
from jgo.parse import Coordinate as JgoCoordinate

from cloudevents_kafka.jvm import _web
from cloudevents_kafka.jvm._checksums import CHECKSUM_LIMIT, parse
from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest
from cloudevents_kafka.jvm._errors import FetchFailed
from cloudevents_kafka.jvm._failures import REJECTED_HINT, status_error
from cloudevents_kafka.jvm._progress import Progress
from cloudevents_kafka.jvm._repository import Repository

POM_LIMIT: Final = 1 << 22  # bytes of a POM file
_PARENTS: Final = 10_000  # steps from a POM to its parent; a repository could send a circle
_JAR_TYPES: Final = frozenset({"jar", "bundle"})


def resolve_request(
    request: JarRequest, repository: Repository, folder: Path, progress: Progress
) -> list[Coordinate]:
    """Return the requested jars and their runtime dependencies, sorted; `folder` receives the POM files.

    Raises `FetchFailed` if a POM file is missing or invalid.
    """
    context = _Context(resolver=_PomReader(repository, progress), repo_cache=folder, remote_repos={})
    excluded = [context.project(*text.split(":")) for text in request.exclude]
    wanted = [context.create_dependency(_jgo_coordinate(text), excluded) for text in request.coordinates]
    try:
        direct, transitive = context.resolver.resolve(wanted)
        for dependency in [*direct, *transitive]:
            # jgo ignores a POM with errors; building its model again raises them.
            Model(dependency.artifact.component.pom(), context)
        return sorted({_coordinate(item.artifact) for item in [*direct, *transitive] if _is_needed(item)})
    except FetchFailed:
        raise
    except Exception as error:
        raise FetchFailed(
            f"the POM files of {', '.join(request.coordinates)} cannot be resolved "
            f"({type(error).__name__}: {error})",
            REJECTED_HINT,
        ) from error


def _jgo_coordinate(text: str) -> JgoCoordinate:
    group, artifact, version = text.split(":")
    # raw: its POM manages the versions of its own dependencies only, as in Maven.
    return JgoCoordinate(group, artifact, version, raw=True)


def _is_needed(dependency: Dependency) -> bool:
    return dependency.type in _JAR_TYPES and dependency.scope in {None, "compile", "runtime"}


def _coordinate(artifact: Artifact) -> Coordinate:
    return Coordinate(artifact.groupId, artifact.artifactId, artifact.version, artifact.classifier or "")


class _PomReader(PythonResolver):
    """jgo's resolver, reading POM files from our repository."""

    def __init__(self, repository: Repository, progress: Progress) -> None:
        super().__init__()
        self._repository = repository
        self._progress = progress
        self._count = 0

    def download(self, artifact: Artifact) -> Path:
        """Return the path of a POM file after writing it there."""
        pom = _coordinate(artifact).pom_path
        url = self._repository.url_of(pom)
        content = _web.read(url, self._repository.login, limit=POM_LIMIT)
        if content is None:
            raise status_error(404, url)
        self._check(content, url)
        path = artifact.context.repo_cache / pom
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._count += 1
        self._progress.step(f"jars: {self._count} POM files read, now {path.name}")
        return path

    def _check(self, content: bytes, url: str) -> None:
        """Raise an error if the repository publishes another SHA-1; some publish none for POM files."""
        text = _web.read(f"{url}.sha1", self._repository.login, limit=CHECKSUM_LIMIT)
        if text is None:
            return
        expected = parse(text.decode("utf-8", "replace"), "sha1")
        actual = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        if actual != expected:
            raise ValueError(f"the SHA-1 of {url} must be {expected}, got {actual}")


class _Project(Project):
    """jgo's project without the versions RELEASE and LATEST, for which jgo would use the network."""

    def update(self, max_age: int | None = None) -> None:  # noqa: ARG002  # jgo's signature
        """Raise ValueError."""
        raise ValueError(f"the version of {self} must be fixed")


class _Context(MavenContext):
    """jgo's context with a limit on the number of parents."""

    _steps = 0

    def project(self, groupId: str, artifactId: str) -> Project:  # noqa: N803  # jgo's names
        return _Project(self, groupId, artifactId)

    def pom_parent(self, pom: POM) -> POM | None:
        self._steps += 1
        if self._steps > _PARENTS:
            raise RecursionError("too many parents")
        return super().pom_parent(pom)
