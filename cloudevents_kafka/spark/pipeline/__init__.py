"""A Spark job that writes CloudEvents from Kafka topics to tables, each record exactly once.

It also writes to other topics, or calls a function with each batch.

`EventPipeline` runs it, in a Spark of its own or in a session of yours. `PipelineOptions` has the
settings (`to_java_settings` translates those of librdkafka), `Summary` the result. `EventBatch` is what
a function of the user is called with.

Read `_event_pipeline`, `_job` and `_lander` first, then `_batch`, which writes the records of a batch
(`_batch_rows` reads them, `_observed` counts them meanwhile, `_tables` has the columns, `_parquet` the
files), and `_landing`, which explains the folder and the commit protocol. `_table_landing`,
`_topic_landing` and `_function_landing` land elsewhere; `_targets` chooses one of them, and `_routes` has
the tables by type.
`_manifests`, `_offsets`, `_counts` and `_store` are their parts; `_checkpoint` reads Spark's checkpoint;
`_topics` notices topics that were created again; `watching` has metrics and thresholds. A user reads
`_reports` and `_errors`. `_connect_job` is the job on Spark Connect, where `_connect_function` lands
batches on the server; `replays` lands records of the quarantine, `backfill` gaps. `_session` starts and
stops a local Spark, and `_bootstrap` looks for a broker before;
`_options` has the settings, and `_java_settings` translates those of librdkafka.
"""

from __future__ import annotations

from cloudevents_kafka.spark.pipeline._errors import NotOnConnect, PipelineError, PipelineFailed, WrongTable
from cloudevents_kafka.spark.pipeline._event_pipeline import EventPipeline
from cloudevents_kafka.spark.pipeline._options import PipelineOptions
from cloudevents_kafka.spark.pipeline._reports import BatchProgress, Summary
from cloudevents_kafka.spark.pipeline.landing import EventBatch, WrongStore
from cloudevents_kafka.spark.pipeline.notes import (
    BatchCounts,
    CountMismatch,
    GapCounts,
    PartitionCounts,
    WrongCheckpoint,
)
from cloudevents_kafka.spark.pipeline.replays import ReplayOptions, ReplaySummary, replay_quarantine
from cloudevents_kafka.spark.pipeline.session import SparkFailed, local_session, to_java_settings
from cloudevents_kafka.spark.pipeline.stores import FolderFailed, InUse
from cloudevents_kafka.spark.pipeline.topics import TopicChanged
from cloudevents_kafka.spark.pipeline.watching import Threshold, ThresholdCrossed

__all__ = [
    "BatchCounts",
    "BatchProgress",
    "CountMismatch",
    "EventBatch",
    "EventPipeline",
    "FolderFailed",
    "GapCounts",
    "InUse",
    "NotOnConnect",
    "PartitionCounts",
    "PipelineError",
    "PipelineFailed",
    "PipelineOptions",
    "ReplayOptions",
    "ReplaySummary",
    "SparkFailed",
    "Summary",
    "Threshold",
    "ThresholdCrossed",
    "TopicChanged",
    "WrongCheckpoint",
    "WrongStore",
    "WrongTable",
    "local_session",
    "replay_quarantine",
    "to_java_settings",
]
