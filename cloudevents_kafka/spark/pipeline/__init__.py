"""A Spark job that writes CloudEvents from Kafka topics to tables, each record exactly once.

It can also call a function with each batch, in place of tables. `EventPipeline` runs the job, in a local
Spark that it starts or in your session. `PipelineOptions` has the settings (`to_java_settings` translates
those of librdkafka), and `Summary` is the result. `EventBatch` is the argument of a user's function.

Read `runs._event_pipeline` first, then `landing._lander`, which has the steps of a batch, from Spark's call
to its manifest, and names the modules that it uses. `runs` reads records, as a stream or a backfill.
`landing` has the offsets that have landed, and the targets: files, tables, a function. `batches` computes and
counts the rows of a batch; `tables` has their columns, and writes them. `notes` and `stores` read and write
the pipeline's files and Spark's checkpoint. `topics` detects topics that were created again. `watching` has
reports, metrics and thresholds. `replays` lands records of the quarantine, and `maintenance` cleans tables
up. `session` starts and stops a local Spark, `options` has the settings, and `_errors` the exceptions.
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
