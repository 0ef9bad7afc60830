"""Land what Debezium writes as CloudEvents: print the changes of rows, and what lenient reading accepted.

Debezium's CloudEventsConverter writes JSON without headers, so strict reading finds no event in its topics.
The record without a value that follows a deletion is not an event: it is in the quarantine.

python examples/spark/land_debezium.py BOOTSTRAP_SERVERS TOPIC FOLDER
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cloudevents_kafka.spark import EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    options = PipelineOptions(bootstrap_servers=servers, topics=(topic,), out=folder, once=True, lenient=True)
    summary = EventPipeline(options, spark=spark).run()
    for clause, rules in summary.counts.by_tolerated.items():
        for rule, events in rules.items():
            print(f"{events} events: {rule} ({clause})")
    print(f"{summary.counts.quarantined} without a value")
    changes = spark.read.parquet(f"{folder}/events").orderBy("partition", "offset")
    columns = (
        "extensions['iodebeziumop'] AS operation",
        "get_json_object(cast(data AS string), '$.before') AS before",
        "get_json_object(cast(data AS string), '$.after') AS after",
    )
    for change in changes.selectExpr(*columns).collect():
        print(change["operation"], change["before"], "->", change["after"])


if __name__ == "__main__":
    with local_session() as session:
        main(session, *sys.argv[1:])
