"""How a batch lands, once: begun, written and completed, for each kind of target."""

from cloudevents_kafka.spark.pipeline.landing._function_landing import EachBatch, EventBatch
from cloudevents_kafka.spark.pipeline.landing._lander import BatchLander
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.landing._parquet_landing import ParquetFiles
from cloudevents_kafka.spark.pipeline.landing._table_landing import TableLanding
from cloudevents_kafka.spark.pipeline.landing._targets import (
    WrongStore,
    check_catalog,
    check_renames,
    open_landing,
    open_sibling,
)
