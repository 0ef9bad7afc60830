"""The lock manifest beside fetched jars: what was asked for, and each jar's size and SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

FILE_NAME = "manifest.json"


class Jar(msgspec.Struct, frozen=True):
    """One jar file: ``size`` in bytes, ``sha256`` in hex."""

    name: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What a folder of jars was made from and what it must hold."""

    coordinates: tuple[str, ...]
    exclude: tuple[str, ...]
    jars: tuple[Jar, ...]


def describe(path: Path) -> Jar:
    """Measure a jar file."""
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256")
    return Jar(path.name, path.stat().st_size, digest.hexdigest())


def write(folder: Path, coordinates: tuple[str, ...], exclude: tuple[str, ...]) -> Manifest:
    """Record the jars in `folder` as they are now."""
    manifest = Manifest(coordinates, exclude, tuple(describe(jar) for jar in sorted(folder.glob("*.jar"))))
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (folder / FILE_NAME).write_bytes(text + b"\n")
    return manifest


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
        path = folder / jar.name
        if not path.is_file():
            return f"{jar.name} is missing"
        if path.stat().st_size != jar.size:
            return f"{jar.name} has {path.stat().st_size} bytes, not {jar.size}"
        if describe(path) != jar:
            return f"{jar.name} is not the file that was fetched (SHA-256 differs)"
    return None
