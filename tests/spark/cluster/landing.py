"""A job for ``spark-submit``: land a topic on a cluster: ``landing.py BOOTSTRAP TOPIC OUT BATCH``."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineOptions


def main(bootstrap: str, topic: str, out: str, batch: str) -> None:
    spark = SparkSession.builder.appName("landing").getOrCreate()
    options = PipelineOptions(
        bootstrap_servers=bootstrap, topics=(topic,), out=out, once=True, max_records=int(batch)
    )
    summary = EventPipeline(options, spark=spark).run()
    sys.stdout.write(f"landed {summary.total.events} {summary.total.quarantined} {summary.batches}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
