"""CloudEvents in Spark: the Kafka source's columns to event columns, and back.

PySpark is imported when one of these functions is first asked for, so that what
shares this room and needs none of it (the connector's jars, a worker's side) does
without. Where one of the packages that it needs is not installed, the import of the
function fails with a `ModuleNotFoundError` that names the extra to install.
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

_EXTRA = "cloudevents-kafka[spark]"
_OF_EXTRA = ("pyspark", "py4j", "pandas", "numpy", "pyarrow")
_NEEDED = dict.fromkeys(("decode", "encode", "sql"), ("pyspark", "pandas", "pyarrow"))

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
    home = _HOMES[name]
    try:
        for package in _NEEDED.get(home, ()):  # of which some are not imported before they are used
            import_module(package)
        value = getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in _OF_EXTRA:
            raise
        advice = f'pip install "{_EXTRA}"'
        raise ModuleNotFoundError(
            f"{__name__}.{name} needs {package}, which is not installed: {advice}", name=error.name
        ) from error
    globals()[name] = value
    return value
