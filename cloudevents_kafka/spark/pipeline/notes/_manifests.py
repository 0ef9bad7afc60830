"""The files in ``_batches``: where a pipeline begins, its current batch, and the batches that have landed.

Each batch that has landed has a manifest, which is a file with the counts and offsets of the batch. The
ledger in the last manifest lists the landed offsets of all batches, so only the last `_FILES_KEPT` manifests
are kept.

Earlier versions of this package could also land batches through Spark Connect. For this, these versions used
a separate folder in ``_batches/connect`` for each type of file. For manifests, these versions used the
folders ``0`` to ``3`` in ``_batches/connect`` by turns. Files in ``_batches/connect`` are still read. If
``_batches`` has several files of the same type, the newest of these files is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from cloudevents_kafka.spark.pipeline.notes._checkpoint import WrongCheckpoint
from cloudevents_kafka.spark.pipeline.notes._counts import BatchCounts
from cloudevents_kafka.spark.pipeline.notes._ledger import Ledger, OffsetRanges
from cloudevents_kafka.spark.pipeline.notes._upsert import Upsert
from cloudevents_kafka.spark.pipeline.stores import InUse, Store
from cloudevents_kafka.spark.typed.framed import Writer
from cloudevents_kafka.spark.typed.schemas import DataSchema

BATCHES: Final = "_batches"
_FOLDERS: Final = f"{BATCHES}/connect"
_FILES_KEPT: Final = 100  # recent manifests stay for troubleshooting
VERSION: Final = 4
_Note = TypeVar("_Note")

# Maps each topic to its id. Topics whose ids the brokers do not report are left out.
TopicIds = Mapping[str, str]


class ReadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings with which a batch's records are read, and the tables to which the batch's rows go.

    ``routes`` maps patterns of event types to tables; the first pattern that matches is used. ``schemas``
    maps patterns of event types to schemas of the events' data. ``rescue`` says whether an event lands even
    if a part of its data does not match the schema. If serializers of a schema registry have written the
    data, ``writers`` contains the schemas that these serializers have used. ``upsert`` says which row a
    record changes, and which records delete a row.
    """

    lenient: bool = False
    routes: Mapping[str, str] = {}
    schemas: Mapping[str, DataSchema] = {}
    rescue: bool = False
    writers: Mapping[str, Writer] | None = None
    upsert: Upsert | None = None


class PlannedBatch(NamedTuple):
    """A batch that was planned, and whose rows the pipeline has not begun to write.

    ``batch`` is Spark's number of the batch, ``query`` is the id of the checkpoint's query, and ``ids``
    contains the ids of the topics. ``planned`` contains all offsets of the batch, and ``offsets`` contains
    the offsets of the batch that have not landed.
    """

    batch: int
    query: str
    ids: TopicIds
    offsets: OffsetRanges
    planned: OffsetRanges

    @classmethod
    def of(cls, batch: BegunBatch) -> PlannedBatch:
        """Return the fields of a `BegunBatch` that are also fields of a `PlannedBatch`."""
        return cls(batch.batch, batch.query, batch.ids, batch.offsets, batch.planned)


class BegunBatch(ReadSettings, frozen=True, kw_only=True):
    """A batch that is about to be written; see also `PlannedBatch`.

    ``number`` is the number of the batch in the pipeline's folder, and ``batch`` is Spark's number of the
    batch. The numbers ``number`` and ``batch`` may differ, for example if an older checkpoint was restored.
    ``in_java`` says whether the Java function reads the records before Python, and ``to`` is the kind of the
    target, such as ``delta``. If the records of a batch are compared with the rows of the table, ``counted``
    contains the counts after this comparison, because these counts cannot be computed again after the commit.
    """

    version: int = VERSION
    number: int
    batch: int
    query: str
    pipeline: str = ""
    ids: TopicIds
    offsets: OffsetRanges
    planned: OffsetRanges
    in_java: bool
    to: str | None = None
    counted: BatchCounts | None = None


