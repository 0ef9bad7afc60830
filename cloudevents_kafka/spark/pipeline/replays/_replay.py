"""`replay_quarantine` replays the quarantine of one folder, in your Spark session or in a new session."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import asdict, replace

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.redaction import mask_settings
from cloudevents_kafka.primitives.text_table import format_table
from cloudevents_kafka.spark._java import clone_session
from cloudevents_kafka.spark._sql import write_settings
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed, WrongTable, failures_in_words
from cloudevents_kafka.spark.pipeline.landing import Landed, TablesTarget, open_sibling
from cloudevents_kafka.spark.pipeline.replays._replay_landing import ParquetReplay, Rows, TablesReplay
from cloudevents_kafka.spark.pipeline.replays._replay_notes import (
    LANDED,
    ReplayCounts,
    ReplayNote,
    ReplayNotes,
)
from cloudevents_kafka.spark.pipeline.replays._replay_options import ReplayOptions, has_landed, without
from cloudevents_kafka.spark.pipeline.session import check_in_process, local_session
from cloudevents_kafka.spark.pipeline.stores import (
    REPLAYS_FOLDER,
    InUse,
    LocalStore,
    Store,
    folder_lock,
    local_path,
    open_store,
    without_patterns,
)
from cloudevents_kafka.spark.table_formats import TABLE_FORMATS, SessionFormat, TableFormat
from cloudevents_kafka.spark.typed.fetching import RegistryFailed, SchemaFetcher
from cloudevents_kafka.spark.typed.schemas import has_avro, open_schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloudevents_kafka.spark.typed.framed import Writers
    from cloudevents_kafka.spark.udf import Mend


class ReplaySummary(ReplayCounts, frozen=True, kw_only=True):
    """The result of `replay_quarantine`.

    ``number`` is the number of the replay, or None if ``apply`` is false or the run has chosen no record.
    ``finished`` is the number of an earlier, unfinished replay, or None if there is no such replay. With
    ``apply``, the run has first finished this earlier replay; without ``apply``, it is still unfinished.
    ``outcomes`` counts records by their outcome: ``landed``; ``refused`` if the record is still not an event;
    ``unmended`` if the function ``mend`` returned None for the record; ``failed`` if ``mend`` raised an
    error. ``counts`` counts records by the verdict in the quarantine (the kind of error), then by the reason,
    then by the outcome. ``tables`` maps the name of each table to the number of its events with the outcome
    ``landed``. ``outcomes_table`` is the name of the table with the outcome of each record.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import ReplaySummary
        >>> counts = {"broken-event": {"id: is required": {"landed": 2, "refused": 1}}}
        >>> outcomes = {"landed": 2, "refused": 1}
        >>> print(ReplaySummary(outcomes=outcomes, counts=counts).to_text())
        3 records chosen: 2 would land, 1 would be refused; nothing was changed (--apply lands the events)
        ...
    """

    number: int | None = None
    finished: int | None = None
    outcomes_table: str = ""

    def to_json(self) -> str:
        """Return the summary as the text of one JSON object, indented."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def to_text(self) -> str:
        """Return the summary as text with an aligned table."""
        dry = self.number is None
        texts = ("would land", "would be refused") if dry else (LANDED, "refused again")
        words = dict(zip((LANDED, "refused"), texts, strict=True))
        sums = [f"{number:,} {words.get(name, name)}" for name, number in sorted(self.outcomes.items())]
        chosen = pluralize(sum(self.outcomes.values()), "record")
        lines = [f"{chosen} chosen{': ' if sums else ''}{', '.join(sums)}"]
        if dry:
            lines[0] += "; nothing was changed (--apply lands the events)" if sums else ""
        else:
            lines[0] += f" (replay {self.number}; outcomes in {self.outcomes_table})"
        if self.finished is not None:
            done = "is unfinished: --apply finishes it first" if dry else "of an earlier run was finished"
            lines.append(f"replay {self.finished} {done}")
        rows = [
            [verdict, reason, outcome, f"{number:,}"]
            for verdict, reasons in sorted(self.counts.items())
            for reason, by_outcome in sorted(reasons.items())
            for outcome, number in sorted(by_outcome.items())
        ]
        header = ["quarantined as", "reason", "outcome", "records"]
        return "\n\n".join([*lines, *([format_table(header, rows)] if rows else [])])


