"""The corpus: inputs that together reach all code paths, in one archive with a folder for each target.

    python -m tests.fuzz.archive FOLDER     adds the inputs in FOLDER/TARGET/*

The archive has the same bytes for the same inputs: they are sorted, and have one date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ARCHIVE: Final = Path(__file__).with_name("corpus.zip")


def read(path: Path = ARCHIVE) -> dict[str, bytes]:
    """Return all inputs by name, such as ``record/0a1b``."""
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(inputs: Mapping[str, bytes], path: Path = ARCHIVE) -> None:
    """Write the archive in place of the one that is there."""
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(inputs):
            archive.writestr(ZipInfo(name), inputs[name], ZIP_DEFLATED)


def found(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the inputs in the folders of targets."""
    for path in sorted(folder.glob("*/*")):
        yield f"{path.parent.name}/{path.name}", path.read_bytes()


if __name__ == "__main__":
    write({**read(), **dict(found(Path(sys.argv[1])))})
