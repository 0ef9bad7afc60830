"""A Spark job that writes CloudEvents from Kafka topics to tables, each record exactly once.

It also calls a function with each batch, in place of tables.

`EventPipeline` runs it, in a Spark of its own or in a session of yours. `PipelineOptions` has the
settings (`to_java_settings` translates those of librdkafka), `Summary` the result. `EventBatch` is what
a function of the user is called with.

Read `runs._event_pipeline` first, then `landing._lander`, which has the steps of a batch, from Spark's
call to its manifest, and names the modules that it uses. `runs` has the readers, a stream or a
backfill, and what watches them. `landing` knows what has landed, and has the targets: files, tables, a
function. `batches` computes the rows of a batch and counts them, and `tables` has their columns and
writes them. `notes` and `stores` have what is known about batches, and Spark's checkpoint. `topics`
notices topics that were created again, and `watching` has reports, metrics and thresholds. `replays` lands
records of the quarantine, and `maintenance` looks after tables. `session` starts and stops a local Spark.
`options` has the settings, and what earlier versions had. A user reads `_errors`, too.
"""

from __future__ import annotations

from cloudevents_kafka.spark.kafka_settings import to_java_settings
from cloudevents_kafka.spark.pipeline._errors import NotOnConnect, PipelineError, PipelineFailed, WrongTable
from cloudevents_kafka.spark.pipeline.landing import EventBatch, WrongStore
from cloudevents_kafka.spark.pipeline.notes import (
    BatchCounts,
    CountMismatch,
    GapCounts,
    PartitionCounts,
    WrongCheckpoint,
)
from cloudevents_kafka.spark.pipeline.options import PipelineOptions
from cloudevents_kafka.spark.pipeline.replays import ReplayOptions, ReplaySummary, replay_quarantine
from cloudevents_kafka.spark.pipeline.runs import EventPipeline
from cloudevents_kafka.spark.pipeline.session import SparkFailed, local_session
from cloudevents_kafka.spark.pipeline.stores import FolderFailed, InUse
from cloudevents_kafka.spark.pipeline.topics import TopicChanged
from cloudevents_kafka.spark.pipeline.watching import BatchProgress, Summary, Threshold, ThresholdCrossed

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