class BatchManifest(BegunBatch, frozen=True, kw_only=True):
    """A batch that has landed; in Parquet and in functions, a batch lands when its manifest is created.

    ``files`` contains the paths of the batch's files, relative to the folder ``staging``. ``ledger`` lists
    the offsets of all batches up to this batch, and ``total`` counts the records of all these batches.
    ``tables`` maps Delta or Iceberg tables to their ids. ``rows`` maps tables to the number of rows in the
    files that the batch committed, if this number is known. ``seconds`` maps each step of the pipeline to its
    duration in seconds. ``names`` maps each table to the paths of the fields in the typed data of its Parquet
    files. The path of a nested field contains the names of the enclosing fields, from the outermost to the
    innermost, and then the name of the nested field.
    """

    staging: str = ""
    files: tuple[str, ...] = ()
    ledger: Ledger
    counts: BatchCounts = msgspec.field(name="tally")
    total: BatchCounts
    tables: Mapping[str, str] = {}
    rows: Mapping[str, int] = {}
    seconds: Mapping[str, float] = {}
    names: Mapping[str, tuple[tuple[str, ...], ...]] = {}


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pipeline before the first batch of a checkpoint, and the checkpoint's start offsets.

    ``pipeline`` is the id of the pipeline, and ``ids`` contains the ids of the topics that it reads. In each
    partition, the checkpoint begins after the offsets in ``landed``. If ``landed`` does not contain the
    partition, the checkpoint begins at the offset of the option ``start``. If this checkpoint replaces an
    earlier checkpoint, for example because of the option ``forget_topics``, ``follows`` is the id of the
    earlier checkpoint's query.
    """

    version: int = VERSION
    pipeline: str = ""
    ids: TopicIds = {}
    start: str = ""
    landed: Ledger = Ledger()
    follows: str | None = None


_NAMES: Final[Mapping[type, str]] = {BegunBatch: "begun", Beginning: "beginning"}


class Manifests:
    """The manifests and other files in ``_batches``; raises `WrongCheckpoint` if a file cannot be read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self) -> BatchManifest | None:
        """Return the manifest of the last batch that landed, or None if no batch has landed."""
        files = [name[:-5] for name in self._store.list_names(BATCHES) if re.fullmatch(r"\d+\.json", name)]
        folders = filter(str.isdecimal, self._store.list_names(_FOLDERS))
        names = [*sorted(files, key=int)[-1:], *folders]
        found = (manifest for name in names for manifest in self._find(name, BatchManifest))
        return max(found, key=_number, default=None)

    def find(self, type_: type[_Note]) -> _Note | None:
        """Return the content of the newest file of a type, or None if no file of this type exists."""
        return max(self._find(_NAMES[type_], type_), key=_number, default=None)

    def write(self, note: BegunBatch | Beginning) -> None:
        """Write a file of a type; the new file replaces an earlier file of the same type."""
        self._store.replace(_file(_NAMES[type(note)]), _encode(note))

    def add(self, manifest: BatchManifest) -> None:
        """Create the manifest of a batch; remove the oldest manifest if there are over `_FILES_KEPT`."""
        path = _file(f"{manifest.number:08d}")
        try:
            self._store.create(path, _encode(manifest))
        except FileExistsError:
            raise InUse(
                f"{self._store.url(path)} was created by another run meanwhile; wait until the other run has "
                "ended, or choose another folder"
            ) from None
        if manifest.number >= _FILES_KEPT:
            self._store.remove(_file(f"{manifest.number - _FILES_KEPT:08d}"))

    def clear(self) -> None:
        """Remove all files in ``_batches``; the file with the `Beginning` is removed last."""
        for name in (name for name in self._store.list_names(BATCHES) if name != f"{_NAMES[Beginning]}.json"):
            self._store.remove(f"{BATCHES}/{name}")
        self._store.remove(BATCHES)

    def _find(self, name: str, type_: type[_Note]) -> list[_Note]:
        """Return the contents of all files with this name, including files that earlier versions wrote."""
        folder = f"{_FOLDERS}/{name}"
        parts = [f"{folder}/{part}" for part in self._store.list_names(folder) if part.startswith("part-")]
        paths = [path for path in [_file(name)] if self._store.exists(path)]
        return [self._read(path, type_) for path in (*paths, *parts)]

    def _read(self, path: str, type_: type[_Note]) -> _Note:
        content = self._store.read(path)
        try:
            version = msgspec.json.decode(content, type=dict[str, Any]).get("version", 1)
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
            "or continue with the release of this package that filled this folder"
        )


def _file(name: str) -> str:
    return f"{BATCHES}/{name}.json"


def _encode(note: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(note), indent=1)


def _number(note: object) -> int:
    return getattr(note, "number", 0)
