"""Land a topic in Delta tables through Spark Connect, and print each batch and the counts.

The batches land in a process of the server, so ``out`` is an absolute path or a URL that the server
reaches, and the server has the jars of the Kafka connector and of Delta. This program may end, or be
killed, at any time: the next start continues.

    python examples/spark/land_connect.py sc://localhost:15002 localhost:9092 orders s3a://lake/orders
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from cloudevents_kafka.spark import EventPipeline, PipelineOptions


def main(url: str, servers: str, topic: str, out: str) -> None:
    spark = SparkSession.builder.remote(url).getOrCreate()
    options = PipelineOptions(bootstrap_servers=servers, topics=(topic,), out=out, to="delta", once=True)
    summary = EventPipeline(options, spark=spark, report=print).run()
    print(f"{summary.counts.events} events, {summary.counts.quarantined} quarantined")
    print(f"in {summary.events_table}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
