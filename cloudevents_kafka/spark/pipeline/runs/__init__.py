"""The runs of a pipeline: each run reads records as a stream or as a backfill.

A `Stream` or a `Backfill` reads records, a `BatchLander` lands the records in batches, and a `Watch` reports
the batches.
"""

from cloudevents_kafka.spark.pipeline.runs._event_pipeline import EventPipeline
