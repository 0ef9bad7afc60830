"""Options of Spark's Kafka source: their defaults, and options that read exactly some offsets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.spark.pipeline.notes import OffsetRanges

ISOLATION: Final = "kafka.isolation.level"
"""The setting for whether records of aborted transactions are read."""

# Spark's source fetches once more at the end of each partition that it reads, and waits for records that are
# not of its batch: half a second for each by default.
DEFAULTS: Final = {
    ISOLATION: "read_committed",
    "kafka.fetch.max.wait.ms": "10",
    # It makes a consumer for each partition, and most of the time for one is that of its hundreds of metrics,
    # if these are also sent to JMX and to brokers that ask for them. The first name is for Kafka's client 4.
    "kafka.metric.reporters": "",
    "kafka.auto.include.jmx.reporter": "false",
    "kafka.enable.metrics.push": "false",
}


def assign(options: Mapping[str, str], offsets: OffsetRanges) -> dict[str, str]:
    """Return options that read exactly these offsets; they replace the options that name topics."""
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
