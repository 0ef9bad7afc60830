"""Exactly once: how a batch of Spark's becomes files of the tables, whatever is killed when.

A folder that a pipeline fills::

    events/event_type=…/event_date=…/batch-00000012-part-….parquet     plain Parquet, for any reader
    quarantine/verdict=…/record_date=…/batch-00000012-part-….parquet   records that are no events
    _staging/00000012-…/      what a batch has written and nobody reads yet
    _batches/00000012.json    what a batch consists of: counts and files
    _checkpoint/              Spark's own: which offsets make up a batch

A batch is written to a staging folder of its own, both tables of it. Then its note in
``_batches`` is made, in one step: that is the moment at which the batch has landed. Last,
its files are renamed into the tables, each in one step. Before the note, a batch that
Spark plays again starts afresh and what was staged is thrown away; after it, the batch
is not written again, the renames are finished. So no reader ever sees a record twice,
nor a file that goes away; a kill between two renames leaves a part of the batch
unseen until the next start, which finishes it before anything else.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import msgspec

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark.store import Store
from cloudevents_kafka.spark.tally import Tally

TABLES = ("events", "quarantine")
BATCHES = "_batches"
STAGING = "_staging"
CHECKPOINT = "_checkpoint"
# Spark itself can go back by as many (spark.sql.streaming.minBatchesToRetain).
KEPT_NOTES = 100

_SUFFIX = ".parquet"


class WrongCheckpoint(CloudEventsKafkaError):
    """The checkpoint and the folder do not belong together."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch consists of; made in one step, which is the moment it lands.

    ``query`` is the id of the checkpoint, ``total`` counts all batches up to this one,
    ``files`` are relative to the ``staging`` folder.
    """

    batch: int
    query: str
    staging: str
    files: tuple[str, ...]
    tally: Tally
    total: Tally


class Landing:
    """Lands batches in a folder, each once; `recover` first."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.last: Note | None = None

    @property
    def total(self) -> Tally:
        """Count all that ever landed here."""
        return Tally() if self.last is None else self.last.total

    def recover(self) -> int | None:
        """Finish the last batch that landed and clear away what never did.

        Gives that batch's number, if there was something left to finish.
        """
        notes = [int(name[:-5]) for name in self.store.names(BATCHES) if re.fullmatch(r"\d+\.json", name)]
        self.last = self._read(_note_path(max(notes))) if notes else None
        unfinished = self.last is not None and self._rename(self.last)
        for leftover in self.store.names(STAGING):
            self.store.remove(f"{STAGING}/{leftover}")
        return self.last.batch if self.last is not None and unfinished else None

    def land(self, batch: int, query: str, write: Callable[[str], Tally]) -> Note | None:
        """Land a batch by `write`, which fills a folder; None if the batch has landed before.

        `write` gets a URL, puts Parquet into its subfolders named as `TABLES`, and counts
        what is in them.
        """
        if self._landed(batch, query):
            return None
        staging = f"{STAGING}/{batch:08d}-{uuid.uuid4().hex[:8]}"
        tally = write(self.store.url(staging)).checked()
        tally.check_follows(self.total)
        files = tuple(self.store.files(staging, _SUFFIX))
        for file in files:
            self.store.settle(f"{staging}/{file}")
        total = self.total.plus(tally)
        note = Note(batch=batch, query=query, staging=staging, files=files, tally=tally, total=total)
        self.store.create(_note_path(batch), msgspec.json.format(msgspec.json.encode(note), indent=1))
        self.last = note
        self._rename(note)
        if batch >= KEPT_NOTES:
            self.store.remove(_note_path(batch - KEPT_NOTES))
        return note

    def _landed(self, batch: int, query: str) -> bool:
        """Say whether a batch is in the tables; raises `WrongCheckpoint` where that cannot be known."""
        if self.last is None:
            if batch == 0:
                return False
            raise WrongCheckpoint(
                f"the checkpoint goes on with batch {batch}, but {self.store.url('')} holds no batch: "
                "its records went elsewhere. Use the folder that belongs to the checkpoint, "
                "or a fresh checkpoint"
            )
        if self.last.query != query:
            raise WrongCheckpoint(
                f"{self.store.url('')} was filled under another checkpoint (query {self.last.query}, "
                f"this is {query}): records would land twice or never. "
                "Use its own checkpoint, or a fresh folder"
            )
        if batch > self.last.batch + 1:
            raise WrongCheckpoint(
                f"the checkpoint goes on with batch {batch}, but the last one in {self.store.url('')} "
                f"is {self.last.batch}: the batches between are not here. "
                "Put back what was removed, or use a fresh folder and checkpoint"
            )
        return batch <= self.last.batch

    def _rename(self, note: Note) -> bool:
        """Bring a landed batch's files into the tables, all that are not there yet; say whether any."""
        if not self.store.exists(note.staging):
            return False
        for file in note.files:
            staged, final = f"{note.staging}/{file}", final_path(file, note.batch)
            if self.store.exists(staged):
                self.store.rename(staged, final)
        self.store.remove(note.staging)
        return True

    def _read(self, path: str) -> Note:
        content = self.store.read(path)
        try:
            return msgspec.json.decode(content, type=Note)
        except msgspec.MsgspecError as error:
            raise WrongCheckpoint(
                f"{self.store.url(path)} is no note of a batch: {error}. "
                "Put back the file as this library wrote it, or use a fresh folder and checkpoint"
            ) from error


def final_path(file: str, batch: int) -> str:
    """Name a staged file as it stands in its table: after its batch."""
    folder, _, name = file.rpartition("/")
    return f"{folder}/batch-{batch:08d}-{name}"


def _note_path(batch: int) -> str:
    return f"{BATCHES}/{batch:08d}.json"
