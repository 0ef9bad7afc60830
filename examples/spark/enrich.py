"""Add the names of customers to events, and write them to another topic as events of their own.

An enriched event has a new type, the id of its original in the extension ``enrichedfrom``, and the same key.

python examples/spark/enrich.py BOOTSTRAP_SERVERS TOPIC TOPIC_OF_ENRICHED
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.spark import decode_events, encode_events
from cloudevents_kafka.spark.pipeline import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def enrich(events: DataFrame, customers: DataFrame) -> DataFrame:
    """Return events whose data has the name of their subject; those of unknown customers have none."""
    named = events.where("error is null").join(customers, "subject", "left")
    data = F.struct(F.col("data").cast("string").alias("original"), "name")
    return named.withColumns(
        {
            "extensions": F.expr("map_concat(coalesce(extensions, map()), map('enrichedfrom', id))"),
            "id": F.concat(F.lit("enriched-"), "id"),
            "type": F.concat("type", F.lit(".enriched")),
            "data": F.to_json(data),
            "datacontenttype": F.lit("application/json"),
        }
    ).drop("name", "data_kind")


def main(spark: SparkSession, servers: str, topic: str, enriched: str) -> None:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
    records = spark.read.format("kafka").options(**options).load()
    customers = spark.createDataFrame([("c-1", "Ada"), ("c-2", "Grace")], "subject string, name string")
    events = enrich(decode_events(records, keep=["key"]), customers)
    encode_events(events).write.format("kafka").option("kafka.bootstrap.servers", servers).option(
        "topic", enriched
    ).save()


if __name__ == "__main__":
    with local_session() as session:
        main(session, *sys.argv[1:])
