"""The rows of one micro-batch: decoded, counted while they are written, and those that Python reads."""

from cloudevents_kafka.spark.pipeline.batches._batch import BatchWriter
