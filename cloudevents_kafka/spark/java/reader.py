"""Adds the Java function to a Spark session, including a Spark Connect session, and calls it in SQL.

A session has the function as soon as the jar was added to the session and three settings are set. If a
session has the function already, nothing is added; for example, a server may have been started with the jar
and the settings.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from cloudevents_kafka.attributes.documented_extensions import RULES
from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.spark._java import has_java, java_of, java_session
from cloudevents_kafka.spark.java.deviations import deviation_texts
from cloudevents_kafka.spark.java.jar import NoReaderJar, jar_to_send, session_jar
from cloudevents_kafka.spark.schema import event_schema, wire_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CATALOG: Final = "cloudevents_kafka"
_SETTING: Final = f"spark.sql.catalog.{_CATALOG}"
_JAR_SETTING: Final = f"{_SETTING}.jar"
_READY: Final = f"spark.{_CATALOG}.ready"
_CATALOG_CLASS: Final = "cloudevents_kafka.spark.Functions"
_OTHER_JSON: Final = "+json"
_RULE_NAMES: Final = {rule: name for name, rule in RULES.items()}
_log: Final = logging.getLogger(__name__)

_ready: Final[WeakSet[Any]] = WeakSet()
_refused: Final[WeakSet[Any]] = WeakSet()


def reader_sql(df: DataFrame, *, lenient: bool = False) -> str | None:
    """Return SQL that decodes ``value`` and ``headers`` to a struct of `event_schema`.

    The SQL returns null for records that the Java function leaves to `decode`. If the session cannot use Java
    classes, return None, and log a warning once for each session.
    """
    if not _has_function(df.sparkSession):
        return None
    left, known = extension_texts()
    rules = f", '{deviation_texts()}'" if lenient else ""
    return f"{_function('read', lenient=lenient)}(`value`, headers, '{left}', '{known}'{rules})"


def writer_sql(df: DataFrame, columns: Mapping[str, str], *, structured: bool) -> str | None:
    """Return SQL that encodes a row to a struct of ``value`` and ``headers``.

    The SQL returns null for rows that the Java function leaves to `encode`.

    ``columns`` contains the names of an event's columns. If the session cannot use Java classes, return None,
    and log a warning once for each session.
    """
    if not _has_function(df.sparkSession):
        return None
    left, known = extension_texts()
    names = ", ".join(f"`{columns[name]}`" for name in (*CORE, "extensions", "data", "data_kind"))
    return f"{_CATALOG}.write({names}, {str(structured).lower()}, '{left}', '{known}')"


def extension_texts() -> tuple[str, str]:
    """Return two texts for the Java function: extensions and formats for Python, and extensions for Java.

    The first text lists the extensions and formats that only Python can handle. The second text describes the
    extensions that Java can handle. ``Extensions.java`` and ``Extension.java`` describe the two texts.
    """
    left = [_OTHER_JSON] if "json" in formats.registered() else []
    known = []
    for name, extension in sorted(current.table.extensions.items()):
        rules = [_RULE_NAMES.get(rule) for rule in extension.rules]
        if None in rules:  # a rule that is a user's function
            left.append(name)
        else:
            needs = [f"+{needed}" for needed in extension.needs]
            words = [name, extension.type.value, *filter(None, rules), f"@{extension.clause}", *needs]
            known.append(" ".join(words))
    return ",".join(left), ",".join(known)


def coalesce_sql(read: str, decoded: str, *, lenient: bool = False) -> str:
    """Return SQL for the first of two structs that is not null.

    ``read`` is a struct of `event_schema`, and ``decoded`` is a struct of `wire_schema`.
    """
    return f"{_function('coalesce', lenient=lenient)}({read}, {decoded})"


def _function(name: str, *, lenient: bool) -> str:
    return f"{_CATALOG}.{name}_lenient" if lenient else f"{_CATALOG}.{name}"


def few_sql(text: str, most_bytes: int) -> str:
    """Return SQL for ``text``; the SQL is null after the texts of a task exceed ``most_bytes`` bytes."""
    return f"{_CATALOG}.few({text}, {most_bytes})"


def is_new_sql(kind: int, code: str, most: int) -> str:
    """Return SQL that is true when a task passes the number ``code`` for the first time.

    Codes that were passed with another kind do not count. The SQL is false after a task has passed ``most``
    codes of the same kind.
    """
    return f"{_CATALOG}.is_new({kind}, {code}, {most})"


def foreign_sql(headers: str) -> str:
    """Return SQL for the headers that are not part of the event, or null if there are no such headers."""
    return f"{_CATALOG}.`foreign`({headers})"  # a reserved word of ANSI SQL


def fits_sql(df: DataFrame, payload: str, shape: str) -> str:
    """Return SQL that is true if Spark can read the whole payload with a schema (``shape``).

    The SQL is false if the session does not have the Java function.
    """
    return f"{_CATALOG}.fits({payload}, {shape})" if _has_function(df.sparkSession) else "false"


def catalog_settings() -> dict[str, str]:
    """Return the three settings of the Java function; the setting with the class must be set last."""
    return {
        f"{_SETTING}.row": event_schema().json(),
        f"{_SETTING}.wire": wire_schema().json(),
        _SETTING: _CATALOG_CLASS,
    }


def _has_function(spark: SparkSession) -> bool:
    """Add the Java function to a session if necessary; return whether the function can be called."""
    is_set = spark.conf.get(_SETTING, None) is not None
    if is_set and _is_ready(spark):
        return True
    is_local = has_java(spark)
    if not is_set and is_local and spark in _refused:
        return False  # a class loader that has failed once fails again
    try:
        if not is_set:
            _add_function(spark, is_local=is_local)
        # Spark only plans this query and does not run it. Planning fails if the classes are missing.
        coalesce = coalesce_sql("NULL", "NULL", lenient=True)
        _ = spark.sql(
            f"SELECT {coalesce}, {few_sql('NULL', 0)}, {foreign_sql('NULL')}, {is_new_sql(0, '0', 0)}, "
            f"{_CATALOG}.fits(NULL, ''), "
            f"{_CATALOG}.write({'NULL, ' * 11}false, '', '')"
        ).schema
    except _errors() as error:
        if not is_set:
            spark.conf.unset(_SETTING)
        _warn_once(spark, error)
        return False
    _set_ready(spark)
    return True


def _is_ready(spark: SparkSession) -> bool:
    """Return whether this session is known to have the Java function.

    Each batch of a stream has a new Python object for the same Java session. So the number of the Java
    session is stored in a setting of this session. A cloned session has the same setting, but a different
    number.
    """
    number = _session_number(spark)
    return spark in _ready if number is None else spark.conf.get(_READY, None) == number


def _set_ready(spark: SparkSession) -> None:
    number = _session_number(spark)
    if number is None:
        _ready.add(spark)
    else:
        spark.conf.set(_READY, number)


def _session_number(spark: SparkSession) -> str | None:
    """Return a number that identifies a session's Java object, or None with Spark Connect."""
    return str(java_session(spark).hashCode()) if has_java(spark) else None


