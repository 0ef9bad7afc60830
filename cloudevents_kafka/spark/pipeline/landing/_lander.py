"""`BatchLander`: lands Spark's batches one after another, each between two checks of the topics."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline._options import PipelineOptions
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.topics import TopicMonitor, find_starts
from cloudevents_kafka.spark.typed.fetching import RegistryFailed, SchemaFetcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter
    from cloudevents_kafka.spark.typed.framed import Writers

_Begun = TypeVar("_Begun", notes.BegunBatch, notes.BegunBatch | None)


@dataclass
class BatchLander:
    """Lands the batches of one query."""

    _options: PipelineOptions
    _landing: Landing
    _checkpoint: notes.Checkpoint
    _topics: TopicMonitor
    _writer: BatchWriter
    topic_ids: dict[str, str] = field(default_factory=dict)
    _fetcher: SchemaFetcher | None = None

    def check_start(self, query_id: str | None, committed: notes.BatchPlan | None) -> None:
        """Raise an error if folder, checkpoint and topics do not match; see `Landing.check`."""
        self.find_topics()
        self._landing.check(query_id, committed)
        self._landing.record_beginning(self.topic_ids, self._options.start if query_id is None else None)

    def find_topics(self) -> None:
        """Look up the ids of the topics; raise `TopicChanged` if a topic is another than has landed."""
        self.topic_ids = self._topics.check(self._landing.topic_ids, {})
        self.use_topic_ids()
        self._topics.check(self._landing.topic_ids, self._landing.landed)

    @property
    def partitions(self) -> dict[str, int]:
        """The numbers of partitions of the topics."""
        return self._topics.partitions

    def use_topic_ids(self) -> None:
        """Let the landing be about the topics with the known ids."""
        names = self._topics.names or tuple(self.topic_ids)
        self._landing.use_topic_ids({name: self.topic_ids.get(name, "") for name in names})

    def source_options(self) -> dict[str, str]:
        """Return the options of Spark's source; a new checkpoint begins behind what the tables have."""
        options = self._options.source_options()
        if self._checkpoint.query_id() is None:
            start = find_starts(options["startingOffsets"], self._landing.landed, self._topics)
            options["startingOffsets"] = start
        return options

    def check_topics(self, plan: notes.BatchPlan | None = None, **timeout: float) -> dict[str, str]:
        """Return the topics' ids; raise `TopicChanged` if they differ from those at the start."""
        known = {**self._landing.topic_ids, **self.topic_ids}
        return self._topics.check(known, self._landing.landed, plan.ranges if plan else None, **timeout)

    def finish_begun(self, spark: SparkSession) -> int | None:
        """Land the batch that an earlier run has begun; return its number."""
        batch = self._landing.begun()
        return None if batch is None else self.finish(spark, batch).number

    def land(self, records: DataFrame, batch: int, query_id: str) -> notes.BatchManifest | None:
        """Land a batch of Spark; return its manifest, or None if all its records have landed before."""
        began = time.monotonic()
        plan = self._checkpoint.plan(batch)
        topic_ids = self.check_topics(plan)
        if topic_ids.keys() - self.topic_ids.keys():  # of topics by a pattern, some may come later
            self.topic_ids |= topic_ids
            self.use_topic_ids()
        begin = partial(self._landing.begin, plan, query_id, topic_ids)
        begun = self._begin(begin, records, plan.ranges)
        return None if begun is None else self._finish(begun, records, time.monotonic() - began)

    def stop_waiting(self) -> None:
        """Let a batch that waits for a schema registry end now, before it has begun; called in any thread."""
        if self._fetcher is not None:
            self._fetcher.end()

    def land_gap(self, spark: SparkSession, offsets: notes.OffsetRanges) -> notes.BatchManifest:
        """Land offsets that no pipeline has landed, apart from what Spark plans; return the manifest."""
        records = self._read(spark, offsets)
        begin = partial(self._landing.begin_gap, offsets, self.topic_ids)
        return self._finish(self._begin(begin, records, offsets), records)

    def finish(self, spark: SparkSession, batch: notes.BegunBatch) -> notes.BatchManifest:
        """Land a batch that was begun, as its note says if that decides; return its manifest."""
        records = self._read(spark, batch.offsets)
        if not self._landing.is_decided(batch):
            batch = self._begin(partial(self._landing.begin_again, batch), records, batch.offsets)
        return self._finish(batch, records)

    def _begin(self, begin: Callable[..., _Begun], records: DataFrame, offsets: notes.OffsetRanges) -> _Begun:
        """Return the batch that a function begins, to be read by the options of this start."""
        self._landing.find_writers = partial(self._find_writers, records, offsets)
        return begin(in_java=self._writer.starts_in_java(records), lenient=self._options.lenient)

    def _find_writers(self, records: DataFrame, offsets: notes.OffsetRanges) -> Writers | None:
        """Return what a schema registry knows of framed data; raise `PipelineFailed` if it is away."""
        from cloudevents_kafka.spark.pipeline.batches import is_out_of_range, read_out_of_range

        if self._options.schema_registry is None:
            return None
        try:
            return self._fetch(records)
        except RegistryFailed as error:
            raise PipelineFailed(self._options.redact(str(error)), final=error.final) from error
        except Exception as error:
            if not is_out_of_range(error):
                raise
        spark, options = records.sparkSession, self._options.batch_options
        return self._fetch(read_out_of_range(spark, offsets, options, self._topics.warn))

    def _fetch(self, records: DataFrame) -> Writers:
        from cloudevents_kafka.spark.decode import decode_events

        fetcher = self._fetcher or SchemaFetcher(self._options.schema_registry, self._landing.schemas)
        self._fetcher = fetcher
        return fetcher.fetch(decode_events(records, keep=["headers"], lenient=self._options.lenient))

    def _read(self, spark: SparkSession, offsets: notes.OffsetRanges) -> DataFrame:
        return spark.read.format("kafka").options(**self._options.batch_options(offsets)).load()

    def _write(self, batch: notes.BegunBatch, records: DataFrame) -> notes.BatchCounts:
        """Return the counts of a batch that is written, also of records that Spark's source cannot read."""
        from cloudevents_kafka.spark.pipeline.batches import is_out_of_range, read_out_of_range

        try:
            return self._landing.write(self._writer, records, batch)
        except Exception as error:
            if not is_out_of_range(error):
                raise
        spark, options = records.sparkSession, self._options.batch_options
        records = read_out_of_range(spark, batch.offsets, options, self._topics.warn)
        return self._landing.write(self._writer, records, batch)

    def _finish(
        self, batch: notes.BegunBatch, records: DataFrame, checked: float = 0.0
    ) -> notes.BatchManifest:
        """Write and complete a batch that was begun; ``checked`` are the seconds of the checks before."""
        from cloudevents_kafka.spark.pipeline.tables import filter_offsets

        if batch.offsets != notes.Ledger().left({}, batch.planned):
            records = filter_offsets(records, batch.offsets)
        times = [time.monotonic()]
        counts = self._write(batch, records)
        times.append(time.monotonic())
        self.check_topics()  # Spark has read the records, and they have not landed yet
        times.append(time.monotonic())
        manifest = self._landing.complete(batch, counts)
        write, check = (later - earlier for earlier, later in pairwise(times))
        seconds = {"check": checked + check, "write": write, "commit": time.monotonic() - times[-1]}
        return replace(manifest, seconds=seconds)
