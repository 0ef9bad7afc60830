"""The notes of a pipeline: files which say what offsets a batch has, and which batches have landed."""

from cloudevents_kafka.spark.pipeline.notes._checkpoint import CHECKPOINT, Checkpoint, WrongCheckpoint
from cloudevents_kafka.spark.pipeline.notes._connect_manifests import ConnectManifests
from cloudevents_kafka.spark.pipeline.notes._counts import OTHERS, BatchCounts, CountMismatch, PartitionCounts
from cloudevents_kafka.spark.pipeline.notes._file_manifests import FileManifests
from cloudevents_kafka.spark.pipeline.notes._ledger import Entry, Ledger
from cloudevents_kafka.spark.pipeline.notes._manifests import (
    BATCHES,
    BatchManifest,
    Beginning,
    BegunBatch,
    FirstTopicIds,
    Manifests,
    TopicIds,
)
from cloudevents_kafka.spark.pipeline.notes._offsets import (
    BatchPlan,
    OffsetRange,
    OffsetRanges,
    add_landed,
    find_range,
    format_ranges,
    iter_partitions,
    subtract_landed,
)
from cloudevents_kafka.spark.pipeline.notes._routes import (
    EVENTS,
    QUARANTINE,
    TABLE,
    TABLES,
    Target,
    check_routes,
    check_topic,
    route_regex,
    table_for,
    topic_names,
)
