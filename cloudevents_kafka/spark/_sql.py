"""Helpers for Spark SQL: quoted names and texts, and session settings for single statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark._patterns import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["literal", "name_parts", "quote", "settings", "sql_text", "table_settings", "write_settings"]

# Spark's default, INT96, has no time zone, and other readers decode it as nanoseconds, which range from 1677
# to 2262. In INT96, a date before 1582 may be in the Julian calendar.
_WRITE_SETTINGS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # If an Iceberg table has the property write.wap.enabled, writes are only staged while this is set.
    "spark.wap.id": "cloudevents-kafka",
}


_PART: Final = r"(?:`((?:[^`]|``)+)`|([^`.\s]+))"


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Yield while the session has these settings, and restore the earlier settings at the end."""
    before = {name: spark.conf.get(name, None) for name in values}
    try:
        for name, value in values.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def quote(*parts: str) -> str:
    """Return the parts of a name as an SQL identifier."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def name_parts(name: str) -> tuple[str, ...]:
    """Return the parts of a table's name; raise `ValueError` if the name is not valid.

    A part that contains a dot or a space must be in backticks.
    """
    if not re.fullmatch(rf"{_PART}(?:\.{_PART})*", name):
        raise ValueError(
            f"the name of a table must be catalog.schema.name, got {name!r}; "
            "put a part with a dot or a space in backticks"
        )
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in re.findall(_PART, name))


def sql_text(text: str) -> str:
    """Return a text as an SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def write_settings(spark: SparkSession) -> AbstractContextManager[None]:
    """Return a context manager that applies the settings for staging rows and for writing Parquet.

    With these settings, all readers interpret the written Parquet in the same way.
    """
    return settings(spark, _WRITE_SETTINGS)


def table_settings(spark: SparkSession) -> AbstractContextManager[None]:
    """Return a context manager that applies `write_settings` and the time zone UTC, to write a table.

    Delta stores the least and the greatest time of a file, in the time zone of the session. Most zones have
    offsets with seconds before about 1900, such as +00:53:28. delta-rs does not understand these offsets, and
    then finds no row of the file with a filter by time.
    """
    return settings(spark, {**_WRITE_SETTINGS, "spark.sql.session.timeZone": "UTC"})
