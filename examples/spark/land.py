"""Land a topic in a table of Parquet, Delta or Iceberg, and print what is in it.

python examples/spark/land.py BOOTSTRAP_SERVERS TOPIC FOLDER parquet|delta|iceberg
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cloudevents_kafka.spark import EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(spark: SparkSession, servers: str, topic: str, folder: str, to: str) -> None:
    options = PipelineOptions(bootstrap_servers=servers, topics=(topic,), out=folder, to=to, once=True)
    summary = EventPipeline(options, spark=spark).run()
    print(f"{summary.counts.events} events, {summary.counts.quarantined} quarantined")
    events = spark.read.format(to).load(f"{folder}/events")
    for row in events.orderBy("partition", "offset").select("id", "type", "time_text").collect():
        print(row["id"], row["type"], row["time_text"])


if __name__ == "__main__":
    with local_session(formats=("delta", "iceberg")) as session:
        main(session, *sys.argv[1:])