def _errors() -> tuple[type[Exception], ...]:
    from pyspark.errors import PySparkException

    errors = (PySparkException, CloudEventsKafkaError, OSError)
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
    except ModuleNotFoundError:  # in an installation for Spark Connect only
        return errors
    return (*errors, Py4JError)


def _add_function(spark: SparkSession, *, is_local: bool) -> None:
    named = spark.conf.get(_JAR_SETTING, None)
    if is_local:
        jar = Path(named) if named else session_jar(java_of(spark))
        spark.sql(f"ADD JAR '{jar.absolute().as_uri()}'")
    else:
        _send_jar(spark, named)
    for name, value in catalog_settings().items():
        spark.conf.set(name, value)


def _send_jar(spark: SparkSession, named: str | None) -> None:
    """Send a jar to a server of Spark Connect: the jar that the setting names, or the jar of the package.

    Raises `NoReaderJar` if there is no jar.
    """
    if named:
        if not Path(named).is_file():
            raise NoReaderJar(f"{_JAR_SETTING} must be the path of a jar on this machine, got {named!r}")
        spark.addArtifacts(named)
    else:
        with jar_to_send() as jar:
            spark.addArtifacts(str(jar))


def _warn_once(spark: SparkSession, error: Exception) -> None:
    if spark not in _refused:
        _refused.add(spark)
        _log.warning(
            "decode_events and encode_events convert all rows in Python by an Arrow UDF, which is much "
            "slower, because this session has no Java function: %s. Write its jar by `cloudevents-kafka "
            "spark-jar FILE` on a machine with PySpark and Java; then set %s to FILE, or start Spark with "
            "--jars FILE and the settings that the command prints",
            error,
            _JAR_SETTING,
        )