def replay_quarantine(
    options: ReplayOptions, *, spark: SparkSession | None = None, mend: Mend | None = None
) -> ReplaySummary:
    """Read records of a pipeline's quarantine again, and land the records that are events now.

    A record lands only once: a replay leaves out records that have landed in an earlier replay, but reads
    refused records again. The table ``quarantine_replays``, which is next to the table of the quarantine,
    contains the outcome of each record. Records are read with the installed version of the library, and with
    the extensions and event formats that are registered in the process.

    The function ``mend`` is called with each `Record` before the record is read. ``mend`` returns the record
    to read, or None to leave the record in the quarantine. An event lands with the topic, partition, offset
    and timestamp of the original record, even if ``mend`` returns a record with other values.

    With Delta and Iceberg tables, the pipeline may run at the same time as the replay. ``spark`` is your
    Spark session; without ``spark``, the function starts a local Spark. Raises `ValueError` if the option
    ``where`` is not an SQL condition on the columns of the quarantine. Raises `InUse` if another replay is
    running, or if a pipeline uses the same folder of Parquet files. Also raises `WrongTable`,
    `WrongCheckpoint`, `CountMismatch`, `PipelineFailed`, `NotOnConnect`, and the errors of `local_session`.

    Examples:
        >>> from cloudevents_kafka.spark import EventPipeline, PipelineOptions
        >>> from cloudevents_kafka.spark.pipeline import ReplayOptions, replay_quarantine
        >>> brokers = "localhost:9092"
        >>> options = PipelineOptions(bootstrap_servers=brokers, topics=("orders",), out="lake/", once=True)
        >>> summary = EventPipeline(options, spark=spark).run()
        >>> replay_quarantine(ReplayOptions(out="lake/", lenient=True, apply=True), spark=spark).outcomes
        {}
    """
    if spark is not None:
        check_in_process(spark)
    last = _local_batch(options.out)
    formats: list[SessionFormat] = [name for name in TABLE_FORMATS if last is None or last.to == name]
    if has_avro(options.schemas or (last.schemas if last else {})):
        formats.append("avro")
    with ExitStack() as stack:
        session = local_session(master=options.master, conf=options.conf, formats=formats, kafka=False)
        # The replay changes settings; those of the user's session stay.
        spark = stack.enter_context(session) if spark is None else clone_session(spark)
        store = open_store(options.out, spark)
        if options.apply:
            locked = "" if _last_batch(store).to == "parquet" else REPLAYS_FOLDER
            stack.enter_context(folder_lock(store.url(locked)))
        stack.enter_context(failures_in_words(lambda text: mask_settings(text, options.conf)))
        folder = _Folder(store, spark, options)
        folder.is_locked = options.apply and local_path(options.out) is not None
        return folder.replay(mend)


def replayed_kind(out: str) -> str | None:
    """Return the format of the tables in a local folder, or None if the folder is not local.

    Raises `WrongTable` if a local folder has no quarantine.
    """
    last = _local_batch(out)
    return None if last is None else last.to


def _local_batch(out: str) -> notes.BatchManifest | None:
    local = local_path(out)
    if local is None:
        return None
    if not local.is_dir():
        raise WrongTable(f"{out} is missing: it must be the folder of a pipeline that has landed records")
    return _last_batch(LocalStore(local))


def _last_batch(store: Store) -> notes.BatchManifest:
    """Return the manifest of the last batch; raise `WrongTable` if the folder has no quarantine."""
    last = notes.Manifests(store).last()
    url = store.url("")
    if last is None:
        raise WrongTable(f"{url} has no batch: it must be the folder of a pipeline that has landed records")
    if last.to not in {"parquet", *TABLE_FORMATS}:
        where = "in topics" if last.to == "kafka" else "by a function"
        raise WrongTable(
            f"the batches of {url} landed {where}, so there is no table of a quarantine: a replay needs "
            "tables of Parquet, Delta or Iceberg. Read the records with a consumer, and send them again"
        )
    return last


