"""The files in ``OUT/_replays``: which replays were decided, and which replays are complete."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.stores import REPLAYS_FOLDER, InUse, Store
from cloudevents_kafka.spark.typed.schemas import DataSchema

LANDED: Final = "landed"  # the outcome of a record that is an event now
REFUSED: Final = "refused"  # the outcome of a record that is still not an event


class ReplayCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of the records that a replay has read.

    ``outcomes`` counts records by outcome; ``counts`` counts records by verdict, reason and outcome;
    ``tables`` counts landed events by table.
    """

    outcomes: Mapping[str, int] = {}
    counts: Mapping[str, Mapping[str, Mapping[str, int]]] = {}
    tables: Mapping[str, int] = {}


class ReplayNote(ReplayCounts, frozen=True, kw_only=True):
    """The content of a replay's file; the replay is decided when this file is created.

    ``run`` is the id of the run, which is also a part of the name of the folder with the staged rows.
    ``micros`` is the time of the replay, in microseconds since 1970. ``files`` lists the staged Parquet
    files.
    """

    number: int
    run: str
    micros: int
    routes: Mapping[str, str]
    lenient: bool
    schemas: Mapping[str, DataSchema] = {}
    rescue: bool = False
    files: tuple[str, ...] = ()

    @property
    def staging(self) -> str:
        """The folder of the staged rows of the replay."""
        return f"{REPLAYS_FOLDER}/{self.number:08d}-{self.run}"


class ReplayNotes:
    """The files in which a pipeline's folder stores the state of replays."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self) -> ReplayNote | None:
        """Return the last decided replay that was not withdrawn, or None.

        Raises `WrongCheckpoint` if the file of this replay is damaged.
        """
        names = self._store.list_names(REPLAYS_FOLDER)
        numbers = [int(name[:-5]) for name in names if re.fullmatch(r"\d+\.json", name)]
        if not numbers:
            return None
        path = _path(max(numbers))
        try:
            return msgspec.json.decode(self._store.read(path), type=ReplayNote)
        except msgspec.MsgspecError as error:
            raise notes.WrongCheckpoint(
                f"{self._store.url(path)} must describe a replay in JSON, got: {error}. Restore the file"
            ) from error

    def decide(self, note: ReplayNote) -> None:
        """Create the file of a replay; raise `InUse` if another run has created this file first."""
        content = msgspec.json.format(msgspec.json.encode(note), indent=1)
        try:
            self._store.create(_path(note.number), content)
        except FileExistsError:
            raise InUse(
                f"replay {note.number} of {self._store.url('')} was decided by another run meanwhile; "
                "no record of this run has landed. Start again when the other run has ended"
            ) from None

    def withdraw(self, note: ReplayNote) -> None:
        """Remove the file and the staged rows of a replay; no table may have rows of this replay."""
        self._store.remove(_path(note.number))
        self._store.remove(note.staging)

    def is_complete(self, note: ReplayNote) -> bool:
        """Return whether a replay has landed in all tables."""
        return self._store.exists(_path(note.number, "done"))

    def complete(self, note: ReplayNote) -> None:
        """Create the file that marks a replay as landed in all tables.

        The function removes the staged files of this replay and of earlier replays.
        """
        self._store.replace(_path(note.number, "done"), b"")
        for name in self._store.list_names(REPLAYS_FOLDER):
            staged = f"{REPLAYS_FOLDER}/{name}"  # another run may be staging the same replay
            if staged == note.staging or (re.fullmatch(r"\d+-\w+", name) and int(name[:8]) < note.number):
                self._store.remove(staged)


def _path(number: int, ending: str = "json") -> str:
    return f"{REPLAYS_FOLDER}/{number:08d}.{ending}"
