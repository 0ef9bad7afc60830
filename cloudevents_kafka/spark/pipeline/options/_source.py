"""Options of Spark's Kafka source: the pipeline's defaults, and the options to read certain offsets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.spark.pipeline.notes import OffsetRanges

ISOLATION: Final = "kafka.isolation.level"
"""The setting that decides whether records of aborted transactions are read."""

# At the end of each partition, Spark's source fetches once more, and waits for records after the batch. By
# default, it waits half a second for each partition. With a thousand partitions, waits of 10 ms took a third
# of a batch's time. Without a wait, a consumer would send requests all the time while a partition is empty.
DEFAULTS: Final = {
    ISOLATION: "read_committed",
    "kafka.fetch.max.wait.ms": "1",
    # Spark's source creates a consumer for each partition. A consumer has hundreds of metrics. If it sends
    # them to JMX and to brokers, they take most of the time to create the consumer. The first name is for
    # Kafka's client 4.
    "kafka.metric.reporters": "",
    "kafka.auto.include.jmx.reporter": "false",
    "kafka.enable.metrics.push": "false",
}


def assign(options: Mapping[str, str], offsets: OffsetRanges) -> dict[str, str]:
    """Return options with which Spark's Kafka source reads exactly these offsets.

    In the result, options that contain the offsets replace the options that select topics.
    """
    chosen = {"subscribe", "subscribePattern", "maxOffsetsPerTrigger"}
    partitions = {topic: [int(number) for number in numbers] for topic, numbers in offsets.items()}
    starts, ends = (
        {
            topic: {number: getattr(range_, end) for number, range_ in numbers.items()}
            for topic, numbers in offsets.items()
        }
        for end in ("start", "end")
    )
    return {
        **{name: value for name, value in options.items() if name not in chosen},
        "assign": json.dumps(partitions),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
    }
