"""Jar files for Maven coordinates: downloaded once into the cache, checked on each use."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from cloudevents_kafka.jvm import _web
from cloudevents_kafka.jvm._cache import building, cache_folder, locked
from cloudevents_kafka.jvm._checksums import (
    CHECKSUM_LIMIT,
    BadJar,
    Checksum,
    check_jar,
    file_digest,
    published_checksum,
)
from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest
from cloudevents_kafka.jvm._errors import FetchFailed, NoJars, PlainHttp
from cloudevents_kafka.jvm._failures import MIRROR_VARIABLE, REJECTED_HINT, status_error
from cloudevents_kafka.jvm._jar_sets import listed_jars, pinned_checksums
from cloudevents_kafka.jvm._progress import Progress
from cloudevents_kafka.jvm._repository import JGO_HINT, Repository, find_repository
from cloudevents_kafka.redaction import mask_url

MANIFEST: Final = "manifest.json"
JAR_LIMIT: Final = 1 << 29  # bytes of a jar


class _Jar(msgspec.Struct, frozen=True):
    coordinate: str
    sha256: str
    checked: str  # such as "sha1 of the repository"


class _Manifest(msgspec.Struct, frozen=True):
    """The request and the jars of a folder; the list of a named set replaces it."""

    coordinates: tuple[str, ...]
    exclude: tuple[str, ...]
    jars: tuple[_Jar, ...]


def resolve(coordinates: Sequence[str], *, exclude: Sequence[str] = ()) -> list[Path]:
    """Return the jars of `coordinates` and of all that they depend on, sorted by name.

    A coordinate is ``group:artifact:version``, an exclusion ``group:artifact``; others raise
    ValueError. The jars are read from the cache, or else downloaded: a named set (see `jar_sets`)
    from its list; the dependencies of others are resolved by jgo. Each jar must have the SHA-256
    that the package lists, or else the checksum that the repository publishes. Damaged jars are
    downloaded again. Several processes may call this at once.

    Raises `NoJars` if the download fails. Warns with `PlainHttp` if the repository has no TLS.
    """
    request = JarRequest.create(coordinates, exclude)
    folder = cache_folder() / "jars" / request.folder_name
    return _cached(request, folder) or _fetch_once(request, folder)


def _cached(request: JarRequest, folder: Path) -> list[Path]:
    """Return the jars in a folder if all are there and undamaged, else an empty list."""
    return [] if _problem(request, folder) else sorted(folder / name for name in _expected(request, folder))


def _problem(request: JarRequest, folder: Path) -> str | None:
    """Return what is missing or damaged in a folder, or None."""
    expected = _expected(request, folder)
    if not expected:
        return f"{MANIFEST} is missing or describes other coordinates"
    for name, digest in expected.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if file_digest(path) != digest:
            return f"the SHA-256 of {name} must be {digest}"
    return None


def _expected(request: JarRequest, folder: Path) -> Mapping[str, str]:
    """Return the SHA-256 of each jar by file name: from the named set, or from the manifest in the folder."""
    listed = listed_jars(request)
    if listed is not None:
        return {coordinate.file_name: digest for coordinate, digest in listed.items()}
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Manifest)
        if JarRequest(manifest.coordinates, manifest.exclude) != request:
            return {}
        return dict(_recorded(jar) for jar in manifest.jars)
    except (OSError, ValueError, TypeError):
        return {}


def _recorded(jar: _Jar) -> tuple[str, str]:
    """Return the file name and the SHA-256 of a jar in a manifest; the package's SHA-256 comes first."""
    coordinate = Coordinate(*jar.coordinate.split(":"))
    return coordinate.file_name, pinned_checksums().get(coordinate, jar.sha256)


def _fetch_once(request: JarRequest, folder: Path) -> list[Path]:
    with (
        Progress() as progress,
        locked(folder, waiting=lambda: progress.say(f"jars: another process fetches {folder.name}")),
    ):
        # Another process may have fetched them while this one waited.
        problem = _problem(request, folder)
        if problem:
            if folder.exists():
                progress.say(f"jars: {folder.name}: {problem}; fetching all again")
            try:
                _fetch(request, folder, progress)
            except FetchFailed as error:
                raise NoJars(request.coordinates, folder, error.reason, error.hint) from error
        return _cached(request, folder)


