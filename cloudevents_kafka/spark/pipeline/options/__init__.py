"""The options of a pipeline: fields, which have their checks, help and flags, and what derives from them."""

from cloudevents_kafka.spark.pipeline.options._backfill_range import BackfillRange
from cloudevents_kafka.spark.pipeline.options._options import PipelineOptions
from cloudevents_kafka.spark.pipeline.options._schemas import Rescue, SchemaRegistry, Schemas
