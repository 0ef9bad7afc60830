"""Keep a Delta table of current customers from a topic of changes, whose keys are those of customers.

A record without a value deletes the customer of its key, and so does an event of the type customer.deleted.

python examples/spark/current_customers.py BOOTSTRAP_SERVERS TOPIC FOLDER
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cloudevents_kafka.spark import EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    options = PipelineOptions(
        bootstrap_servers=servers,
        topics=(topic,),
        out=folder,
        to="delta",
        upsert=("key",),
        deleted="type=customer.deleted",
        once=True,
    )
    summary = EventPipeline(options, spark=spark).run()
    print(", ".join(f"{number} {change}" for change, number in summary.counts.changes.items()))
    customers = spark.read.format("delta").load(summary.events_table).where("not deleted")
    for row in customers.selectExpr("string(key)", "string(data)").sort("key").collect():
        print(row["key"], row["data"])


if __name__ == "__main__":
    with local_session(formats=["delta"]) as session:
        main(session, *sys.argv[1:])
