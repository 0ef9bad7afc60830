"""How a batch lands, once: begun, written and completed, for each kind of target."""

from cloudevents_kafka.spark.pipeline.landing._function_landing import EachBatch, EventBatch
from cloudevents_kafka.spark.pipeline.landing._lander import BatchLander
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.landing._renames import WrongStore, check_renames
from cloudevents_kafka.spark.pipeline.landing._table_landing import TableBatch
from cloudevents_kafka.spark.pipeline.landing._targets import check_catalog, open_landing
