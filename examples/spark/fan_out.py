"""Land the events of some types in Delta tables of their own, the rest in a common one, and count them.

python examples/spark/fan_out.py BOOTSTRAP_SERVERS TOPIC FOLDER
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cloudevents_kafka.spark import EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "com.example.order.paid": "payments",  # the first pattern that matches decides
    "com.example.order.*": "orders",
}


def main(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    options = PipelineOptions(
        bootstrap_servers=servers, topics=(topic,), out=folder, to="delta", tables=TABLES, once=True
    )
    summary = EventPipeline(options, spark=spark).run()
    for table, events in summary.counts.by_table.items():
        print(f"{table}: {events} events")
        if events:
            spark.read.format("delta").load(summary.tables[table]).groupBy("type").count().show(
                truncate=False
            )


if __name__ == "__main__":
    with local_session(formats=["delta"]) as session:
        main(session, *sys.argv[1:])
