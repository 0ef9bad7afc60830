"""Land a topic from now on, and then what was in it before, while the pipeline runs.

python examples/spark/backfill.py BOOTSTRAP_SERVERS TOPIC FOLDER
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cloudevents_kafka.spark import EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import BatchProgress, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def report(batch: BatchProgress) -> None:
    print(f"batch {batch.number} of the backfill: {batch.counts.read} records, {batch.behind} are left")


def main(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    options = PipelineOptions(
        bootstrap_servers=servers, topics=(topic,), out=folder, to="delta", start="latest", once=True
    )
    EventPipeline(options, spark=spark).run()  # so that the folder knows where the pipeline begins

    with EventPipeline(replace(options, once=False, interval=1), spark=spark):
        # What the table has is not read, so this may be killed and started again.
        gaps = replace(options, backfill="earliest..latest", max_records=2)
        summary = EventPipeline(gaps, spark=spark, report=report).run()
    for topic_, partitions in summary.backfill.items():
        for partition, counts in partitions.items():
            print(f"{topic_}[{partition}]: {counts.gaps} gaps, {counts.landed} had landed")
    print(spark.read.format("delta").load(f"{folder}/events").count(), "events")


if __name__ == "__main__":
    with local_session(formats=["delta"]) as session:
        main(session, *sys.argv[1:])
