"""A Spark job that writes CloudEvents from Kafka topics to tables, each record exactly once.

Instead of writing tables, the job can also call a function with each batch. `EventPipeline` runs the job in
your Spark session, or in a local Spark that `EventPipeline` starts. The class `PipelineOptions` contains the
settings of the job, and the function `to_java_settings` translates librdkafka's settings into settings of the
Java client. The class `Summary` is the result of a run, and `EventBatch` is the argument of a user's
function.

Read the module `runs._event_pipeline` first. Then read the module `landing._lander`, which lists the steps of
a batch. After that, read the modules that these steps use. The package `runs` reads records, as a stream or a
backfill. The package `landing` writes each batch to a target: to files, to tables, or to a function. The
package `landing` also knows which records have already been written. The package `batches` computes and
counts the rows of a batch. The package `tables` defines the columns of a batch's rows, and writes the rows.
The packages `notes` and `stores` read and write the pipeline's files and Spark's checkpoint. The package
`topics` detects topics that were deleted and created again. The package `watching` contains reports, metrics
and thresholds. The package `replays` reads the records of the quarantine again, and lands the records that
are events now. The package `maintenance` optimizes and vacuums tables, and counts their rows. The package
`session` starts and stops a local Spark, the package `options` contains the settings, and the module
`_errors` contains the exceptions.
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
