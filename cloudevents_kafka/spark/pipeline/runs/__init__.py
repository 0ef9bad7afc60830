"""Runs of a pipeline: a `Stream` or a `Backfill` reads, a `BatchLander` lands, and a `Watch` watches."""

from cloudevents_kafka.spark.pipeline.runs._event_pipeline import EventPipeline
