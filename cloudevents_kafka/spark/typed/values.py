"""Uses schemas to read payloads (events' data): Spark reads most payloads, and Python reads all others.

Each row contains either the whole value of the payload, or a reason why the payload does not fit its schema.
A payload never makes a job fail, and never silently becomes null. First, the Java function finds payloads
that Spark's parsers would read wrongly or only in part. Then Spark's parsers read all other payloads, and
report whether they have read the whole payload. Python checks all payloads that Spark has not read; if such a
payload fits, Python writes it in a form that Spark can read.

Each schema has its own column of values, and `value_names` returns the name of this column. This column is
null for events of types that do not use the schema, and for payloads that Python must check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StringType

from cloudevents_kafka.spark._names import PREFIX, quote_name
from cloudevents_kafka.spark._patterns import literal, matches_sql
from cloudevents_kafka.spark._workers import with_registry
from cloudevents_kafka.spark.java.reader import fits_sql
from cloudevents_kafka.spark.schema import FROM_JSON
from cloudevents_kafka.spark.typed.checks import Misfit
from cloudevents_kafka.spark.typed.framed import Writers, header_sql
from cloudevents_kafka.spark.typed.schemas import DataSchema
from cloudevents_kafka.spark.typed.worker import payload_checker

Schemas = Mapping[str, DataSchema]
"""Schemas by patterns of event types; the first pattern that matches a type selects the type's schema."""

FOUND: Final = f"{PREFIX}found"
"""The column for payloads that Python has checked.

Its fields are a payload that Spark can read completely, and the reason why the row has no value.
"""
_FOUND_TYPE: Final = "STRUCT<payload: BINARY, reason: STRING>"
_NUMBER: Final = f"{PREFIX}n"
_RAW: Final = f"{PREFIX}raw_"
_SUSPECT: Final = f"{PREFIX}suspect"
_CONTENT_TYPE: Final = "datacontenttype"
_UTF8: Final = '^[^;]*; *charset="?(utf-?8|us-ascii)"? *$'
_UNREAD: Final = Misfit("", "must be data that Spark can read", "data that its parser rejects").reason()


def value_names(schemas: Schemas) -> dict[DataSchema, str]:
    """Return the name of the column of values for each schema."""
    return {schema: f"{PREFIX}value_{n}" for n, schema in enumerate(dict.fromkeys(schemas.values()))}


def by_type(type_: str, values: Mapping[str, str], otherwise: str = "NULL") -> str:
    """Return SQL that selects the value that belongs to the first pattern that matches a type."""
    cases = (f"WHEN {matches_sql(type_, pattern)} THEN {value}" for pattern, value in values.items())
    return f"CASE {' '.join(cases)} ELSE {otherwise} END"


def read_values(
    rows: DataFrame,
    schemas: Schemas,
    event: str = "",
    writers: Writers | None = None,
    *,
    rescue: bool,
    unread: str | None = None,
) -> DataFrame:
    """Return rows with the values that Spark reads completely, and with the number of each row's schema.

    ``event`` is the prefix of the names of an event's columns. Spark does not read framed payloads, which
    Python reads later. ``unread`` is an SQL condition. If the condition is true for an event, the data of the
    event is not read, as if there were no schema for its type.
    """
    data = f"{event}`data`"
    # JSON never begins with the bytes of a frame, but Avro data may.
    bare = "true" if writers is None else f"{header_sql(rows.columns)} IS NULL"
    payloads = {}
    for schema in value_names(schemas):
        is_never = schema.refused or (writers is not None and schema.avro)
        fits = "false" if is_never else fits_sql(rows, data, literal(schema.words(rescue=rescue)))
        in_utf8 = "true" if schema.avro else _in_utf8_sql(rows, event)
        payloads[schema] = f"CASE WHEN {bare} AND {in_utf8} AND {fits} THEN {data} END"
    rows = _with_number(rows, schemas, f"{event}`type`", unread)
    return _read(rows, schemas, payloads, rescue=rescue)


def read_checked(rows: DataFrame, schemas: Schemas, *, rescue: bool, unread: str | None = None) -> DataFrame:
    """Return rows with the values of the rows' payloads.

    Spark can read all payloads in the rows, because Spark has read the payloads before, or Python has
    rewritten them for Spark.
    """
    payloads = dict.fromkeys(value_names(schemas), "`data`")
    rows = _with_number(rows, schemas, "`type`", unread)
    return _read(rows, schemas, payloads, rescue=rescue).drop(_NUMBER)


