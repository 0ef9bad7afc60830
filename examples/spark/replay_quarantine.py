"""Land a topic, mend the records in its quarantine, and land them, too, by a replay.

python examples/spark/replay_quarantine.py BOOTSTRAP_SERVERS TOPIC FOLDER
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cloudevents_kafka import Record
from cloudevents_kafka.spark import EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import ReplayOptions, local_session, replay_quarantine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_id(record: Record) -> Record | None:
    """Return a record with an id, which a producer has forgotten; a record without a value stays."""
    if record.value is None:
        return None
    headers = [*record.headers, ("ce_id", record.where)]
    return Record(key=record.key, value=record.value, headers=headers)


def main(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    options = PipelineOptions(bootstrap_servers=servers, topics=(topic,), out=folder, to="delta", once=True)
    EventPipeline(options, spark=spark).run()

    # First without apply: what would become of each record?
    chosen = ReplayOptions(out=folder, reasons=["ce_id is missing"])
    print(replay_quarantine(chosen, spark=spark, mend=add_id).to_text())

    chosen = ReplayOptions(out=folder, reasons=["ce_id is missing"], apply=True)
    print(replay_quarantine(chosen, spark=spark, mend=add_id).outcomes)

    # A second replay finds nothing: each record lands once.
    print(replay_quarantine(chosen, spark=spark, mend=add_id).outcomes)
    events = spark.read.format("delta").load(f"{folder}/events")
    for row in events.orderBy("partition", "offset").select("offset", "id").collect():
        print(row["offset"], row["id"])


if __name__ == "__main__":
    with local_session(formats=["delta"]) as session:
        main(session, *sys.argv[1:])
