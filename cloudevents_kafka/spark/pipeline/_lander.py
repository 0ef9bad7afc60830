"""`BatchLander`: lands Spark's batches one after another, each between two checks of the topics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from cloudevents_kafka.spark.pipeline._checkpoint import Checkpoint
from cloudevents_kafka.spark.pipeline._counts import BatchCounts
from cloudevents_kafka.spark.pipeline._landing import Landing
from cloudevents_kafka.spark.pipeline._manifests import BatchManifest, BegunBatch
from cloudevents_kafka.spark.pipeline._offsets import BatchPlan, subtract_landed
from cloudevents_kafka.spark.pipeline._options import PipelineOptions
from cloudevents_kafka.spark.pipeline._topics import TopicMonitor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloudevents_kafka.spark.pipeline._batch import BatchWriter


class BatchLander:
    """Lands the batches of one query."""

    def __init__(
        self,
        options: PipelineOptions,
        landing: Landing,
        checkpoint: Checkpoint,
        topics: TopicMonitor,
        writer: BatchWriter,
        *,
        topic_ids: Mapping[str, str] | None = None,
    ) -> None:
        self._options = options
        self._landing = landing
        self._checkpoint = checkpoint
        self._topics = topics
        self._writer = writer
        self.topic_ids = dict(topic_ids or {})

    def check_start(self, query_id: str | None, committed: BatchPlan | None) -> None:
        """Raise an error if folder, checkpoint and topics do not match; see `Landing.check`."""
        self._landing.check_layout("event_date" if self._options.date_of == "time" else "record_date")
        self._landing.check(query_id, committed)
        self.topic_ids = self._topics.check(self._landing.topic_ids, self._landing.landed)
        self._landing.record_topic_ids(self.topic_ids)

    def check_topics(self, plan: BatchPlan | None = None, **timeout: float) -> dict[str, str]:
        """Return the topics' ids; raise `TopicChanged` if they differ from those at the start."""
        known = {**self._landing.topic_ids, **self.topic_ids}
        return self._topics.check(known, self._landing.landed, plan.ranges if plan else None, **timeout)

    def finish_begun(self, spark: SparkSession) -> int | None:
        """Land the batch that an earlier run has begun; return its number."""
        batch = self._landing.begun()
        if batch is None:
            return None
        options = self._options.batch_options(batch.offsets)
        records = spark.read.format("kafka").options(**options).load()
        self._landing.finish(batch, partial(self._write, records))
        return batch.number

    def land(self, records: DataFrame, batch: int, query_id: str) -> BatchManifest | None:
        """Land a batch of Spark; return its manifest, or None if all its records have landed before."""
        plan = self._checkpoint.plan(batch)
        topic_ids = self.check_topics(plan)
        return self._landing.land(
            plan,
            query_id,
            topic_ids,
            partial(self._write, records),
            in_java=self._writer.starts_in_java(records),
            lenient=self._options.lenient,
        )

    def _write(self, records: DataFrame, folder: str, batch: BegunBatch) -> BatchCounts:
        from cloudevents_kafka.spark.pipeline._tables import filter_offsets

        if batch.offsets != subtract_landed(batch.planned, {}):
            records = filter_offsets(records, batch.offsets)
        counts = self._landing.write_rows(self._writer, records, folder, batch)
        self.check_topics()  # Spark has read the records, and they have not landed yet
        return counts
