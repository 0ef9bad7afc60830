"""The Spark session of a pipeline: its jars, settings and scratch folder."""

from cloudevents_kafka.spark.pipeline.session._archiving import write_class_archive
from cloudevents_kafka.spark.pipeline.session._bootstrap import check_reachable
from cloudevents_kafka.spark.pipeline.session._session import SparkFailed, check_in_process, local_session
