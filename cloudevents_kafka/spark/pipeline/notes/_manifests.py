"""The manifests in ``_batches``: the content of each batch, and all that has landed so far.

A batch begins where an earlier one ended, so the offsets of all batches form one range for each
partition. Each manifest has this range and the topics' ids: the last one alone decides whether a
record has landed. Older manifests are removed.

`FileManifests` writes them as files. On Spark Connect, `ConnectManifests` writes folders in
``_batches/connect``. The newest of both kinds counts, so a pipeline can continue in a session of the
other kind.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from cloudevents_kafka.spark.pipeline.notes._checkpoint import WrongCheckpoint
from cloudevents_kafka.spark.pipeline.notes._counts import BatchCounts
from cloudevents_kafka.spark.pipeline.notes._offsets import OffsetRanges
from cloudevents_kafka.spark.pipeline.stores import Store

BATCHES: Final = "_batches"
NOTES: Final = f"{BATCHES}/connect"
VERSION: Final = 3
BEGUN: Final = f"{BATCHES}/begun.json"
TOPICS: Final = f"{BATCHES}/topics.json"
BEGINNING: Final = f"{BATCHES}/beginning.json"
_Content = TypeVar("_Content")

# Topic to id, for the topics whose id the brokers report.
TopicIds = Mapping[str, str]


class BatchManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a batch; its creation, in one step, is the moment at which the batch lands.

    ``number`` counts the batches of the folder and names the files; ``batch`` is Spark's number,
    which differs after a checkpoint was set back. ``query`` is the id of the checkpoint, ``files``
    are relative to the ``staging`` folder. ``offsets`` are those of this batch, ``landed`` those
    of all batches up to it, ``ids`` the topics' ids; ``total`` counts all batches. ``to`` is the kind
    of the tables, see `Landing.kind`; earlier manifests do not have it. ``tables`` are their ids in
    Delta or Iceberg.
    """

    version: int = VERSION
    number: int
    batch: int
    query: str
    staging: str
    files: tuple[str, ...]
    ids: TopicIds
    offsets: OffsetRanges
    landed: OffsetRanges
    counts: BatchCounts = msgspec.field(name="tally")
    total: BatchCounts
    to: str | None = None
    tables: Mapping[str, str] = {}


class BegunBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is about to be written; see `BatchManifest`.

    ``planned`` are all offsets that Spark planned, ``in_java`` and ``lenient`` are how its records are read,
    and ``routes`` has the tables of its events by patterns of types, in order.
    """

    version: int = VERSION
    number: int
    batch: int
    query: str
    ids: TopicIds
    offsets: OffsetRanges
    planned: OffsetRanges
    in_java: bool
    lenient: bool = False
    routes: Mapping[str, str] = {}
    to: str | None = None


class FirstTopicIds(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of the topics and of the pipeline, before Spark plans the first batch."""

    version: int = VERSION
    ids: TopicIds
    pipeline: str = ""


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """Where the checkpoint begins: behind the offsets that had landed, or else at the option ``start``.

    ``follows`` is the id of an earlier checkpoint that it continues, without topics that were forgotten.
    """

    version: int = VERSION
    start: str = ""
    landed: OffsetRanges = {}
    follows: str | None = None


Note = BatchManifest | BegunBatch | FirstTopicIds | Beginning


class _Versioned(msgspec.Struct, frozen=True):
    version: int = 1


class Manifests(ABC):
    """The manifests of a folder; raises `WrongCheckpoint` for those that it cannot read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self) -> BatchManifest | None:
        """Return the manifest of the last batch that landed, or None."""
        names = self._store.list_names(BATCHES)
        numbers = [int(name[:-5]) for name in names if re.fullmatch(r"\d+\.json", name)]
        found = [self._read(manifest_path(max(numbers)), BatchManifest)] if numbers else []
        for name in self._store.list_names(NOTES):
            if name.isdecimal():
                found += self._notes(name, BatchManifest)
        return max(found, key=_number, default=None)

    def first(self) -> FirstTopicIds:
        """Return the topics' ids from before the first batch, empty if they were not written."""
        if self._store.exists(TOPICS):
            return self._read(TOPICS, FirstTopicIds)
        notes = self._notes("topics", FirstTopicIds) if self._has_notes else []
        return notes[0] if notes else FirstTopicIds(ids={})

    def beginning(self) -> Beginning:
        """Return where the checkpoint begins, empty if that was not written."""
        found = [self._read(BEGINNING, Beginning)] if self._store.exists(BEGINNING) else []
        if self._has_notes:
            found += self._notes("beginning", Beginning)
        return found[0] if found else Beginning()

    @abstractmethod
    def write_beginning(self, beginning: Beginning) -> None:
        """Write where a new checkpoint begins, in place of an earlier one."""

    @abstractmethod
    def write_first(self, first: FirstTopicIds) -> None:
        """Write the topics' ids from before the first batch, unless they are known."""

    def begun(self) -> BegunBatch | None:
        """Return the batch that was begun last, or None."""
        found = [self._read(BEGUN, BegunBatch)] if self._store.exists(BEGUN) else []
        if self._has_notes:
            found += self._notes("begun", BegunBatch)
        return max(found, key=_number, default=None)

    @abstractmethod
    def begin(self, batch: BegunBatch) -> None:
        """Write the note that a batch is begun, in place of an earlier one."""

    @abstractmethod
    def add(self, manifest: BatchManifest) -> None:
        """Create the manifest of a batch, which lands the batch, and remove one that is too old."""

    def clear(self) -> bool:
        """Return whether all manifests and notes were removed, which Spark Connect cannot do."""
        return False

    @property
    def _has_notes(self) -> bool:
        """Whether batches have landed through Spark Connect."""
        return bool(self._store.list_names(NOTES))

    def _notes(self, name: str, type_: type[_Content]) -> list[_Content]:
        """Return the content of a note's folder: nothing while Spark is writing it, then one file."""
        folder = f"{NOTES}/{name}"
        files = [file for file in self._store.list_names(folder) if file.startswith("part-")]
        return [self._read(f"{folder}/{file}", type_) for file in files]

    def _read(self, path: str, type_: type[_Content]) -> _Content:
        content = self._store.read(path)
        try:
            version = msgspec.json.decode(content, type=_Versioned).version
            if version == VERSION:
                return msgspec.json.decode(content, type=type_)
        except msgspec.MsgspecError as error:
            raise WrongCheckpoint(
                f"{self._store.url(path)} must be the manifest of a batch, got: {error}. "
                "Restore the file, or use a fresh folder and checkpoint"
            ) from error
        raise WrongCheckpoint(
            f"{self._store.url(path)} must be in version {VERSION} of the manifests' format, "
            f"got version {version}. Land into a fresh folder with a fresh checkpoint, "
            "or continue with the release that filled this one"
        )


def encode_note(content: Note) -> bytes:
    """Return the JSON of a manifest or a note."""
    return msgspec.json.encode(content)


def _number(note: BatchManifest | BegunBatch) -> int:
    return note.number


def manifest_path(number: int) -> str:
    """Return the path of the manifest of a batch, as a file."""
    return f"{BATCHES}/{number:08d}.json"
