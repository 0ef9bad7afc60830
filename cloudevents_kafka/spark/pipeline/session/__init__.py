"""The Spark session of a pipeline: its jars, settings, scratch folder, and logins of Java's Kafka client."""

from cloudevents_kafka.spark.pipeline.session._archiving import write_class_archive
from cloudevents_kafka.spark.pipeline.session._bootstrap import check_reachable
from cloudevents_kafka.spark.pipeline.session._java_settings import (
    OAUTH_HANDLER,
    OAUTH_OPTIONS,
    allow_token_endpoint,
    to_java_settings,
)
from cloudevents_kafka.spark.pipeline.session._session import SparkFailed, check_in_process, local_session
