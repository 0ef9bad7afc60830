"""Look at a fetched file before it is believed: it must be a zip archive with the right checksum."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

from cloudevents_kafka.jvm.sums import Sum

_BEGINNING: Final = 512  # bytes of a file that are looked at to name what it is
_PAGE: Final = (b"<!doctype html", b"<html", b"<head", b"<body")


class BadFile(Exception):
    """A fetched file is not the jar that was asked for; the text says what it is."""


def check_jar(path: Path, wanted: Sum) -> None:
    """Raise `BadFile` for a file that is not a whole zip archive, or has another checksum."""
    _check_zip(path)
    found = wanted.of(path)
    if found != wanted.digest:
        raise BadFile(
            f"has the {_name(wanted.algorithm)} {found}, and the {wanted.origin} says {wanted.digest}: "
            "it was changed on the way, or in the repository"
        )


def _check_zip(path: Path) -> None:
    size = path.stat().st_size
    if size == 0:
        raise BadFile("is empty (0 bytes), not a jar")
    with path.open("rb") as handle:
        beginning = handle.read(_BEGINNING).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if beginning.startswith(_PAGE):
        raise BadFile(f"is an HTML page ({size} bytes), not a jar: a proxy or a login answered instead")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = len(archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise BadFile(f"is not a whole zip archive ({size} bytes; {error}), as a jar must be") from None
    if not entries:
        raise BadFile(f"is a zip archive without any entry ({size} bytes), not a jar")


def _name(algorithm: str) -> str:
    return algorithm.upper().replace("SHA", "SHA-")
