"""What each command needs, in parts that have names."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.cli.needs._checks import connector, java, kafka_jars, packages, table_format
from cloudevents_kafka.cli.needs._findings import Check

PARTS: Final[dict[str, Check]] = {
    "extra protobuf": packages("protobuf"),
    "extra protocol": packages("protocol"),
    "extra spark": packages("spark"),
    "Java": java,
    "Kafka": kafka_jars,
    "connector": connector,
    "Delta": table_format("delta"),
    "Iceberg": table_format("iceberg"),
}
_PIPELINE: Final = ("extra spark", "Java", "connector")

# The commands, and options that need more than their command does.
COMMAND_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "consume": (),
    "produce": (),
    "produce --format protobuf": ("extra protobuf",),
    "replay": (),
    "decode": (),
    "broker": ("Java", "Kafka"),
    "demo": ("extra spark", "Java", "Kafka", "connector"),
    "pipeline": _PIPELINE,
    "pipeline --to delta": (*_PIPELINE, "Delta"),
    "pipeline --to iceberg": (*_PIPELINE, "Iceberg"),
    "table": ("extra spark", "Java", "Delta", "Iceberg"),
    "spark-jar": ("extra spark",),
    "spark-zip": (),
    "conformance": (),
    "protocol": (),
    "protocol produce --compression": ("extra protocol",),
}
