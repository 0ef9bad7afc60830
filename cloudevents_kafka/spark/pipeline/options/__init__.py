"""The options of a pipeline, with their checks, help texts and flags, and values derived from options."""

from cloudevents_kafka.spark.pipeline.options._backfill_range import BackfillRange
from cloudevents_kafka.spark.pipeline.options._options import PipelineOptions
from cloudevents_kafka.spark.pipeline.options._schemas import Rescue, SchemaRegistry, Schemas
