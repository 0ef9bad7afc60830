"""Folders in which commit e1dc351d has landed, as zips; `test_landed_before` has what is in them."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.zip")))


def unpack(name: str, folder: Path) -> Path:
    """Return a folder with the files of a zip."""
    with ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder
