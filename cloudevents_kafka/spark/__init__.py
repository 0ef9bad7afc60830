"""CloudEvents in Spark: functions on DataFrames and in SQL, and a pipeline from Kafka to tables.

`decode_events` and `encode_events` convert between the columns of Spark's Kafka source and the columns of
events. `cloudevent` is a column expression that decodes records, and `register` adds functions for SQL.
`event_schema` is the type of an event. `data_as` and `data_by_type` use schemas to read the data of events.
`deduplicate` drops repeated events. `configure_session` adds the jars and settings for Kafka's source and for
table formats to the builder of a session.

To understand the modules, read `schema`, then `decode` (with `udf`, which contains the functions of Python
workers), then `encode` (with `_event_columns`, which prepares the input of `encode`). `decode` and `encode`
use the functions in `java`, and check their input with `_columns`. `sql` contains the functions for SQL.
`connector` finds the jars of Spark's Kafka source, `table_formats` finds the jars of Delta and Iceberg, and
`session` uses both modules. `pipeline` is the job that writes tables, and `listener` writes metrics for other
queries. `typed` uses schemas to read data.

PySpark is imported when the first function that needs PySpark is imported. `configure_session` and the code
of Python workers do not need PySpark. If a package is missing, the import raises `ModuleNotFoundError`, whose
text names the extra to install.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.primitives.installing import pip_install

if TYPE_CHECKING:  # for type checkers: at run time, a name is imported on first use
    from cloudevents_kafka.spark.decode import cloudevent, decode_events
    from cloudevents_kafka.spark.distinct import deduplicate
    from cloudevents_kafka.spark.encode import encode_events
    from cloudevents_kafka.spark.listener import MetricsListener
    from cloudevents_kafka.spark.pipeline import EventBatch, EventPipeline, PipelineOptions, Threshold
    from cloudevents_kafka.spark.schema import event_schema
    from cloudevents_kafka.spark.session import configure_session
    from cloudevents_kafka.spark.sql import register
    from cloudevents_kafka.spark.typed.frames import data_as, data_by_type

_MODULES = {
    "EventBatch": "pipeline",
    "EventPipeline": "pipeline",
    "MetricsListener": "listener",
    "PipelineOptions": "pipeline",
    "Threshold": "pipeline",
    "cloudevent": "decode",
    "configure_session": "session",
    "data_as": "typed.frames",
    "data_by_type": "typed.frames",
    "decode_events": "decode",
    "deduplicate": "distinct",
    "encode_events": "encode",
    "event_schema": "schema",
    "register": "sql",
}

_EXTRA_PACKAGES = ("pyspark", "py4j", "pandas", "numpy", "pyarrow")
_REQUIRED = dict.fromkeys(
    ("decode", "distinct", "encode", "listener", "pipeline", "sql", "typed.frames"),
    ("pyspark", "pandas", "pyarrow"),
)

__all__ = [
    "EventBatch",
    "EventPipeline",
    "MetricsListener",
    "PipelineOptions",
    "Threshold",
    "cloudevent",
    "configure_session",
    "data_as",
    "data_by_type",
    "decode_events",
    "deduplicate",
    "encode_events",
    "event_schema",
    "register",
]


def __getattr__(name: str) -> Any:
    """Return a public name of this package, imported from its module on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    try:
        for package in _REQUIRED.get(module, ()):  # otherwise, some of them would be imported later
            import_module(package)
        value = getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in _EXTRA_PACKAGES:
            raise
        raise ModuleNotFoundError(
            f"{__name__}.{name} needs {package}, which is not installed: {pip_install('spark')}",
            name=error.name,
        ) from error
    globals()[name] = value
    return value
