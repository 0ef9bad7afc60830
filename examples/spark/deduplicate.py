"""Land events without duplicates in a Delta table, then drop and count them in a stream of the same topic.

python examples/spark/deduplicate.py BOOTSTRAP_SERVERS TOPIC FOLDER
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cloudevents_kafka.spark import EventPipeline, PipelineOptions, decode_events, deduplicate
from cloudevents_kafka.spark.pipeline import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def land(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    options = PipelineOptions(
        bootstrap_servers=servers, topics=(topic,), out=folder, to="delta", deduplicate="1h", once=True
    )
    counts = EventPipeline(options, spark=spark).run().counts
    print(f"landed: {counts.sums}")


def stream(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
    records = spark.readStream.format("kafka").options(**options, startingOffsets="earliest").load()
    query = (
        deduplicate(decode_events(records), within="1h")
        .writeStream.option("checkpointLocation", f"{folder}/stream/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/stream/events")
    )
    query.awaitTermination()
    dropped = sum(
        state["customMetrics"]["numDroppedDuplicateRows"]
        for progress in query.recentProgress
        for state in progress["stateOperators"]
    )
    print(f"streamed: {spark.read.parquet(f'{folder}/stream/events').count()}, {dropped} dropped")


def main(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    land(spark, servers, topic, folder)
    stream(spark, servers, topic, folder)


if __name__ == "__main__":
    with local_session(formats=["delta"]) as session:
        main(session, *sys.argv[1:])
