"""`BatchLander`: the way of a batch, from Spark's call to its manifest.

1. `land` gets the records from Spark's query, and reads in the checkpoint which offsets these are.
2. `TopicMonitor` compares the topics with those at the start: one may have been created again.
3. `Landed.plan` decides by the ledger which of the offsets have not landed.
4. What a schema registry knows of their data is fetched, and `Landed.begin` notes the batch.
5. `Target.start` forgets what was staged of another batch.
6. `BatchWriter` has Spark decode and count the records while what `Target.appends` returns stages the rows;
   or it keeps the rows for `Target.compare` and `Target.take`.
7. The topics are compared again, now that Spark has read the records, and `Target.commit` commits the rows.
8. `Landed.complete` creates the manifest, and `Target.finish` does what is left.

The life of a batch in docs/design.md has what is there after a kill at each step. A backfill begins at
step 4, and so does a batch that an earlier run has left unfinished.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.landing._landed import Landed
from cloudevents_kafka.spark.pipeline.landing._target import Target
from cloudevents_kafka.spark.pipeline.options import PipelineOptions
from cloudevents_kafka.spark.pipeline.tables import filter_offsets
from cloudevents_kafka.spark.pipeline.topics import TopicMonitor, find_starts
from cloudevents_kafka.spark.typed.fetching import RegistryFailed, SchemaFetcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter
    from cloudevents_kafka.spark.typed.framed import Writers


@dataclass
class BatchLander:
    """Lands the batches of one query in a target, by the settings of this start."""

    _options: PipelineOptions
    _landed: Landed
    _target: Target
    _read: notes.ReadSettings
    _checkpoint: notes.Checkpoint
    _topics: TopicMonitor
    _writer: BatchWriter
    topic_ids: dict[str, str] = field(default_factory=dict)
    _fetcher: SchemaFetcher | None = None

    def recover(self) -> int | None:
        """Read the notes; return the number of a landed batch that had to be finished, or None."""
        self._landed.recover()
        return self._target.recover()

    def check_start(self, query_id: str | None, committed: notes.BatchPlan | None) -> None:
        """Raise an error if folder, checkpoint and topics do not match; see `Landed.check`."""
        self.find_topics()
        self._landed.check(query_id, committed)
        self._landed.record_beginning(self.topic_ids, self._options.start if query_id is None else None)

    def find_topics(self) -> None:
        """Look up the ids of the topics; raise `TopicChanged` if a topic is another than has landed."""
        self.topic_ids = self._topics.check(self._landed.topic_ids, {})
        self.use_topic_ids()
        self._topics.check(self._landed.topic_ids, self._landed.landed)

    @property
    def partitions(self) -> dict[str, int]:
        """The numbers of partitions of the topics."""
        return self._topics.partitions

    def use_topic_ids(self) -> None:
        """Let what has landed be about the topics with the known ids."""
        names = self._topics.names or tuple(self.topic_ids)
        self._landed.use_topic_ids({name: self.topic_ids.get(name, "") for name in names})

    def source_options(self) -> dict[str, str]:
        """Return the options of Spark's source; a new checkpoint begins behind what the tables have."""
        options = self._options.source_options()
        if self._checkpoint.query_id() is None:
            start = find_starts(options["startingOffsets"], self._landed.landed, self._topics)
            options["startingOffsets"] = start
        return options

    def check_topics(self, plan: notes.BatchPlan | None = None, **timeout: float) -> dict[str, str]:
        """Return the topics' ids; raise `TopicChanged` if they differ from those at the start."""
        known = {**self._landed.topic_ids, **self.topic_ids}
        return self._topics.check(known, self._landed.landed, plan.ranges if plan else None, **timeout)

    def finish_begun(self, spark: SparkSession) -> int | None:
        """Land the batch that an earlier run has left unfinished; return its number."""
        batch = self._landed.begun()
        return None if batch is None else self.finish(spark, batch).number

    def land(self, records: DataFrame, batch: int, query_id: str) -> notes.BatchManifest | None:
        """Land a batch of Spark; return its manifest, or None if all its records have landed before."""
        began = time.monotonic()
        plan = self._checkpoint.plan(batch)
        topic_ids = self.check_topics(plan)
        if topic_ids.keys() - self.topic_ids.keys():  # of topics by a pattern, some may come later
            self.topic_ids |= topic_ids
            self.use_topic_ids()
        planned = self._landed.plan(plan, query_id, topic_ids)
        if planned is None:
            return None
        begun = self._begin(planned, records, plan.ranges)
        return self._finish(begun, records, time.monotonic() - began)

    def land_gap(self, spark: SparkSession, offsets: notes.OffsetRanges) -> notes.BatchManifest:
        """Land offsets that no pipeline has landed, apart from what Spark plans; return the manifest."""
        records = self._records(spark, offsets)
        planned = self._landed.plan_gap(offsets, self.topic_ids)
        return self._finish(self._begin(planned, records, offsets), records)

    def finish(self, spark: SparkSession, batch: notes.BegunBatch) -> notes.BatchManifest:
        """Land a batch that was begun, as its note says if `Target.is_decided`; return its manifest."""
        records = self._records(spark, batch.offsets)
        if self._target.is_decided(batch):
            # Earlier versions did not note how records change rows, which stays the same.
            batch = replace(batch, upsert=batch.upsert or self._read.upsert)
        else:
            planned = notes.PlannedBatch.of(batch)
            batch = self._begin(planned, records, batch.offsets)
        return self._finish(batch, records)

    def _records(self, spark: SparkSession, offsets: notes.OffsetRanges) -> DataFrame:
        return spark.read.format("kafka").options(**self._options.batch_options(offsets)).load()

    def _begin(
        self, planned: notes.PlannedBatch, records: DataFrame, offsets: notes.OffsetRanges
    ) -> notes.BegunBatch:
        """Begin a batch, to be read by the options of this start."""
        read = replace(self._read, writers=self._find_writers(records, offsets))
        return self._landed.begin(planned, read, in_java=self._writer.starts_in_java(records))

    def _finish(
        self, batch: notes.BegunBatch, records: DataFrame, checked: float = 0.0
    ) -> notes.BatchManifest:
        """Write and commit a batch that was begun; ``checked`` are the seconds of the checks before."""
        if batch.offsets != notes.Ledger().left({}, batch.planned):
            records = filter_offsets(records, batch.offsets)
        times = [time.monotonic()]
        counts = self._write(batch, records).check()
        times.append(time.monotonic())
        self.check_topics()  # Spark has read the records, and they have not landed yet
        times.append(time.monotonic())
        committed = self._target.commit(batch, counts)
        manifest = self._landed.complete(batch, counts, committed)
        self._target.finish(manifest)
        write, check = (later - earlier for earlier, later in pairwise(times))
        seconds = {"check": checked + check, "write": write, "commit": time.monotonic() - times[-1]}
        return replace(manifest, seconds=seconds)

    def _write(self, batch: notes.BegunBatch, records: DataFrame) -> notes.BatchCounts:
        """Stage the rows of a batch, also of records that Spark's source cannot read; return the counts."""
        from cloudevents_kafka.spark.pipeline.batches import is_out_of_range

        try:
            return self._stage(batch, records)
        except Exception as error:
            if not is_out_of_range(error):
                raise
        return self._stage(batch, self._in_parts(records.sparkSession, batch.offsets))

    def _stage(self, batch: notes.BegunBatch, records: DataFrame) -> notes.BatchCounts:
        target = self._target
        counts = target.start(records.sparkSession, batch)
        if counts is not None:
            return counts
        if append := target.appends(batch):
            return self._writer.write(records, batch, append)
        return self._writer.write_kept(records, batch, target.take, target.compare)

    def _in_parts(self, spark: SparkSession, offsets: notes.OffsetRanges) -> DataFrame:
        from cloudevents_kafka.spark.pipeline.batches import read_out_of_range

        return read_out_of_range(spark, offsets, self._options.batch_options, self._topics.warn)

    def stop_waiting(self) -> None:
        """Let a batch that waits for a schema registry end now, before it has begun; called in any thread."""
        if self._fetcher is not None:
            self._fetcher.end()

    def _find_writers(self, records: DataFrame, offsets: notes.OffsetRanges) -> Writers | None:
        """Return what a schema registry knows of framed data; raise `PipelineFailed` if it is silent."""
        from cloudevents_kafka.spark.pipeline.batches import is_out_of_range

        if self._options.schema_registry is None:
            return None
        try:
            return self._fetch(records)
        except RegistryFailed as error:
            raise PipelineFailed(self._options.redact(str(error)), final=error.final) from error
        except Exception as error:
            if not is_out_of_range(error):
                raise
        return self._fetch(self._in_parts(records.sparkSession, offsets))

    def _fetch(self, records: DataFrame) -> Writers:
        from cloudevents_kafka.spark.decode import decode_events

        fetcher = self._fetcher or SchemaFetcher(self._options.schema_registry, self._read.schemas)
        self._fetcher = fetcher
        return fetcher.fetch(decode_events(records, keep=["headers"], lenient=self._read.lenient))
