"""The commit protocol: how a batch of Spark becomes files of the tables exactly once.

The folder of a pipeline::

    events/record_date=…/batch-00000012-part-….parquet       plain Parquet, for any reader
    quarantine/record_date=…/batch-00000012-part-….parquet   records that are not events
    _staging/00000012-…/      files of a batch before it lands
    _batches/00000012.json    the manifest of a batch: offsets, the topics' ids, counts, files
    _batches/topics.json      the topics' ids before the first batch
    _checkpoint/              Spark's checkpoint

Events of some types may have tables of their own, in folders next to ``events``. One pass writes all
tables of events: in the staging folder, a folder ``__ce_table=orders`` has the files of ``orders``.

1. All tables of a batch are written to its staging folder.
2. Its manifest is created in ``_batches`` in one step. At this moment the batch has landed.
3. Its files are renamed into the tables, each in one step.

If the process is killed before step 2, Spark runs the batch again, and the staged files are
removed. If it is killed after step 2, the next start finishes the renames before anything else,
and the batch is not written again. So a reader sees no record twice, and no file disappears; a
kill between two renames leaves a part of the batch invisible until the next start.

Offsets decide whether a record has landed, together with the id of its topic (see `_topics`). The
number of a batch does not: a checkpoint that was set back plans the same number with other
offsets. The manifests have one range of offsets for each partition, from the first planned offset
to the end of the last batch. Of a batch that overlaps this range, only the records after it land;
a batch that begins after its end or before its start ends the run.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from cloudevents_kafka.spark.pipeline._checkpoint import WrongCheckpoint
from cloudevents_kafka.spark.pipeline._counts import BatchCounts
from cloudevents_kafka.spark.pipeline._manifests import (
    BATCHES,
    BatchManifest,
    BegunBatch,
    Manifests,
    TopicIds,
)
from cloudevents_kafka.spark.pipeline._offsets import (
    BatchPlan,
    OffsetRange,
    OffsetRanges,
    add_landed,
    find_range,
    format_ranges,
    iter_partitions,
    subtract_landed,
)
from cloudevents_kafka.spark.pipeline._routes import EVENTS, QUARANTINE, TABLE
from cloudevents_kafka.spark.pipeline._store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline._batch import BatchWriter

STAGING = "_staging"
CHECKPOINT = "_checkpoint"


# Writes a batch to a folder, and returns its counts.
Write = Callable[[str, BegunBatch], BatchCounts]


class Landing:
    """The batches of a folder of Parquet tables; call `recover` first. Subclasses land elsewhere."""

    kind: str = "parquet"
    """What the batches land in; a folder has one kind, because its notes are about that."""

    def __init__(
        self, store: Store, routes: Mapping[str, str] | None = None, manifests: Manifests | None = None
    ) -> None:
        self.store = store
        self._routes = dict(routes or {})
        self.manifests = manifests or Manifests(store)
        self.last: BatchManifest | None = None
        self._first_topic_ids: TopicIds = {}
        self._first_batch = True

    @property
    def total(self) -> BatchCounts:
        """The counts of all batches in the folder."""
        return BatchCounts() if self.last is None else self.last.total

    @property
    def landed(self) -> OffsetRanges:
        """The offsets of all batches in the folder."""
        return {} if self.last is None else self.last.landed

    @property
    def topic_ids(self) -> TopicIds:
        """The known ids of the topics that fill the folder."""
        return self._first_topic_ids if self.last is None else self.last.ids

    def table_name(self, table: str) -> str:
        """Return the URL of a table."""
        return self.store.url(table)

    @property
    def tables(self) -> dict[str, str]:
        """The names of all tables, by those in the counts; the last is the quarantine."""
        return {table: self.table_name(table) for table in (*self._event_tables, QUARANTINE)}

    @property
    def _event_tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((EVENTS, *self._routes.values())))

    def write_rows(
        self, writer: BatchWriter, records: DataFrame, folder: str, batch: BegunBatch
    ) -> BatchCounts:
        """Write the records of a batch, as a `Write` does, and return the counts."""
        from cloudevents_kafka.spark.pipeline._parquet import ParquetFiles

        files = ParquetFiles(records.sparkSession, folder)
        counts = writer.write(
            records,
            batch.offsets,
            files,
            in_java=batch.in_java,
            lenient=batch.lenient,
            routes=batch.routes,
        )
        files.check(counts)
        return counts

    def begun(self) -> BegunBatch | None:
        """Return the batch that was begun and has no manifest, or None: here its files were removed."""
        return None

    def finish(self, batch: BegunBatch, write: Write) -> BatchManifest:
        """Complete a batch that was begun, and return its manifest."""
        return self._write(batch, write)

    def recover(self) -> int | None:
        """Finish the last landed batch and remove staged files of batches that never landed.

        Return the number of that batch if its renames were unfinished, otherwise None. Raises
        `WrongCheckpoint` if the manifests do not match the tables or cannot be read.
        """
        self._read_manifests()
        self._check_tables()
        unfinished = self.last is not None and self._rename(self.last)
        for leftover in self.store.list_names(STAGING):
            self.store.remove(f"{STAGING}/{leftover}")
        return self.last.number if self.last is not None and unfinished else None

    def _read_manifests(self) -> None:
        """Read the manifests; raise `WrongCheckpoint` if they are of another kind of tables."""
        self._first_topic_ids = self.manifests.first_topic_ids()
        self.last = self.manifests.last()
        begun = self.manifests.begun()
        found = None if begun is None else begun.to
        if self.last is not None:
            found = self.last.to or ("parquet" if self.last.staging else None)
        if found not in {None, self.kind}:
            raise WrongCheckpoint(
                f"the batches of {self.store.url('')} landed in {found}, not in {self.kind}. "
                f"Continue with {found}, or use a fresh folder and checkpoint"
            )

    def record_topic_ids(self, ids: TopicIds) -> None:
        """Write the topics' ids before the first batch."""
        if self.last is None:
            self.manifests.write_first_topic_ids(ids)
            self._first_topic_ids = self.manifests.first_topic_ids()

    def check(self, query_id: str | None, committed: BatchPlan | None) -> None:
        """Raise `WrongCheckpoint` if the folder and a checkpoint do not belong together.

        ``query_id`` is None for a new checkpoint; ``committed`` is its last committed batch.
        """
        if self.last is not None:
            self._check_query(query_id)
        if committed is not None:
            self._check_follows(BatchPlan(committed.batch + 1, committed.ranges))

    def check_layout(self, column: str) -> None:
        """Raise `WrongCheckpoint` if the events have folders by another column than this."""
        for table in self._event_tables:
            for name in self.store.list_names(table):
                other, equals, _ = name.partition("=")
                if equals and other != column:
                    raise WrongCheckpoint(
                        f"the folders of {self.store.url(table)} must be by {column}, got {other}. "
                        "Use the option date_of (--date-of) of the run that made them, "
                        "or a fresh folder and checkpoint"
                    )

    def land(
        self,
        plan: BatchPlan,
        query_id: str,
        topic_ids: TopicIds,
        write: Write,
        *,
        in_java: bool = True,
        lenient: bool = False,
    ) -> BatchManifest | None:
        """Land the records of a batch that have not landed yet; return its manifest, or None if all have.

        Call ``write`` with a URL and the batch. It writes Parquet files to subfolders for the
        tables and returns their counts. A first batch lands even without records: its manifest
        has the offsets at which the folder begins.
        """
        self.check(query_id, None)
        self._check_follows(plan)
        left = subtract_landed(plan.ranges, self.landed)
        if self.last is not None and not left:
            return None
        number = 0 if self.last is None else self.last.number + 1
        batch = BegunBatch(
            number=number,
            batch=plan.batch,
            query=query_id,
            ids={**self.topic_ids, **topic_ids},
            offsets=left,
            planned=plan.ranges,
            in_java=in_java,
            lenient=lenient,
            routes=self._routes,
            to=self.kind,
        )
        return self._write(batch, write)

    def _write(self, batch: BegunBatch, write: Write) -> BatchManifest:
        """Write a batch, create its manifest, and return it."""
        staging = f"{STAGING}/{batch.number:08d}-{uuid.uuid4().hex[:8]}"
        counts = write(self.store.url(staging), batch).check()
        manifest = self._add(batch, counts, staging, self._sync_files(staging, batch.number))
        self._rename(manifest)
        return manifest

    def _add(
        self, batch: BegunBatch, counts: BatchCounts, staging: str, files: tuple[str, ...]
    ) -> BatchManifest:
        manifest = BatchManifest(
            number=batch.number,
            batch=batch.batch,
            query=batch.query,
            staging=staging,
            files=files,
            ids=batch.ids,
            offsets=batch.offsets,
            landed=add_landed(self.landed, batch.planned),
            counts=counts,
            total=self.total.merge(counts),
            to=self.kind,
        )
        self.manifests.add(manifest)
        self.last = manifest
        self.manifests.prune(batch.number)
        return manifest

    def _sync_files(self, staging: str, number: int) -> tuple[str, ...]:
        """Return the staged files, which survive a power failure; raise `WrongCheckpoint` as below."""
        files = tuple(self.store.list_files(staging, ".parquet"))
        if self._first_batch:
            self._check_unused(files, number)
            self._first_batch = False
        self.store.sync(f"{staging}/{file}" for file in files)
        return files

    def _check_tables(self) -> None:
        """Raise `WrongCheckpoint` if the folder has tables but no manifest."""
        for table in self.tables if self.last is None else ():
            for name in self.store.list_names(table):
                if "=" in name:
                    raise self._no_manifest(f"{table}/{name}")

    def _check_unused(self, files: Iterable[str], number: int) -> None:
        """Raise `WrongCheckpoint` if the tables have files of a batch of this number.

        Its manifest was removed. It began with the same records, so at least one of its folders
        is among those of this batch.
        """
        for folder in {final_path(file, number).rpartition("/")[0] for file in files}:
            for name in self.store.list_names(folder):
                if name.startswith(_file_name(number, "")):
                    raise self._no_manifest(f"{folder}/{name}")

    def _no_manifest(self, path: str) -> WrongCheckpoint:
        return WrongCheckpoint(
            f"{self.store.url(path)} is of a batch that has no manifest in {BATCHES}: "
            "its records would land twice. Restore the manifests, or use a fresh folder and checkpoint"
        )

    def _check_query(self, query_id: str | None) -> None:
        if self.last is not None and self.last.query != query_id:
            this = "this is a new one" if query_id is None else f"this is {query_id}"
            raise WrongCheckpoint(
                f"{self.store.url('')} was filled under another checkpoint (query {self.last.query}, "
                f"{this}): records would land twice or never. "
                "Use the folder's own checkpoint, or a fresh folder"
            )

    def _check_follows(self, plan: BatchPlan) -> None:
        """Raise `WrongCheckpoint` if a batch begins after the end of the landed offsets, or before them."""
        if self.last is None and plan.batch:
            raise WrongCheckpoint(
                f"the checkpoint continues with batch {plan.batch}, but {self.store.url('')} has no batch: "
                "earlier records landed in another folder. Use that folder, or a fresh checkpoint"
            )
        for topic, partition, offsets in iter_partitions(plan.ranges) if self.last is not None else ():
            before = find_range(self.landed, topic, partition) or OffsetRange(0, 0)
            if before.start <= offsets.start <= before.end:
                continue
            first, end = sorted((offsets.start, before.end if offsets.start > before.end else before.start))
            absent = format_ranges({topic: {partition: OffsetRange(first, end)}})
            raise WrongCheckpoint(
                f"the checkpoint continues with batch {plan.batch} at {topic}[{partition}]@{offsets.start}, "
                f"but {absent} are missing in {self.store.url('')}. "
                "Restore the removed files, or use a fresh folder and checkpoint"
            )

    def _rename(self, manifest: BatchManifest) -> bool:
        """Rename the files of a landed batch into the tables; return whether the staging folder existed."""
        if not self.store.exists(manifest.staging):
            return False
        for file in manifest.files:
            staged, final = f"{manifest.staging}/{file}", final_path(file, manifest.number)
            if self.store.exists(staged):
                self.store.rename(staged, final)
            elif not self.store.exists(final):
                raise WrongCheckpoint(
                    f"{self.store.url(final)} must exist, because its batch has landed, but it is missing "
                    f"there and in {manifest.staging}. Restore it, or use a fresh folder and checkpoint"
                )
        self.store.remove(manifest.staging)
        return True


def final_path(file: str, number: int) -> str:
    """Return the path of a staged file in its table, where the number of its batch prefixes its name."""
    folder, _, name = file.removeprefix(f"{TABLE}=").rpartition("/")
    return f"{folder}/{_file_name(number, name)}"


def _file_name(number: int, name: str) -> str:
    return f"batch-{number:08d}-{name}"
