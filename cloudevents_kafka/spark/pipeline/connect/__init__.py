"""Pipelines on Spark Connect, whose batches a function on the server lands."""

from cloudevents_kafka.spark.pipeline.connect._connect_job import ConnectJob, check_connect
