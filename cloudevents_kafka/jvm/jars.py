"""Turn Maven coordinates into jar files in the cache: fetched once, checked on each use."""

from __future__ import annotations

import hashlib
import shutil
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cloudevents_kafka.jvm import ivy, manifest, maven, sums
from cloudevents_kafka.jvm.answers import MIRROR_VARIABLE, MISSING_HINT, WRONG_HINT
from cloudevents_kafka.jvm.cache import building, cache_folder, locked
from cloudevents_kafka.jvm.checking import BadFile, check_jar
from cloudevents_kafka.jvm.coordinates import Coordinate, check_exclusion
from cloudevents_kafka.jvm.errors import FetchFailed, NoJars, PlainHttp
from cloudevents_kafka.jvm.fetch import Delivery, Fetch, Request, mirror
from cloudevents_kafka.jvm.progress import Progress
from cloudevents_kafka.redaction import mask_url


def resolve(coordinates: Sequence[str], *, exclude: Sequence[str] = ()) -> list[Path]:
    """Return the jars of `coordinates` and all they need, sorted by name.

    A coordinate is ``group:artifact:version``, an exclusion ``group:artifact``; ValueError for
    what is none. Each jar was compared with a checksum, of this package or of the repository
    (see `sums`). Jars found damaged are fetched again. Two processes may ask at once. Raises
    `NoJars` when they are neither cached nor to be had, or have no checksum; `NoJava` when
    there is no Java to fetch them with. Warns with `PlainHttp` of a repository without TLS.
    """
    wanted = tuple(str(Coordinate.parse(text)) for text in coordinates)
    if not wanted:
        raise ValueError("no Maven coordinate: give one at least, as group:artifact:version")
    request = Request(wanted, tuple(sorted(map(check_exclusion, exclude))))
    folder = cache_folder() / "jars" / folder_name(request)
    return _cached(request, folder) or _fetched(request, folder)


def folder_name(request: Request) -> str:
    """Name the cache entry of a request: readable, and distinct for each request."""
    first = Coordinate.parse(request.coordinates[0])
    digest = hashlib.sha256(msgspec.json.encode(request)).hexdigest()
    return f"{first.artifact}-{first.version}-{digest[:8]}"


def _cached(request: Request, folder: Path) -> list[Path]:
    """Return the jars of a whole folder; nothing if it is absent or damaged."""
    found = manifest.read(folder)
    if found is None or _damage(request, folder, found) is not None:
        return []
    return [folder / jar.name for jar in found.jars]


def _fetched(request: Request, folder: Path) -> list[Path]:
    progress = Progress()
    with (
        progress,
        locked(folder, waiting=lambda: progress.say(f"jars: another process fetches {folder.name}")),
    ):
        # While this process waited, another one may have done the work.
        if not _cached(request, folder):
            _tell_damage(request, folder, progress)
            _fetch(request, folder, progress)
        return _cached(request, folder)


def _tell_damage(request: Request, folder: Path, progress: Progress) -> None:
    found = manifest.read(folder)
    if found is not None:
        progress.say(f"jars: {folder.name}: {_damage(request, folder, found)}; fetching all again")


def _damage(request: Request, folder: Path, found: manifest.Manifest) -> str | None:
    if (found.coordinates, found.exclude) != (request.coordinates, request.exclude):
        return "the manifest is that of other coordinates"
    return manifest.damage(folder, found)


def _fetch(request: Request, folder: Path, progress: Progress) -> None:
    began = time.monotonic()
    progress.say(f"jars: fetching {', '.join(request.coordinates)} and what they need")
    _warn_of_http()
    with building(folder) as scratch:
        work = scratch.with_name(f"{scratch.name}-work")  # goes with the next try if this one is killed
        work.mkdir(mode=0o700)
        try:
            jars = _taken(choose_fetch()(request, work, progress), scratch)
        except FetchFailed as error:
            raise NoJars(request.coordinates, folder, error.reason, error.hint) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
        if not jars:
            raise NoJars(request.coordinates, folder, "the repository gave no jar for them", MISSING_HINT)
        manifest.write(scratch, manifest.Manifest(request.coordinates, request.exclude, jars))
    size = sum(jar.size for jar in jars) / 1e6
    progress.say(
        f"jars: {len(jars)} jars, {size:.0f} MB, in {time.monotonic() - began:.0f} s; kept in {folder}"
    )


def _warn_of_http() -> None:
    root = mirror() or ""
    if root.lower().startswith("http:"):
        warnings.warn(
            f"the Maven repository {mask_url(root)} is read by http: whoever is on the way can change "
            f"what it sends, but for the jars whose checksums this package has; give an https URL in "
            f"{MIRROR_VARIABLE}",
            PlainHttp,
            stacklevel=5,  # whoever called resolve
        )


def _taken(deliveries: Sequence[Delivery], folder: Path) -> tuple[manifest.Jar, ...]:
    """Check what was fetched and copy it into a folder; return what is there, sorted by name."""
    taken = {delivery.coordinate.file_name: _take(delivery, folder) for delivery in deliveries}
    if len(taken) != len({delivery.coordinate for delivery in deliveries}):
        raise FetchFailed("two of the jars that they need have one name", "Ask for them one at a time.")
    return tuple(taken[name] for name in sorted(taken))


def _take(delivery: Delivery, folder: Path) -> manifest.Jar:
    coordinate = delivery.coordinate
    try:
        wanted = sums.wanted(coordinate, delivery.published)
        if wanted is None:
            raise FetchFailed(
                f"the Maven repository has no checksum of {coordinate}: no .sha512, .sha256 or .sha1 file",
                f"No jar is taken without one. Set {MIRROR_VARIABLE} to the URL of a repository that has it.",
            )
        check_jar(delivery.path, wanted)
    except (ValueError, BadFile) as error:
        raise FetchFailed(f"what the Maven repository sent as {coordinate} {error}", WRONG_HINT) from None
    path = folder / coordinate.file_name
    shutil.copyfile(delivery.path, path)
    return manifest.describe(path, str(coordinate), f"{wanted.algorithm} of the {wanted.origin}")


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
