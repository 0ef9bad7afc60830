"""Jar files for Maven coordinates; each is downloaded to the cache once, and is checked at each use."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from cloudevents_kafka.jvm._cache import building, cache_folder, locked
from cloudevents_kafka.jvm._checksums import BadJar, check_jar, file_digest
from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest, jar_sets, pinned_checksums
from cloudevents_kafka.jvm._progress import Progress
from cloudevents_kafka.jvm._repository import JGO_HINT, find_repository
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE, REJECTED_HINT, FetchFailed, Repository
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.redaction import mask_url
from cloudevents_kafka.problems import CloudEventsKafkaError

MANIFEST: Final = "manifest.json"  # the SHA-256 of each jar in a folder, by coordinate
JAR_LIMIT: Final = 1 << 29  # bytes of a jar


class NoJars(CloudEventsKafkaError):
    """The jars of ``coordinates`` are not in the cache and cannot be downloaded.

    ``folder`` is the folder in the cache to which the missing jars belong. ``reason`` and ``hint`` contain no
    credentials.
    """

    def __init__(self, coordinates: Sequence[str], folder: Path, reason: str, hint: str) -> None:
        super().__init__(coordinates, folder, reason, hint)
        self.coordinates, self.folder, self.reason, self.hint = tuple(coordinates), folder, reason, hint

    def __str__(self) -> str:
        wanted = ", ".join(self.coordinates)
        return f"cannot fetch {wanted}: {self.reason}.\nThe jars belong in {self.folder}.\n{self.hint}"


class PlainHttp(UserWarning):
    """The Maven repository is read over http, so its answers are not protected by TLS."""


def resolve(coordinates: Sequence[str], *, exclude: Sequence[str] = ()) -> list[Path]:
    """Return the jars of ``coordinates`` and of all their dependencies, sorted by name.

    A coordinate is ``group:artifact:version``, and an exclusion is ``group:artifact``. Jars that are not in
    the cache are downloaded. The file ``jar_sets.toml`` lists all jars for some combinations of coordinates.
    For other combinations, the package jgo finds the dependencies. If this package lists the SHA-256 checksum
    of a jar, the jar must have this checksum. Any other jar must have the checksum that the repository
    publishes. Damaged jars are downloaded again. Several processes may call this function at the same time.

    Raises `NoJars` if the download fails, `CacheNotWritable` if the cache folder cannot be written, and
    `ValueError` if a coordinate or an exclusion is malformed. Warns with `PlainHttp` if the repository does
    not use TLS.
    """
    request = JarRequest.create(coordinates, exclude)
    folder = cache_folder() / "jars" / request.folder_name
    if _problem(request, folder):
        _fetch_once(request, folder)
    return sorted(folder / name for name in _expected(request, folder))


def cached(coordinates: Sequence[str], *, exclude: Sequence[str] = ()) -> list[Path] | None:
    """Return the paths of `resolve` if all jars are in the cache and undamaged, else None; never download."""
    request = JarRequest.create(coordinates, exclude)
    folder = cache_folder() / "jars" / request.folder_name
    return None if _problem(request, folder) else sorted(folder / name for name in _expected(request, folder))


def print_jars(jars: Callable[[], Iterable[Path]]) -> None:
    """Print the paths of jars on stdout. If the jars are not available, print the reason and exit."""
    try:
        sys.stdout.writelines(f"{jar}\n" for jar in jars())
    except CloudEventsKafkaError as error:
        sys.exit(str(error))


def _problem(request: JarRequest, folder: Path) -> str | None:
    """Return a description of a missing or damaged file in a folder of the cache, or None."""
    expected = _expected(request, folder)
    if not expected:
        return f"{MANIFEST} is missing or damaged"
    for name, digest in expected.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if file_digest(path) != digest:
            return f"the SHA-256 of {name} must be {digest}"
    return None


def _expected(request: JarRequest, folder: Path) -> Mapping[str, str]:
    """Return the SHA-256 of each jar file, from this package or else from the folder's ``manifest.json``."""
    jars = jar_sets().get(request)
    if jars is None:
        try:
            manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=dict[str, str])
            jars = {Coordinate(*text.split(":")): digest for text, digest in manifest.items()}
        except (OSError, ValueError, TypeError):
            return {}
    return {jar.file_name: pinned_checksums().get(jar, digest) for jar, digest in jars.items()}


def _fetch_once(request: JarRequest, folder: Path) -> None:
    with (
        Progress() as progress,
        locked(folder, waiting=lambda: progress.log(f"jars: another process fetches {folder.name}")),
    ):
        # Another process may have downloaded the jars while this process waited.
        problem = _problem(request, folder)
        if problem is None:
            return
        if folder.exists():
            progress.log(f"jars: {folder.name}: {problem}; fetching all again")
        try:
            _fetch(request, folder, progress)
        except FetchFailed as error:
            raise NoJars(request.coordinates, folder, error.reason, error.hint) from error


def _fetch(request: JarRequest, folder: Path, progress: Progress) -> None:
    started = time.monotonic()
    progress.log(f"jars: fetching {', '.join(request.coordinates)} and their dependencies")
    repository = find_repository()
    if repository.url.lower().startswith("http:"):
        warnings.warn(
            f"the Maven repository {mask_url(repository.url)} is read by http, so its answers can be changed "
            f"on the way; only the jars whose checksums this package contains are safe; use an https URL in "
            f"{MIRROR_VARIABLE}",
            PlainHttp,
            stacklevel=4,  # the caller of resolve
        )
    with building(folder) as scratch:
        coordinates = jar_sets().get(request) or _resolve(request, repository, progress)
        jars = _download_all(coordinates, repository, scratch, progress)
        (scratch / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(jars), indent=1) + b"\n")
    seconds = time.monotonic() - started
    progress.log(f"jars: {pluralize(len(jars), 'jar')} in {seconds:.0f} s; kept in {folder}")


def _resolve(request: JarRequest, repository: Repository, progress: Progress) -> list[Coordinate]:
    try:
        from cloudevents_kafka.jvm._resolver import resolve_request
    except ImportError:
        raise FetchFailed(
            "the package jgo 3, which resolves Maven coordinates, is not installed", f"{JGO_HINT}."
        ) from None
    return resolve_request(request, repository, progress)


def _download_all(
    coordinates: Iterable[Coordinate], repository: Repository, folder: Path, progress: Progress
) -> dict[str, str]:
    """Write the jars into a folder; return a dictionary from Maven coordinates to SHA-256 checksums."""
    by_name: dict[str, Coordinate] = {}
    for coordinate in coordinates:
        other = by_name.setdefault(coordinate.file_name, coordinate)
        if other != coordinate:
            raise FetchFailed(
                f"{other} and {coordinate} have the same file name", "Request these jars separately."
            )
    jars: dict[str, str] = {}
    for name, coordinate in by_name.items():
        show = partial(progress.update, f"jars: {len(jars)} of {len(by_name)} fetched, now {name}")
        jars[str(coordinate)] = download(coordinate, repository, folder, show)
    return jars


def download(coordinate: Coordinate, repository: Repository, folder: Path, show: partial[None]) -> str:
    """Write a jar into a folder, check its checksum, and return its SHA-256."""
    path = folder / coordinate.file_name
    with path.open("wb") as file:
        repository.copy(coordinate.path, file, limit=JAR_LIMIT, on_block=show)
    try:
        check_jar(path, coordinate, repository)
    except BadJar as error:
        reason = f"the Maven repository sent a wrong file as {coordinate}: {error}"
        raise FetchFailed(reason, REJECTED_HINT) from None
    return file_digest(path)
