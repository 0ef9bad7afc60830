"""The lock manifest beside fetched jars: what was asked for, and each jar's size and SHA-256.

It says too with whose sum each jar was compared. A manifest of an earlier version does not:
its jars count where the package knows their sums, else they are fetched again.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from cloudevents_kafka.jvm import sums

FILE_NAME = "manifest.json"


class Jar(msgspec.Struct, frozen=True):
    """One jar file: ``size`` in bytes, ``sha256`` in hex.

    ``checked`` names the sum that it was compared with: "sha256 of the package", "sha1 of the repository".
    """

    name: str
    size: int
    sha256: str
    coordinate: str = ""
    checked: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """What a folder of jars was made from and what it must hold."""

    coordinates: tuple[str, ...]
    exclude: tuple[str, ...]
    jars: tuple[Jar, ...]


def describe(path: Path, coordinate: str = "", checked: str = "") -> Jar:
    """Measure a jar file."""
    digest = sums.Sum("sha256", "", "").of(path)
    return Jar(path.name, path.stat().st_size, digest, coordinate, checked)


def write(folder: Path, manifest: Manifest) -> None:
    """Record what is in `folder`."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (folder / FILE_NAME).write_bytes(text + b"\n")


def read(folder: Path) -> Manifest | None:
    """Read the manifest of `folder`; None if there is none that can be read."""
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None


def damage(folder: Path, manifest: Manifest) -> str | None:
    """Say what in `folder` is not as recorded, or None; 45 MB take some 60 ms."""
    if not manifest.jars:
        return "no jar is recorded"
    for jar in manifest.jars:
        if (doubt := _doubt(jar)) is not None:
            return doubt
        path = folder / jar.name
        if not path.is_file():
            return f"{jar.name} is missing"
        if path.stat().st_size != jar.size:
            return f"{jar.name} has {path.stat().st_size} bytes, not {jar.size}"
        if describe(path).sha256 != jar.sha256:
            return f"{jar.name} is not the file that was fetched (SHA-256 differs)"
    return None


def _doubt(jar: Jar) -> str | None:
    """Return what speaks against a jar before it is looked at; someone may have written the manifest anew."""
    if Path(jar.name).name != jar.name or not jar.name.endswith(".jar"):
        return "a name in the manifest is not that of a jar"
    ours = sums.pinned().get(jar.coordinate)
    known = sums.pinned_by_name().get(jar.name, frozenset()) if ours is None else {ours}
    if jar.coordinate and ours is None:
        known = frozenset()
    if known:
        return None if jar.sha256 in known else f"{jar.name} does not have the SHA-256 that the package knows"
    return None if jar.checked else f"{jar.name} was never compared with a checksum"
