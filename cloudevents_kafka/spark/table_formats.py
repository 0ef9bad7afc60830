"""The Maven coordinates, jars and session settings of Delta, Iceberg and Avro for the installed PySpark.

`session.configure_session` passes the jars and the settings to a session's builder. ``python -m
cloudevents_kafka.spark.table_formats`` downloads the jars of all three formats and prints their paths.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import NoJars, print_jars, resolve
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.spark.connector import IN_PYSPARK, KNOWN_GOOD

TableFormat = Literal["delta", "iceberg"]
TABLE_FORMATS: Final[tuple[TableFormat, ...]] = get_args(TableFormat)
SessionFormat = Literal[TableFormat, "avro"]
"""The formats of tables and data that a session may read; `FORMATS` contains an entry for each format."""

EXTENSIONS: Final = "spark.sql.extensions"


class Format(NamedTuple):
    """The jars and settings that a Spark session needs for a format, and facts about tables in this format.

    ``releases`` maps minor versions of PySpark to Maven coordinates of the format, because the interfaces for
    tables differ between versions of PySpark. ``in_pyspark`` lists dependencies of the format that PySpark
    already contains. ``mark`` is the path of a file or folder that each table in this format contains, or
    None for a data format. ``renames`` is true if each commit to a table in a folder renames a file.
    """

    releases: Mapping[str, str]
    in_pyspark: tuple[str, ...] = ()
    settings: Mapping[str, str] = {}
    mark: str | None = None
    renames: bool = False


FORMATS: Final[Mapping[SessionFormat, Format]] = {
    "delta": Format(
        releases={"4.0": "io.delta:delta-spark_2.13:4.0.0", "4.1": "io.delta:delta-spark_2.13:4.1.0"},
        in_pyspark=(
            "com.google.code.findbugs:jsr305",
            "org.antlr:antlr4-runtime",
            "org.apache.logging.log4j:log4j-api",
            "org.apache.logging.log4j:log4j-core",
            "org.apache.logging.log4j:log4j-slf4j2-impl",
            "org.scala-lang:scala-library",
            "org.slf4j:slf4j-api",
        ),
        settings={
            EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # With the default, 50, each small commit takes more than three times as long.
            "spark.databricks.delta.snapshotPartitions": "2",
        },
        mark="_delta_log",
    ),
    "iceberg": Format(  # its jar has no dependencies
        releases={
            "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
            "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
        },
        settings={EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
        mark="metadata/version-hint.text",
        renames=True,
    ),
    "avro": Format(
        releases={
            version.rpartition(".")[0]: f"org.apache.spark:spark-avro_2.13:{version}"
            for version in KNOWN_GOOD
        },
        in_pyspark=(*IN_PYSPARK, "org.tukaani:xz"),
    ),
}
# Spark's default, INT96, has no time zone, and other readers decode it as nanoseconds.
_TIMES: Final = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


class NoTableFormat(CloudEventsKafkaError):
    """No release of a format works with the installed PySpark, or the format's jars cannot be downloaded."""


def table_package(table_format: str) -> str:
    """Return the Maven coordinate of ``delta``, ``iceberg`` or ``avro`` for the installed PySpark.

    Raises `NoTableFormat` if the format has no release for this version of PySpark, or if PySpark is not
    installed.
    """
    releases = _format(table_format).releases
    if importlib.util.find_spec("pyspark") is None:
        raise NoTableFormat(f"PySpark is not installed; do: {pip_install('spark')}")
    installed = version("pyspark")
    found = releases.get(".".join(installed.split(".")[:2]))
    if found is None:
        raise NoTableFormat(
            f"no {table_format.capitalize()} is known for PySpark {installed}, only for "
            f"{' and '.join(releases)}; do: pip install pyspark==4.0.0, or land in Parquet"
        )
    return found


def _format(name: str) -> Format:
    found = next((each for known, each in FORMATS.items() if known == name), None)
    if found is None:
        raise ValueError(f"a format must be one of {', '.join(FORMATS)}, got {name!r}")
    return found


def excluded_from(table_format: str) -> tuple[str, ...]:
    """Return the dependencies that a format needs and that PySpark already contains."""
    return _format(table_format).in_pyspark


def table_jars(formats: Iterable[str]) -> list[Path]:
    """Return the jar files of table formats, downloaded into the cache at the first use.

    Raises `NoTableFormat` if a format has no jars for the installed PySpark, or if the download fails.
    """
    packages = {name: table_package(name) for name in formats}
    jars: list[Path] = []
    for name, package in packages.items():
        try:
            jars += resolve([package], exclude=excluded_from(name))
        except NoJars as error:
            raise NoTableFormat(f"the jars of {name.capitalize()} are missing: {error}") from error
    return jars


def table_settings(formats: Iterable[str], conf: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the session settings for table formats: extensions, a catalog, and a setting for exact times.

    Settings in ``conf`` override the settings for the formats; extensions in ``conf`` are added to the
    extensions of the formats. The returned settings do not include the jars, which `table_jars` returns.
    """
    conf = dict(conf or {})
    settings = dict(_TIMES)
    extensions: list[str] = []
    for name in formats:
        own = _format(name).settings
        settings |= own
        extensions += filter(None, [own.get(EXTENSIONS)])
    extensions += filter(None, map(str.strip, conf.get(EXTENSIONS, "").split(",")))
    if extensions:
        conf[EXTENSIONS] = ",".join(dict.fromkeys(extensions))
    return {**settings, **conf}


if __name__ == "__main__":
    print_jars(lambda: table_jars(FORMATS))
