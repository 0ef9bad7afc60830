"""`configure_session` adds the jars and settings that a user's Spark session needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cloudevents_kafka.spark.connector import connector_jars
from cloudevents_kafka.spark.table_formats import SessionFormat, table_jars, table_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JARS = "spark.jars"


def configure_session(
    builder: SparkSession.Builder,
    formats: Collection[SessionFormat] = (),
    *,
    jars: Iterable[str | Path] = (),
    conf: Mapping[str, str] | None = None,
) -> SparkSession.Builder:
    """Return the session builder with the jars and settings for Spark's Kafka connector and ``formats``.

    ``spark.jars`` is set to the jars of the connector, the jars of the table formats in ``formats``, and the
    jars in ``jars``. The builder's earlier value of ``spark.jars`` is replaced. `configure_session` also sets
    the extensions and the catalog of ``formats``, and a setting for exact times in Parquet. Settings in
    ``conf`` override the settings of `configure_session`, but extensions and jars in ``conf`` are added to
    its extensions and jars. The jars are downloaded into the cache of this package at the first use. Call
    `configure_session` before ``getOrCreate()``, because Spark ignores jars that are set later. Raises
    `ValueError` for an unknown format, and `CloudEventsKafkaError` if there are no jars for the installed
    PySpark, or if the download fails.

    Examples:
        >>> from pyspark.sql import SparkSession
        >>> from cloudevents_kafka.spark import configure_session
        >>> builder = configure_session(SparkSession.builder.appName("landing"), formats=["delta"])
    """
    for name, value in session_settings(formats, jars=jars, conf=conf).items():
        builder = builder.config(name, value)
    return builder


def session_settings(
    formats: Collection[SessionFormat] = (),
    *,
    kafka: bool = True,
    jars: Iterable[str | Path] = (),
    conf: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return ``conf`` with the settings that `configure_session` adds.

    The settings of the Kafka connector are included only if ``kafka`` is true.
    """
    conf = dict(conf or {})
    paths = [*table_jars(formats), *(connector_jars() if kafka else ()), *jars]
    added = [*map(str, paths), *filter(None, conf.get(_JARS, "").split(","))]
    return {**table_settings(formats, conf), _JARS: ",".join(added)}
