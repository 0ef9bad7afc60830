"""`write_zip` writes this package to a zip, for Python workers on which the package is not installed."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

PACKAGE: Final = "cloudevents_kafka"
_ZIP_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def write_zip(path: Path) -> None:
    """Write a zip of this package in one step; the bytes of the zip depend only on the package."""
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in _files(resources.files(PACKAGE), PACKAGE):
                entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield the paths and contents of a folder's files."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir() and item.name != "__pycache__":
            yield from _files(item, f"{path}/{item.name}")
        elif item.is_file():
            yield f"{path}/{item.name}", item.read_bytes()
