"""The files in which a pipeline stores the offsets and the manifests of its batches."""

from cloudevents_kafka.spark.pipeline.notes._checkpoint import (
    CHECKPOINT,
    BatchPlan,
    Checkpoint,
    WrongCheckpoint,
)
from cloudevents_kafka.spark.pipeline.notes._counts import (
    BatchCounts,
    CountMismatch,
    GapCounts,
    PartitionCounts,
)
from cloudevents_kafka.spark.pipeline.notes._ledger import (
    REPLAYS,
    Ledger,
    LedgerEntry,
    OffsetRange,
    OffsetRanges,
    format_ranges,
    iter_partitions,
)
from cloudevents_kafka.spark.pipeline.notes._manifests import (
    BATCHES,
    BatchManifest,
    Beginning,
    BegunBatch,
    Manifests,
    PlannedBatch,
    ReadSettings,
    TopicIds,
)
from cloudevents_kafka.spark.pipeline.notes._routes import (
    EVENTS,
    OUTCOMES,
    QUARANTINE,
    TABLE,
    TABLES,
    Kind,
    check_routes,
    check_topic,
    table_for,
    table_names,
)
from cloudevents_kafka.spark.pipeline.notes._upsert import DELETED, Upsert, attribute_sql
