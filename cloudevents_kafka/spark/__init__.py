"""CloudEvents in Spark: the Kafka source's columns to event columns, and back.

PySpark is imported when one of these functions is first asked for, so that what
shares this room and needs none of it (the connector's jars, a worker's side) does
without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloudevents_kafka.spark.connector import connector_jars, kafka_package
    from cloudevents_kafka.spark.decode import cloudevent, decode_events
    from cloudevents_kafka.spark.encode import encode_events
    from cloudevents_kafka.spark.schema import event_schema
    from cloudevents_kafka.spark.sql import register

_HOMES = {
    "cloudevent": "decode",
    "connector_jars": "connector",
    "decode_events": "decode",
    "encode_events": "encode",
    "event_schema": "schema",
    "kafka_package": "connector",
    "register": "sql",
}

__all__ = [
    "cloudevent",
    "connector_jars",
    "decode_events",
    "encode_events",
    "event_schema",
    "kafka_package",
    "register",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module, on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
