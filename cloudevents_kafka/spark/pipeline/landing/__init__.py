"""The steps in which a batch lands exactly once, and the targets: files, tables, or a function."""

from cloudevents_kafka.spark.pipeline.landing._function_target import EachBatch, EventBatch
from cloudevents_kafka.spark.pipeline.landing._landed import Landed
from cloudevents_kafka.spark.pipeline.landing._lander import BatchLander
from cloudevents_kafka.spark.pipeline.landing._open import (
    Landing,
    WrongStore,
    check_catalog,
    check_renames,
    open_lander,
    open_landing,
    open_sibling,
)
from cloudevents_kafka.spark.pipeline.landing._parquet_target import ParquetFiles
from cloudevents_kafka.spark.pipeline.landing._tables_target import TablesTarget
from cloudevents_kafka.spark.pipeline.landing._target import Target