def _fetch(request: JarRequest, folder: Path, progress: Progress) -> None:
    started = time.monotonic()
    progress.say(f"jars: fetching {', '.join(request.coordinates)} and their dependencies")
    repository = find_repository()
    _warn_of_http(repository)
    with building(folder) as scratch:
        coordinates = listed_jars(request) or _resolve(request, repository, scratch / "poms", progress)
        jars = _download_all(coordinates, repository, scratch, progress)
        manifest = _Manifest(request.coordinates, request.exclude, jars)
        (scratch / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        megabytes = sum(path.stat().st_size for path in scratch.glob("*.jar")) / 1e6
    seconds = time.monotonic() - started
    progress.say(f"jars: {len(jars)} jars, {megabytes:.0f} MB, in {seconds:.0f} s; kept in {folder}")


def _warn_of_http(repository: Repository) -> None:
    if repository.url.lower().startswith("http:"):
        warnings.warn(
            f"the Maven repository {mask_url(repository.url)} is read by http: its answers can be changed on "
            f"the way, except for the jars whose checksums this package has; use an https URL in "
            f"{MIRROR_VARIABLE}",
            PlainHttp,
            stacklevel=5,  # the caller of resolve
        )


def _resolve(
    request: JarRequest, repository: Repository, folder: Path, progress: Progress
) -> list[Coordinate]:
    try:
        from cloudevents_kafka.jvm._resolver import resolve_request
    except ImportError:
        raise FetchFailed(
            "the package jgo 3, which resolves Maven coordinates, is not installed", f"{JGO_HINT}."
        ) from None
    try:
        return resolve_request(request, repository, folder, progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download_all(
    coordinates: Iterable[Coordinate], repository: Repository, folder: Path, progress: Progress
) -> tuple[_Jar, ...]:
    by_name: dict[str, Coordinate] = {}
    for coordinate in coordinates:
        other = by_name.setdefault(coordinate.file_name, coordinate)
        if other != coordinate:
            raise FetchFailed(
                f"{other} and {coordinate} have the same file name", "Request them one at a time."
            )
    jars: list[_Jar] = []
    for name, coordinate in by_name.items():
        show = partial(progress.step, f"jars: {len(jars)} of {len(by_name)} fetched, now {name}")
        jars.append(_download(coordinate, repository, folder, show))
    return tuple(jars)


def _download(coordinate: Coordinate, repository: Repository, folder: Path, show: partial[None]) -> _Jar:
    """Write a jar into a folder and check it."""
    url, path = repository.url_of(coordinate.path), folder / coordinate.file_name
    with path.open("wb") as file:
        if not _web.copy(url, file, repository.login, limit=JAR_LIMIT, on_block=show):
            raise status_error(404, url)
    try:
        checksum = _checksum(coordinate, repository, url)
        check_jar(path, checksum)
    except BadJar as error:
        reason = f"the Maven repository sent a wrong file as {coordinate}: {error}"
        raise FetchFailed(reason, REJECTED_HINT) from None
    return _Jar(str(coordinate), file_digest(path), str(checksum))


def _checksum(coordinate: Coordinate, repository: Repository, url: str) -> Checksum:
    if coordinate in pinned_checksums():
        return Checksum("sha256", pinned_checksums()[coordinate], "package")
    published = published_checksum(
        lambda algorithm: _web.read(f"{url}.{algorithm}", repository.login, limit=CHECKSUM_LIMIT)
    )
    if published is None:
        raise FetchFailed(
            f"the Maven repository has no checksum of {coordinate}: no .sha512, .sha256 or .sha1 file",
            f"A jar without a checksum is not used. Set {MIRROR_VARIABLE} to a repository that has one.",
        )
    return published
