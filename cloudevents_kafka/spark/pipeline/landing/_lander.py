"""`BatchLander` lands a batch in eight steps, from Spark's call to the manifest of the batch.

1. `BatchLander.land` receives the records from Spark's query, and reads the offsets of these records from the
   checkpoint.
2. `TopicMonitor` checks that the topics have the same ids as at the start of the run, because a topic may
   have been deleted and created again.
3. `Landed.plan` uses the ledger (the record of all landed offsets) to find offsets of the batch that have not
   landed.
4. If the options of the pipeline contain a schema registry, the schemas of the records' data are fetched from
   this registry. Unless the target is Parquet, `Landed.begin` then writes the offsets and the settings of the
   batch to the file ``begun.json``.
5. `Target.start` discards rows that were staged before, such as rows of another batch.
6. `BatchWriter` asks Spark to decode and count the records. If `Target.appends` returns a function, this
   function stages the rows of the batch while Spark counts the records. If `Target.appends` returns None,
   Spark stores the rows, and `BatchWriter` passes the rows to `Target.compare` and `Target.take`.
7. After Spark has read the records of the batch, `TopicMonitor` checks the ids of the topics again. Then
   `Target.commit` commits the staged rows of the batch.
8. `Landed.complete` creates the manifest (the file of a landed batch), and `Target.finish` does work that
   must follow the manifest, such as renaming files.

For each of these steps, the section "The life of a batch" in docs/design.md describes what happens if the
process is killed after this step. A batch of a backfill begins at step 4 of the eight steps. The unfinished
batch of an earlier run begins at step 5 if `Target.is_decided` returns True for this batch. If
`Target.is_decided` returns False, the unfinished batch begins at step 4.
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
    """Lands the batches of one query or of one backfill; a target receives the rows of the batches."""

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
        """Read the files in the folder ``_batches``, and finish the last landed batch if necessary.

        Return the number of the batch that was finished, or None if no batch had to be finished.
        """
        self._landed.recover()
        return self._target.recover()

    def check_start(self, query_id: str | None, committed: notes.BatchPlan | None) -> None:
        """Raise an error if the pipeline's folder, checkpoint and topics do not match; see `Landed.check`."""
        self.find_topics()
        self._landed.check(query_id, committed)
        self._landed.record_beginning(self.topic_ids, self._options.start if query_id is None else None)

    def finds(self, topic: str) -> bool:
        """Return True if the pipeline reads a topic and the topic exists; otherwise, return False."""
        return self._options.reads(topic) and self._topics.exists(topic)

    def find_topics(self) -> None:
        """Look up the ids of the pipeline's topics.

        Raises `TopicChanged` if a topic is missing, or was created again after its records have landed.
        """
        self.topic_ids = self._topics.check(self._landed.topic_ids, {})
        self.use_topic_ids()
        self._topics.check(self._landed.topic_ids, self._landed.landed)

    @property
    def partitions(self) -> dict[str, int]:
        """The number of partitions of each topic of the pipeline."""
        return self._topics.partitions

    def use_topic_ids(self) -> None:
        """Use the known ids of the topics to look up the landed offsets of these topics."""
        names = self._topics.names or tuple(self.topic_ids)
        self._landed.use_topic_ids({name: self.topic_ids.get(name, "") for name in names})

    def source_options(self) -> dict[str, str]:
        """Return the options of Spark's source.

        A query with a new checkpoint begins after the records that have landed in the pipeline's tables. If
        batches of an earlier checkpoint have landed, the query reads each partition without landed records
        from the first record of the partition. With the earlier checkpoint, Spark would also read such a
        partition from its first record.
        """
        options = self._options.source_options()
        if self._checkpoint.query_id() is None:
            start = options["startingOffsets"] if self._landed.last is None else "earliest"
            options["startingOffsets"] = find_starts(start, self._landed.landed, self._topics)
        return options

    def check_topics(self, plan: notes.BatchPlan | None = None, **timeout: float) -> dict[str, str]:
        """Return the topics' ids; raise `TopicChanged` if the ids have changed since the start of the run."""
        known = {**self._landed.topic_ids, **self.topic_ids}
        return self._topics.check(known, self._landed.landed, plan.ranges if plan else None, **timeout)

    def finish_begun(self, spark: SparkSession) -> int | None:
        """If an earlier run left an unfinished batch, land it and return its number; if not, return None."""
        batch = self._landed.begun()
        return None if batch is None else self.finish(spark, batch).number

    def land(self, records: DataFrame, batch: int, query_id: str) -> notes.BatchManifest | None:
        """Land a batch that Spark has planned, and return its manifest.

        Return None if all records of the batch have landed before.
        """
        began = time.monotonic()
        plan = self._checkpoint.plan(batch)
        topic_ids = self.check_topics(plan)
        if topic_ids.keys() - self.topic_ids.keys():  # with topic_pattern, topics may be added later
            self.topic_ids |= topic_ids
            self.use_topic_ids()
        planned = self._landed.plan(plan, query_id, topic_ids)
        if planned is None:
            return None
        begun = self._begin(planned, records, plan.ranges)
        return self._finish(begun, records, time.monotonic() - began)

    def land_gap(self, spark: SparkSession, offsets: notes.OffsetRanges) -> notes.BatchManifest:
        """Land the records at offsets that no pipeline has landed, and return the manifest of this batch."""
        records = self._records(spark, offsets)
        planned = self._landed.plan_gap(offsets, self.topic_ids)
        return self._finish(self._begin(planned, records, offsets), records)

    def finish(self, spark: SparkSession, batch: notes.BegunBatch) -> notes.BatchManifest:
        """Land an unfinished batch of an earlier run, and return its manifest.

        If `Target.is_decided` returns True for the batch, the batch is read with the settings that the
        earlier run used. If `Target.is_decided` returns False for the batch, the batch is read with the
        settings of this run. Raises `TopicChanged` if a topic of the batch was deleted.
        """
        self._topics.check_ids(batch.ids, batch.offsets)
        records = self._records(spark, batch.offsets)
        if self._target.is_decided(batch):
            # Notes of earlier versions do not contain the option upsert, which is the same for all batches of
            # a table.
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
        """Write the file ``begun.json``, and return the batch with the settings of this run."""
        read = replace(self._read, writers=self._find_writers(records, offsets))
        return self._landed.begin(planned, read, in_java=self._writer.starts_in_java(records))

    def _finish(
        self, batch: notes.BegunBatch, records: DataFrame, checked: float = 0.0
    ) -> notes.BatchManifest:
        """Write and commit a batch; ``checked`` is the duration of the batch's earlier checks, in seconds."""
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
        """Stage the rows of a batch, and return the counts of the batch.

        If the batch has records that Spark's source cannot read, librdkafka reads these records.
        """
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
        """If a batch is waiting for a schema registry, stop this wait.

        Any thread may call this method.
        """
        if self._fetcher is not None:
            self._fetcher.end()

    def _find_writers(self, records: DataFrame, offsets: notes.OffsetRanges) -> Writers | None:
        """Fetch the schemas with which serializers have written the records' data; return these schemas.

        Raises `PipelineFailed` if the schema registry does not answer.
        """
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