class _Folder:
    """The folder of a pipeline, the tables of the pipeline, and the replays of its quarantine."""

    is_locked = False
    """Whether this run has locked the folder, so that no other replay can be running. Without this lock, a
    replay is not withdrawn."""

    def __init__(self, store: Store, spark: SparkSession, options: ReplayOptions) -> None:
        self._store, self._spark, self._options = store, spark, options
        self._notes = ReplayNotes(store)
        last = _last_batch(store)
        read = notes.ReadSettings(
            lenient=options.lenient,
            routes=last.routes,
            schemas=last.schemas,
            rescue=last.rescue,
            writers=last.writers,
        )
        if options.schemas:
            schemas = open_schemas(spark, options.schemas, last.routes)
            read = replace(read, schemas=schemas, rescue=options.rescue, writers=None)
        self._ledger = last.ledger
        if last.to == "parquet":
            self._target: ParquetReplay | TablesReplay = ParquetReplay(store, spark, last.routes.values())
            self.outcomes_table = store.url(notes.OUTCOMES)
        else:
            open_table = cache(
                partial(open_sibling, spark, cast("TableFormat", last.to), store, options.table)
            )
            landed = Landed(store, str(last.to), in_notes=False)
            landed.recover()
            tables = TablesTarget(landed, open_table, read)
            tables.recover()  # also compares the tables with the notes
            self._ledger, read = landed.ledger, tables.fit()
            self._target = TablesReplay(open_table, last.routes.values(), spark)
            self.outcomes_table = open_table(notes.OUTCOMES).name
        self._read = read

    def replay(self, mend: Mend | None) -> ReplaySummary:
        """Run a replay; if ``apply`` is true, first finish or withdraw the last replay if necessary."""
        from cloudevents_kafka.spark.pipeline.replays._rereading import count_outcomes, read_again

        last, apply = self._notes.last(), self._options.apply
        unfinished = None if last is None or self._notes.is_complete(last) else last
        if apply and unfinished is not None:
            if self._is_withdrawn(unfinished):
                self._notes.withdraw(unfinished)
                return self.replay(mend)
            self._land(unfinished)
        # The number is read before the outcomes, so the outcomes contain all replays with lower numbers.
        number = self._target.next_number(0 if last is None else last.number) if apply else 0
        finished = None if unfinished is None else unfinished.number
        summary = ReplaySummary(finished=finished, outcomes_table=self.outcomes_table)
        rows = self._chosen()
        if rows is None:
            return summary
        again = read_again(rows, mend, self._read, self._fetcher())
        if apply:
            note = self._apply(again, number)
            counts = {name: asdict(note)[name] for name in ReplayCounts.__struct_fields__}
            return replace(summary, number=note.number if note.outcomes else None, **counts)
        kept = again.select("was", "outcome", "type").persist()  # because it is used twice
        try:
            return replace(summary, **count_outcomes(kept, self._read.routes))
        finally:
            kept.unpersist()

    def _is_withdrawn(self, note: ReplayNote) -> bool:
        """Return whether this run must withdraw a decided replay that had other options.

        The replay is withdrawn if no table has a row of the replay, and this run has locked the folder. The
        lock ensures that no other run adds a row of the replay to a table.
        """
        read = self._read
        noted = (note.routes, note.schemas, note.rescue, note.lenient)
        if noted == (read.routes, read.schemas, read.rescue, read.lenient):
            return False
        return self.is_locked and not self._target.has_landed(note)

    def _fetcher(self) -> Callable[[DataFrame], Writers | None]:
        """Return a function that finds the schemas with which the data of decoded events was written."""
        if self._options.schema_registry is None or not self._read.schemas:
            return lambda _: self._read.writers
        fetcher = SchemaFetcher(self._options.schema_registry, self._read.schemas)

        def fetch(decoded: DataFrame) -> Writers:
            try:
                return fetcher.fetch(decoded)
            except RegistryFailed as error:
                raise PipelineFailed(str(error), final=error.final) from error

        return fetch

    def _chosen(self) -> DataFrame | None:
        """Return the rows of the quarantine that the options choose and that no earlier replay has landed.

        Return None if the pipeline has no quarantine.
        """
        quarantine, outcomes = self._target.read(notes.QUARANTINE), self._target.read(notes.OUTCOMES)
        if quarantine is None:
            return None
        rows = self._options.choose(quarantine.where(has_landed(self._ledger)))
        return rows if outcomes is None else without(rows, outcomes.where(f"outcome = '{LANDED}'"))

    def _apply(self, again: DataFrame, number: int) -> ReplayNote:
        """Stage records and their outcomes; if there are any records, decide the replay and land it."""
        from cloudevents_kafka.spark.pipeline.replays._rereading import count_outcomes

        note = ReplayNote(
            number=number,
            run=uuid.uuid4().hex[:12],
            micros=time.time_ns() // 1000,
            routes=self._read.routes,
            lenient=self._read.lenient,
            schemas=self._read.schemas,
            rescue=self._read.rescue,
        )
        with write_settings(self._spark):
            again.write.parquet(self._store.url(f"{note.staging}/rows"))
        note = replace(note, **count_outcomes(self._staged(note), self._read.routes))
        if note.outcomes:
            note = self._target.prepare(note, self._rows(note))
            try:
                self._notes.decide(note)
            except InUse:
                self._store.remove(note.staging)
                raise
            self._land(note)
        else:
            self._store.remove(note.staging)
        return note

    def _land(self, note: ReplayNote) -> None:
        """Land the rows of a replay that was decided."""
        self._target.land(note, self._rows(note))
        self._notes.complete(note)

    def _rows(self, note: ReplayNote) -> Rows:
        """Return a function that takes the name of a table and returns the rows staged for this table.

        The staged rows of the table must exist before the returned function is called.
        """
        from cloudevents_kafka.spark.pipeline.replays._rereading import event_rows, outcome_rows

        def rows(table: str) -> DataFrame:
            staged = self._staged(note)
            return outcome_rows(staged, note) if table == notes.OUTCOMES else event_rows(staged, note, table)

        return rows

    def _staged(self, note: ReplayNote) -> DataFrame:
        path = f"{note.staging}/rows"
        if not self._store.list_files(path, ".parquet"):
            raise notes.WrongCheckpoint(
                f"{self._store.url(path)} must have the staged rows of replay {note.number}, but they were "
                "removed. Restore them"
            )
        return self._spark.read.parquet(without_patterns(self._store.url(path)))