def is_read_sql(schemas: Schemas) -> str:
    """Return SQL that is true if Spark has read the value of a row, or if no schema belongs to the row."""
    cases = (f"WHEN {n} THEN {name} IS NOT NULL" for n, name in enumerate(value_names(schemas).values()))
    return f"CASE {_NUMBER} {' '.join(cases)} ELSE true END"


def decide_values(
    rows: DataFrame,
    schemas: Schemas,
    writers: Writers | None = None,
    *,
    rescue: bool,
    unread: str | None = None,
) -> DataFrame:
    """Return the rows with their values and the column `FOUND`; rows must have ``type`` and ``data``."""
    rows = read_values(rows, schemas, "", writers, rescue=rescue, unread=unread)
    rows = _with_decisions(rows, schemas, writers, rescue=rescue)
    payloads = dict.fromkeys(value_names(schemas), f"{FOUND}.payload")
    rows = _read(rows, schemas, payloads, rescue=rescue)
    reason = f"CASE WHEN NOT {is_read_sql(schemas)} THEN coalesce({FOUND}.reason, {literal(_UNREAD)}) END"
    payload = f"CASE WHEN {FOUND} IS NULL THEN `data` ELSE {FOUND}.payload END"
    kept = (quote_name(name) for name in rows.columns if name not in (FOUND, _NUMBER))
    return rows.selectExpr(*kept, f"named_struct('payload', {payload}, 'reason', {reason}) AS {FOUND}")


def _in_utf8_sql(rows: DataFrame, event: str) -> str:
    """Return SQL that is false if the content type of an event may name another charset than UTF-8."""
    if not event and _CONTENT_TYPE not in rows.columns:
        return "true"
    type_ = f"lower({event}`{_CONTENT_TYPE}`)"
    return f"coalesce(NOT contains({type_}, 'charset') OR {type_} RLIKE {literal(_UTF8)}, true)"


def _with_decisions(rows: DataFrame, schemas: Schemas, writers: Writers | None, *, rescue: bool) -> DataFrame:
    """Add the column `FOUND` with the results of Python's checks, or null for rows without a check."""
    frame = "" if writers is None else f", {header_sql(rows.columns)} AS header"
    type_ = f", `{_CONTENT_TYPE}` AS type" if _CONTENT_TYPE in rows.columns else ""
    suspect = f"to_json(struct({_NUMBER} AS n, `data`{frame}{type_}))"
    checker = with_registry(payload_checker(list(value_names(schemas)), writers, rescue=rescue))
    check: Any = pandas_udf(checker, StringType())  # type: ignore[call-overload]  # pandas has no types
    packed = f"CASE WHEN NOT {is_read_sql(schemas)} THEN {suspect} END AS {_SUSPECT}"
    rows = rows.selectExpr("*", packed).withColumn(FOUND, check(F.col(_SUSPECT))).drop(_SUSPECT)
    checked = F.from_json(FOUND, _FOUND_TYPE, FROM_JSON)
    return rows.withColumn(FOUND, F.when(F.col(FOUND).isNotNull(), checked))


def _read(
    rows: DataFrame, schemas: Schemas, payloads: Mapping[DataSchema, str], *, rescue: bool
) -> DataFrame:
    """Add the values that Spark's parsers read completely to those rows that have no value yet."""
    raw, values = [], {}
    for n, (schema, name) in enumerate(value_names(schemas).items()):
        parsed = schema.parsed_sql(payloads[schema], rescue=rescue)
        raw.append(f"CASE WHEN {_NUMBER} = {n} THEN {parsed} END AS {_RAW}{n}")
        whole = schema.whole_sql(f"{_RAW}{n}", rescue=rescue)
        values[name] = f"coalesce({name}, {whole})" if name in rows.columns else whole
    others = (quote_name(name) for name in rows.columns if name not in values)
    # There are two steps so that Spark parses each payload once: the parsed column is used several times.
    return rows.selectExpr("*", *raw).selectExpr(
        *others, *(f"{sql} AS {name}" for name, sql in values.items())
    )


def _with_number(rows: DataFrame, schemas: Schemas, type_: str, unread: str | None) -> DataFrame:
    """Add the number of each row's schema, or null if no schema belongs to the row."""
    distinct = list(value_names(schemas))
    numbers = {pattern: str(distinct.index(schema)) for pattern, schema in schemas.items()}
    number = by_type(type_, numbers)
    if unread is not None:
        number = f"CASE WHEN NOT {unread} THEN {number} END"
    return rows.selectExpr("*", f"{number} AS {_NUMBER}")
