"""Exactly once: how a batch of Spark's becomes files of the tables, whatever is killed when.

A folder that a pipeline fills::

    events/event_type=…/event_date=…/batch-00000012-part-….parquet     plain Parquet, for any reader
    quarantine/verdict=…/record_date=…/batch-00000012-part-….parquet   records that are no events
    _staging/00000012-…/      what a batch has written and nobody reads yet
    _batches/00000012.json    what a batch consists of: offsets, the topics' ids, counts, files
    _batches/topics.json      the topics' ids when the folder was begun
    _checkpoint/              Spark's own: which offsets make up a batch

A batch is written to a staging folder of its own, both tables of it. Then its note in
``_batches`` is made, in one step: that is the moment at which the batch has landed. Last,
its files are renamed into the tables, each in one step. Before the note, a batch that
Spark plays again starts afresh and what was staged is thrown away; after it, the batch
is not written again, the renames are finished. So no reader ever sees a record twice,
nor a file that goes away; a kill between two renames leaves a part of the batch
unseen until the next start, which finishes it before anything else.

Whether a record has landed is decided by its offset, and by the id of its topic (which
`topics` compares), never by the number of a batch: a checkpoint that was set back plans
the same number with other offsets. The notes have one range of offsets for each partition,
from the first that was planned to the end of the last batch. Of a batch that overlaps it,
the records behind it land; a batch that would leave a gap, or reach before it, ends the run.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

from cloudevents_kafka.spark.pipeline.checkpoint import WrongCheckpoint
from cloudevents_kafka.spark.pipeline.counts import Tally
from cloudevents_kafka.spark.pipeline.notes import BATCHES, Ids, Note, Notes
from cloudevents_kafka.spark.pipeline.offsets import (
    Plan,
    Span,
    Spans,
    as_text,
    beyond,
    joined,
    parts,
    span_of,
)
from cloudevents_kafka.spark.pipeline.store import Store

TABLES = ("events", "quarantine")
STAGING = "_staging"
CHECKPOINT = "_checkpoint"

_SUFFIX = ".parquet"


class Landing:
    """Lands batches in a folder, each record once; `recover` first."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.notes = Notes(store)
        self.last: Note | None = None
        self._begun: Ids = {}
        self._first = True

    @property
    def total(self) -> Tally:
        """Count all that ever landed here."""
        return Tally() if self.last is None else self.last.total

    @property
    def landed(self) -> Spans:
        """The offsets of all that ever landed here."""
        return {} if self.last is None else self.last.landed

    @property
    def ids(self) -> Ids:
        """The ids of the topics that this folder is filled from, as far as they are known."""
        return self._begun if self.last is None else self.last.ids

    def recover(self) -> int | None:
        """Finish the last batch that landed and clear away what never did.

        Returns that batch's number, if there was something left to finish. Raises
        `WrongCheckpoint` where the notes do not go with the tables, or cannot be read.
        """
        self._begun = self.notes.begun()
        self.last = self.notes.last()
        self._check_tables()
        unfinished = self.last is not None and self._rename(self.last)
        for leftover in self.store.names(STAGING):
            self.store.remove(f"{STAGING}/{leftover}")
        return self.last.number if self.last is not None and unfinished else None

    def begin(self, ids: Ids) -> None:
        """Write down which topics these are, before Spark plans anything of them."""
        if self.last is None:
            self.notes.begin(ids)
            self._begun = self.notes.begun()

    def check(self, query: str | None, committed: Plan | None) -> None:
        """Raise `WrongCheckpoint` where the folder does not go with a checkpoint.

        `query` is its id, None for one that is new; `committed` the last batch it has done.
        """
        if self.last is not None:
            self._check_query(query)
        if committed is not None:
            self._check_follows(Plan(committed.batch + 1, committed.spans))

    def land(self, plan: Plan, query: str, ids: Ids, write: Callable[[str, Spans], Tally]) -> Note | None:
        """Land what has not landed of a batch by `write`, which fills a folder; None if all of it has.

        A first batch lands without records too: its note says where the folder begins.

        `write` gets a URL and the offsets to land, puts Parquet into the URL's subfolders
        named as `TABLES`, and counts what is in them.
        """
        self.check(query, None)
        self._check_follows(plan)
        left = beyond(plan.spans, self.landed)
        if self.last is not None and not left:
            return None
        number = 0 if self.last is None else self.last.number + 1
        staging = f"{STAGING}/{number:08d}-{uuid.uuid4().hex[:8]}"
        tally = write(self.store.url(staging), left).checked()
        tally.check_within(left)
        files = tuple(self.store.files(staging, _SUFFIX))
        if self._first:
            self._check_unused(files, number)
            self._first = False
        for file in files:
            self.store.settle(f"{staging}/{file}")
        note = Note(
            number=number,
            batch=plan.batch,
            query=query,
            staging=staging,
            files=files,
            ids={**self.ids, **ids},
            offsets=left,
            landed=joined(self.landed, plan.spans),
            tally=tally,
            total=self.total.plus(tally),
        )
        self.notes.add(note)
        self.last = note
        self._rename(note)
        self.notes.forget_old(number)
        return note

    def _check_tables(self) -> None:
        """Raise `WrongCheckpoint` where there are tables, but no notes."""
        for table in TABLES if self.last is None else ():
            for name in self.store.names(table):
                if "=" in name:
                    raise self._without_note(f"{table}/{name}")

    def _check_unused(self, files: Iterable[str], number: int) -> None:
        """Raise `WrongCheckpoint` where a batch of this number was renamed before, of which the note is gone.

        It had the same first records, so some folder of it is among those of this batch.
        """
        for folder in {final_path(file, number).rpartition("/")[0] for file in files}:
            for name in self.store.names(folder):
                if name.startswith(_name(number, "")):
                    raise self._without_note(f"{folder}/{name}")

    def _without_note(self, path: str) -> WrongCheckpoint:
        return WrongCheckpoint(
            f"{self.store.url(path)} is of a batch that has no note in {BATCHES}: "
            "what has landed cannot be known, and records would land twice. "
            "Put back the notes, or use a fresh folder and checkpoint"
        )

    def _check_query(self, query: str | None) -> None:
        if self.last is not None and self.last.query != query:
            this = "this is a new one" if query is None else f"this is {query}"
            raise WrongCheckpoint(
                f"{self.store.url('')} was filled under another checkpoint (query {self.last.query}, "
                f"{this}): records would land twice or never. "
                "Use its own checkpoint, or a fresh folder"
            )

    def _check_follows(self, plan: Plan) -> None:
        """Raise `WrongCheckpoint` where a batch begins behind what has landed, or before all of it."""
        if self.last is None and plan.batch:
            raise WrongCheckpoint(
                f"the checkpoint goes on with batch {plan.batch}, but {self.store.url('')} has no batch: "
                "its records went elsewhere. Use the folder that belongs to the checkpoint, "
                "or a fresh checkpoint"
            )
        for topic, number, span in parts(plan.spans) if self.last is not None else ():
            before = span_of(self.landed, topic, number) or Span(0, 0)
            if span.start > before.end:
                self._refuse(plan.batch, topic, number, span, Span(before.end, span.start))
            if span.start < before.start:
                self._refuse(plan.batch, topic, number, span, Span(span.start, before.start))

    def _refuse(self, batch: int, topic: str, number: str, span: Span, absent: Span) -> None:
        raise WrongCheckpoint(
            f"the checkpoint goes on with batch {batch} at {topic}[{number}]@{span.start}, "
            f"but {as_text({topic: {number: absent}})} are not here, in {self.store.url('')}. "
            "Put back what was removed, or use a fresh folder and checkpoint"
        )

    def _rename(self, note: Note) -> bool:
        """Bring a landed batch's files into the tables, all that are not there yet; say whether any."""
        if not self.store.exists(note.staging):
            return False
        for file in note.files:
            staged, final = f"{note.staging}/{file}", final_path(file, note.number)
            if self.store.exists(staged):
                self.store.rename(staged, final)
            elif not self.store.exists(final):
                raise WrongCheckpoint(
                    f"{self.store.url(final)} must be there, for its batch has landed, but it is neither "
                    f"there nor in {note.staging}. Put it back, or use a fresh folder and checkpoint"
                )
        self.store.remove(note.staging)
        return True


def final_path(file: str, number: int) -> str:
    """Name a staged file as it stands in its table: after its batch."""
    folder, _, name = file.rpartition("/")
    return f"{folder}/{_name(number, name)}"


def _name(number: int, file: str) -> str:
    return f"batch-{number:08d}-{file}"
