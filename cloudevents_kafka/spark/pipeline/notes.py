"""The notes in ``_batches``: what each batch consists of, and all that has landed by then.

A batch begins where an earlier one ended, so the offsets of all batches together are one
range for each partition. This range and the topics' ids stand in each note, so that the
last one says of every batch there ever was whether it has landed; the counts and files of
older batches are of use to nobody and go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from cloudevents_kafka.spark.pipeline.checkpoint import WrongCheckpoint
from cloudevents_kafka.spark.pipeline.counts import Tally
from cloudevents_kafka.spark.pipeline.offsets import Spans
from cloudevents_kafka.spark.pipeline.store import Store

BATCHES: Final = "_batches"
VERSION: Final = 2
# For those who look for what went wrong, the last ones stay.
KEPT: Final = 100

_TOPICS: Final = f"{BATCHES}/topics.json"
_Form = TypeVar("_Form")

# Topic to id, of those topics whose id the broker says.
Ids = Mapping[str, str]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch consists of; made in one step, which is the moment it lands.

    ``number`` counts what landed in the folder and names the files, ``batch`` is Spark's
    number, the same unless the checkpoint was set back. ``query`` is the id of the
    checkpoint, ``files`` are relative to the ``staging`` folder. ``offsets`` are those of
    this batch, ``landed`` those of all up to it, ``ids`` the topics' ids; ``total`` counts all.
    """

    version: int = VERSION
    number: int
    batch: int
    query: str
    staging: str
    files: tuple[str, ...]
    ids: Ids
    offsets: Spans
    landed: Spans
    tally: Tally
    total: Tally


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The topics' ids when the folder was begun, before Spark first planned a batch."""

    version: int = VERSION
    ids: Ids


class _Versioned(msgspec.Struct, frozen=True):
    version: int = 1


class Notes:
    """The notes of a folder; raises `WrongCheckpoint` for those that this library cannot read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self) -> Note | None:
        """Return the note of the batch that landed last."""
        names = self._store.names(BATCHES)
        numbers = [int(name[:-5]) for name in names if re.fullmatch(r"\d+\.json", name)]
        return self._read(_path(max(numbers)), Note) if numbers else None

    def begun(self) -> Ids:
        """Return the topics' ids of the beginning, empty where there was none."""
        return self._read(_TOPICS, Begun).ids if self._store.exists(_TOPICS) else {}

    def begin(self, ids: Ids) -> None:
        """Write down the topics' ids, if that was not done before."""
        if not self._store.exists(_TOPICS):
            self._create(_TOPICS, Begun(ids=ids))

    def add(self, note: Note) -> None:
        """Make the note of a batch, which lands it."""
        self._create(_path(note.number), note)

    def forget_old(self, number: int) -> None:
        """Remove the note that is too old when this one has landed."""
        if number >= KEPT:
            self._store.remove(_path(number - KEPT))

    def _create(self, path: str, content: Note | Begun) -> None:
        self._store.create(path, msgspec.json.format(msgspec.json.encode(content), indent=1))

    def _read(self, path: str, form: type[_Form]) -> _Form:
        content = self._store.read(path)
        try:
            version = msgspec.json.decode(content, type=_Versioned).version
            if version == VERSION:
                return msgspec.json.decode(content, type=form)
        except msgspec.MsgspecError as error:
            raise WrongCheckpoint(
                f"{self._store.url(path)} must be the note of a batch, got: {error}. "
                "Put back the file as this library wrote it, or use a fresh folder and checkpoint"
            ) from error
        raise WrongCheckpoint(
            f"{self._store.url(path)} is in version {version} of the notes' format, "
            f"and this release reads and writes version {VERSION} only. "
            "Land into a fresh folder with a fresh checkpoint, "
            "or go on with the release that has filled this one"
        )


def _path(number: int) -> str:
    return f"{BATCHES}/{number:08d}.json"
