"""Turn Maven coordinates into jar files in the cache: fetched once, checked on each use."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cloudevents_kafka.jvm import ivy, manifest, maven
from cloudevents_kafka.jvm.cache import building, cache_folder, locked
from cloudevents_kafka.jvm.errors import NoJars
from cloudevents_kafka.jvm.fetch import MISSING_HINT, Fetch, FetchFailed, Request
from cloudevents_kafka.jvm.progress import Progress


def resolve(coordinates: Sequence[str], *, exclude: Sequence[str] = ()) -> list[Path]:
    """Give the jars of `coordinates` and all they need, sorted by name.

    A coordinate is ``group:artifact:version``, an exclusion ``group:artifact``.
    Jars found damaged are fetched again. Two processes may ask at once. Raises
    `NoJars` when they are neither cached nor to be had, `NoJava` when there is
    no Java to fetch them with.
    """
    request = Request(tuple(coordinates), tuple(sorted(exclude)))
    folder = cache_folder() / "jars" / folder_name(request)
    return _cached(folder) or _fetched(request, folder)


def folder_name(request: Request) -> str:
    """Name the cache entry of a request: readable, and distinct for each request."""
    _, artifact, version = split(request.coordinates[0])
    digest = hashlib.sha256(msgspec.json.encode(request)).hexdigest()
    return f"{artifact}-{version}-{digest[:8]}"


def split(coordinate: str) -> tuple[str, str, str]:
    """Split ``group:artifact:version``; ValueError if it is not that."""
    match coordinate.split(":"):
        case [group, artifact, version] if group and artifact and version:
            return group, artifact, version
    raise ValueError(f"not a Maven coordinate: {coordinate!r}; write group:artifact:version")


def _cached(folder: Path) -> list[Path]:
    """Give the jars of a whole folder; nothing if it is absent or damaged."""
    found = manifest.read(folder)
    if found is None or manifest.damage(folder, found) is not None:
        return []
    return [folder / jar.name for jar in found.jars]


def _fetched(request: Request, folder: Path) -> list[Path]:
    progress = Progress()
    with (
        progress,
        locked(folder, waiting=lambda: progress.say(f"jars: another process fetches {folder.name}")),
    ):
        # While this process waited, another one may have done the work.
        if not _cached(folder):
            _tell_damage(folder, progress)
            _fetch(request, folder, progress)
        return _cached(folder)


def _tell_damage(folder: Path, progress: Progress) -> None:
    found = manifest.read(folder)
    if found is not None:
        progress.say(f"jars: {folder.name}: {manifest.damage(folder, found)}; fetching all again")


def _fetch(request: Request, folder: Path, progress: Progress) -> None:
    began = time.monotonic()
    progress.say(f"jars: fetching {', '.join(request.coordinates)} and what they need")
    with building(folder) as scratch:
        try:
            choose_fetch()(request, scratch, progress)
        except FetchFailed as error:
            raise NoJars(request.coordinates, folder, error.reason, error.hint) from error
        made = manifest.write(scratch, request.coordinates, request.exclude)
        if not made.jars:
            raise NoJars(request.coordinates, folder, "the repository gave no jar for them", MISSING_HINT)
    size = sum(jar.size for jar in made.jars) / 1e6
    progress.say(
        f"jars: {len(made.jars)} jars, {size:.0f} MB, in {time.monotonic() - began:.0f} s; kept in {folder}"
    )


def choose_fetch() -> Fetch:
    """Choose who downloads: the Ivy inside PySpark, else Maven."""
    ivy_jar = ivy.find_ivy()
    if ivy_jar is not None:
        return ivy.Ivy(ivy_jar)
    program = maven.find_maven()
    if program is not None:
        return maven.Maven(program)
    raise FetchFailed(
        "neither PySpark (whose Ivy would fetch them) nor Maven is installed",
        "Do: pip install 'cloudevents-kafka[spark]', or install Maven (Debian, Ubuntu: apt install maven).",
    )
